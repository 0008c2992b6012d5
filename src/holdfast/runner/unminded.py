"""What is said of trials that ended badly, where no rule of theirs failed by it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.score.tally import Tally

_WORDS = {
    "timeout": "a timeout",
    "limit": "a limit of agent.limits",
    "crashed": "a crash",
    "out_of_memory": "a lack of memory",
    "raised": "an exception",
}
"""Endings that a reader would want to know of; an agent may well end without an answer if its work is what counts."""


def unminded(tally: Tally) -> Iterator[str]:
    """`3 of 12 trials ended in a timeout and failed no rule: they were judged on what there was`, for each ending.

    Contracts try each rule by itself: where a rule on endings failed by the same ending, the reader knows.
    """
    trials = tally.trials
    advice = "" if tally.rules_on_endings else " (a `completes` rule would fail)"
    for ending, words in _WORDS.items():
        if (count := tally.unminded[ending]) and ending not in tally.minded:
            were = "it was" if count == 1 else "they were"
            yield (
                f"{count} of {trials} trial{'' if trials == 1 else 's'} ended in {words} and failed no rule: "
                f"{were} judged on what there was{advice}"
            )
