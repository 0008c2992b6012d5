"""No key of the spec file is accepted and ignored: something outside its section reads every one of them."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

import holdfast

SOURCE = Path(holdfast.__file__).parent
SECTIONS = SOURCE / "spec" / "sections"


def keys() -> list[tuple[Path, str, str]]:
    """File, class and field of every key of a section."""
    return [
        (path, node.name, field.target.id)
        for path in SECTIONS.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        for field in node.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and field.target.id != "at"
    ]


def reads() -> dict[str, set[Path]]:
    """The files that read an attribute or an item of that name, without the pages that only describe the keys."""
    found: dict[str, set[Path]] = defaultdict(set)
    for path in SOURCE.rglob("*.py"):
        if "catalogue" not in path.parts:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                    found[node.attr].add(path)
                elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                    found[str(node.slice.value)].add(path)
    return found


@pytest.mark.slow
def test_every_key_is_read_outside_its_section() -> None:
    known, readers = keys(), reads()
    assert len(known) > 150
    assert [(owner, name) for path, owner, name in known if not readers[name] - {path}] == []
