"""Texts that ship as data: attacks, filler and phrases, read when first needed."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def read_texts(name: str) -> tuple[str, ...]:
    """Return the texts of `data/<name>.txt`, separated by lines of `---`."""
    source = (files("holdfast.faults") / "data" / f"{name}.txt").read_text("utf-8")
    return tuple(text.strip() for text in f"\n{source}\n".split("\n---\n"))


@cache
def read_pairs(name: str) -> tuple[tuple[str, str], ...]:
    """Return the lines `old => new` of `data/<name>.txt`."""
    lines = (line.partition(" => ") for text in read_texts(name) for line in text.splitlines())
    return tuple((old.strip(), new.strip()) for old, _, new in lines)
