"""One name, one meaning: no two classes share a name, and each noun of our pages is where its table says."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from holdfast.plugins import BUILT_IN

ROOT = Path(__file__).parents[2]
PRODUCT = ROOT / "src/holdfast"
CLASS = re.compile(r"^ *class (\w+)[(:]", re.MULTILINE)
ALIAS = re.compile(r"^([A-Z]\w*[a-z]\w*)(?:: TypeAlias)? = (?=[A-Z\"]|tuple\[|dict\[)", re.MULTILINE)
"""A name for a type: `Name = Callable[...]`, `Name: TypeAlias = ...`."""
PLUG_INS = frozenset(place.rpartition(":")[2] for family in BUILT_IN.values() for place in family.values())
"""A plug-in's name is that of its mode, and families share modes: a tool and a model both have a `timeout`."""
USERS = "starter"
"""What is in there becomes a file of the user's."""


@cache
def names_in(path: Path) -> frozenset[str]:
    """What a module is and defines, lower-case and without underscores: its own name, its classes and type aliases."""
    text = path.read_text()
    found = [path.stem, *CLASS.findall(text), *re.findall(r"^(\w+): TypeAlias = ", text, re.MULTILINE)]
    return frozenset(plain(name) for name in found)


def names_at(place: str) -> set[str]:
    """What the table may call a place: a module's names, or those of a package's modules and the package's own."""
    path = PRODUCT / place
    if path.is_file():
        return set(names_in(path))
    return {name for file in path.rglob("*.py") for name in names_in(file)} | {plain(path.name).removesuffix("s")}


def plain(name: str) -> str:
    return name.replace("_", "").lower()


def nouns() -> Iterator[tuple[str, tuple[str, ...]]]:
    """The nouns of both tables, each with the places of its row."""
    pages = (ROOT / page for page in ("ARCHITECTURE.md", "docs/internals.md"))
    for line in (line for page in pages for line in page.read_text().splitlines()):
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) > 1 and (bold := re.findall(r"\*\*(\w+)\*\*", cells[0])):
            places = tuple(re.findall(r"`([^`]+)`", cells[-1]))
            yield from ((noun, places) for noun in bold)


def test_no_two_types_share_a_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PRODUCT.rglob("*.py")):
        room = path.relative_to(PRODUCT).parts[0]
        if room != USERS:
            text = path.read_text()
            of_plug_ins = PLUG_INS if room in ("checks", "faults") else frozenset()
            for name in {*CLASS.findall(text), *ALIAS.findall(text)} - of_plug_ins:
                places[name].append(str(path.relative_to(PRODUCT)))
    assert len(places) > 100
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_the_table_has_nouns_and_says_each_once() -> None:
    told = [noun for noun, _ in nouns()]
    assert len(told) > 20
    assert sorted(told) == sorted(set(told))


@pytest.mark.parametrize(("noun", "places"), list(nouns()), ids=[noun for noun, _ in nouns()])
def test_a_noun_is_a_class_or_a_module_at_its_place(noun: str, places: tuple[str, ...]) -> None:
    assert places, f"the row of {noun} names no place"
    assert [place for place in places if not (PRODUCT / place).exists()] == []
    held = {name for place in places for name in names_at(place)}
    assert plain(noun) in held, f"{noun} is neither a class nor a module of {places}"
