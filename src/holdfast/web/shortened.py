"""What was recorded, as plain values of a bounded size: evidence may be a table of a million rows."""

from __future__ import annotations

from typing import Any

from holdfast.model.codec import to_builtins

TEXT, ITEMS, DEEP = 64_000, 1_000, 12
"""Characters of one text, items of one list or object, and how far one lies in the other."""


def shortened(value: Any) -> Any:
    """The same without what is too much, and with a word where something is left out."""
    return _short(to_builtins(value), DEEP)


def _short(value: Any, deep: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= TEXT else f"{value[:TEXT]}\n[cut here: {len(value) - TEXT} more characters]"
    if isinstance(value, int) and abs(value) >= 1 << 53 and not isinstance(value, bool):
        return str(value)  # a browser would show another number
    if not isinstance(value, dict | list):
        return value
    if not deep:
        return "[left out: it lies too deep]"
    if isinstance(value, dict):
        kept = {str(key): _short(inner, deep - 1) for key, inner in list(value.items())[:ITEMS]}
        return kept if len(value) <= ITEMS else {**kept, "…": f"[{len(value) - ITEMS} more are left out]"}
    items = [_short(inner, deep - 1) for inner in value[:ITEMS]]
    return items if len(value) <= ITEMS else [*items, f"[{len(value) - ITEMS} more are left out]"]
