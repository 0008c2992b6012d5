"""The files that a trial changed, each with its difference where both sides were recorded."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import unified_diff
from typing import Any

from holdfast.model.world import AuditEvent

FILES, DIFFED = 500, 200_000
"""Files that the page gets, and characters of them that are compared."""


def file_changes(audit: Iterable[AuditEvent]) -> list[dict[str, Any]]:
    """Every file that was made, changed or removed, as the audit log has it."""
    found = [event.details for event in audit if event.type == "file_write"]
    return [_change(details) for details in found[:FILES]]


def _change(details: dict[str, Any]) -> dict[str, Any]:
    before, after = (_text(details.get(name)) for name in ("before", "after"))
    path = str(details.get("path", ""))
    return {
        "path": path,
        "op": str(details.get("op", "")),
        "bytes": details.get("bytes"),
        "before": before,
        "after": after,
        "diff": _diff(path, before, after),
    }


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _diff(path: str, before: str | None, after: str | None) -> str:
    """As `diff -u` shows it; nothing where neither side is known."""
    if (before is None and after is None) or len(before or "") + len(after or "") > DIFFED:
        return ""
    old, new = ((text or "").splitlines() for text in (before, after))
    return "\n".join(unified_diff(old, new, f"a/{path}", f"b/{path}", lineterm=""))
