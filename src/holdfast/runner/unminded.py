"""What is said of trials that ended badly, where no rule of theirs failed by it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

_WORDS = {
    "timeout": "a timeout",
    "limit": "a limit of agent.limits",
    "crashed": "a crash",
    "out_of_memory": "a lack of memory",
    "raised": "an exception",
}
"""Endings that a reader would want to know of; an agent may well end without an answer if its work is what counts."""


def unminded(endings: Mapping[str, int], trials: int) -> Iterator[str]:
    """`3 of 12 trials ended in a timeout and failed no rule: they were judged on what there was`, for each ending."""
    for ending, words in _WORDS.items():
        if count := endings.get(ending):
            were = "it was" if count == 1 else "they were"
            yield (
                f"{count} of {trials} trial{'' if trials == 1 else 's'} ended in {words} and failed no rule: "
                f"{were} judged on what there was (a `completes` rule would fail)"
            )
