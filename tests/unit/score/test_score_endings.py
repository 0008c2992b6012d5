from __future__ import annotations

from collections import Counter

import pytest

from golden_words import Golden
from holdfast.model.spec import Invariant
from holdfast.score.run_totals import BadEndings


def notes_of_12(check: str, judged: set[str], **endings: int) -> list[str]:
    made = BadEndings([Invariant("r", check, {"value": "x"} if check == "contains" else {})])
    made.unjudged, made.judged = Counter(endings), judged
    return [*made.describe_endings(12)]


def test_endings_that_failed_no_rule_are_counted(golden: Golden) -> None:
    golden(notes_of_12("contains", set(), timeout=3, crashed=1, no_answer=5))
    assert notes_of_12("contains", set()) == []


@pytest.mark.parametrize(("judged", "notes"), [({"crashed"}, 1), ({"crashed", "timeout"}, 0), (set(), 2)])
def test_endings_by_which_a_rule_on_endings_failed_are_known(judged: set[str], notes: int) -> None:
    found = notes_of_12("completes", judged, timeout=3, crashed=1)
    assert len(found) == notes
    assert not any("completes" in note for note in found)
