"""What to write instead of a value of the wrong shape."""

from __future__ import annotations

import re
from typing import Any, Literal, get_args, get_origin

from holdfast.model.shorten import shorten
from holdfast.reading.fields import keys_of, peel
from holdfast.reading.limits import SCALARS
from holdfast.reading.node import Node
from holdfast.reading.scalars import plain
from holdfast.reading.words import near_hint

_BOOLS = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}
UNCLOSED = "the reference has no closing brace"
_UNCLOSED = re.compile(r"\$\{[A-Za-z_]\w*(?::-[^}]*)?$")


def scalar_hint(base: type, node: Node) -> str:
    """Of a scalar that another kind of scalar stands for."""
    if base is str:
        return f'quote it: "{node.text}"' if node.kind in ("int", "float", "bool") else ""
    if node.kind != "text" or node.reference or not node.text:
        return ""
    if base is bool and node.text.lower() in _BOOLS:
        return f"write {_BOOLS[node.text.lower()]}"
    return f"write {node.text} without quotes" if node.style and plain(node.text)[0] in SCALARS[base][0] else ""


def list_hint(element: Any, node: Node) -> str:
    """Of one value where a list of them is expected."""
    if node.kind == "null":
        return "write [] for none"
    if node.kind == "map":
        return "start each entry with a dash: - key: value"
    hint = peel(element)
    words = hint.form.words if hint.form else ""
    if node.kind == "text" and (hint.base is str or get_origin(hint.base) is Literal or words.startswith("text,")):
        return (
            f'write ["{shorten(node.text, 40)}"]' if '"' not in node.text else "write it as an entry of a list: - text"
        )
    return f"write [{node.text}]" if node.kind in ("int", "float", "bool") and not node.reference else ""


def map_hint(kind: Any, node: Node) -> str:
    """Of a value where a map of keys is expected."""
    if node.kind == "null":
        return "write {} for none" if kind is None else "write its keys below it"
    if node.kind == "list":
        return "remove the dashes: its keys stand below it" if any(i.kind == "map" for i in node.items) else ""
    needed = [field.key for field in keys_of(kind) if field.required] if kind is not None else []
    return f"write {{{needed[0]}: {shorten(node.text, 40)}}}" if len(needed) == 1 else "write key: value"


def option_hint(members: tuple[Any, ...], node: Node) -> str:
    """The near miss among the options that stand beside other forms."""
    options = [str(o) for m in members if get_origin(peel(m).base) is Literal for o in get_args(peel(m).base)]
    return near_hint(node.text, options) if options and node.kind == "text" else ""


def unclosed(text: str) -> str:
    """What to write for a reference whose brace is not closed; empty if there is none."""
    return f"close it: {shorten(text, 60)}}}" if _UNCLOSED.search(text) else ""
