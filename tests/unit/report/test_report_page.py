"""The documents of a page: bounded values, and the files that a trial changed."""

from __future__ import annotations

from holdfast.model.world import AuditEvent, FileTexts
from holdfast.report.page.trial import file_changes
from holdfast.report.page.values import ITEMS, TEXT, shortened


def test_what_is_recorded_has_a_bound_and_says_what_is_left_out() -> None:
    assert shortened({"rows": list(range(ITEMS + 5))})["rows"][-1] == "[5 more are left out]"
    assert shortened({str(n): n for n in range(ITEMS + 2)})["…"] == "[2 more are left out]"
    assert shortened("x" * (TEXT + 3)).endswith("[cut here: 3 more characters]")
    assert shortened([2**53, -(2**60), 7, True, None, 1.5]) == [str(2**53), str(-(2**60)), 7, True, None, 1.5]
    deep: object = "end"
    for _ in range(40):
        deep = [deep]
    assert "left out" in str(shortened(deep))


def change(before: str | None = None, after: str | None = None) -> AuditEvent:
    return AuditEvent(0.0, 1, "file_write", {"path": "a.txt", "op": "modified", "bytes": 9}, FileTexts(before, after))


def test_a_file_that_was_changed_has_its_difference() -> None:
    (found,) = file_changes([change(before="one\ntwo\n", after="one\n2\n")])
    assert found["diff"].splitlines() == ["--- a/a.txt", "+++ b/a.txt", "@@ -1,2 +1,2 @@", " one", "-two", "+2"]
    (made,) = file_changes([change(after="new\n")])
    assert made["diff"].endswith("+new")
    (unknown,) = file_changes([change()])
    assert (unknown["diff"], unknown["before"], unknown["bytes"]) == ("", None, 9)
    assert file_changes([AuditEvent(0.0, 1, "command", {"argv": ["ls"]})]) == []
