"""The place of a key in a spec's file, for errors that are found after it was loaded."""

from __future__ import annotations

import re

from holdfast.model.scenario import Position
from holdfast.model.spec import Spec
from holdfast.reading.tree import parse
from holdfast.spec.load import read_source


def find_key_position(spec: Spec, key: str) -> Position | None:
    """Return where the file has a key such as `agent.tools[1]`; its agent's section if the key is not written there."""
    node, _ = parse(read_source(spec))
    for part in re.findall(r"[^.\[\]]+", key):
        if node is None:
            break
        if node.kind == "list":
            node = node.items[int(part)] if part.isdecimal() and int(part) < len(node.items) else None
        else:
            node = node.get(part) if node.has(part) else None
    return spec.agent.position if node is None else node.position
