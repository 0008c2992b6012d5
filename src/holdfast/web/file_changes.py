"""The files that a trial changed, each with its difference where both sides were recorded."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import unified_diff
from typing import Any

from holdfast.model.world import AuditEvent, FileTexts

FILES, DIFFED = 500, 200_000
"""Files that the page gets, and characters of them that are compared."""


def file_changes(audit: Iterable[AuditEvent]) -> list[dict[str, Any]]:
    """Every file that was made, changed or removed, as the audit log has it."""
    found = [event for event in audit if event.type == "file_write"]
    return [_change(event.details, event.texts or FileTexts()) for event in found[:FILES]]


def _change(details: dict[str, Any], texts: FileTexts) -> dict[str, Any]:
    before, after, path = texts.before, texts.after, str(details.get("path", ""))
    return {
        "path": path,
        "op": str(details.get("op", "")),
        "bytes": details.get("bytes"),
        "before": before,
        "after": after,
        "diff": _diff(path, before, after),
    }


def _diff(path: str, before: str | None, after: str | None) -> str:
    """As `diff -u` shows it; nothing where neither side is known."""
    if (before is None and after is None) or len(before or "") + len(after or "") > DIFFED:
        return ""
    old, new = ((text or "").splitlines() for text in (before, after))
    return "\n".join(unified_diff(old, new, f"a/{path}", f"b/{path}", lineterm=""))
