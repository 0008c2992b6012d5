"""Patterns of paths: fitting, and what is taken by name."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.world.services.mock.routes import PathPattern

PIECES = st.sampled_from(["/", "a", "b", "ab", "*", "**", "{x}", "{y}", "{", "\n"])


def backtracking(pattern: str, path: str) -> dict[str, str] | None:
    """The same by a regular expression, which is short and can take for ever."""
    wildcards = {"**": ".*", "*": "[^/]*"}
    parts, named = [], set()
    for found in re.finditer(r"\{(\w+)\}|\*\*|\*|.", pattern, re.DOTALL):
        name = found[1]
        if name:
            parts.append("[^/]+" if name in named else f"(?P<{name}>[^/]+)")
            named.add(name)
        else:
            parts.append(wildcards.get(found[0], re.escape(found[0])))
    fits = re.fullmatch("".join(parts), path, re.DOTALL)
    return None if fits is None else fits.groupdict()


@given(st.lists(PIECES, max_size=8).map("".join), st.text("/ab\n{x", max_size=12))
def test_a_path_fits_as_a_regular_expression_says(pattern: str, path: str) -> None:
    assert PathPattern(pattern).match(path) == backtracking(pattern, path)


@given(st.lists(PIECES, max_size=8).map("".join), st.lists(st.text("/ab", max_size=4), min_size=8, max_size=8))
def test_a_path_made_of_its_pattern_fits_as_a_regular_expression_says(pattern: str, texts: list[str]) -> None:
    left = iter(texts)
    path = re.sub(r"\{\w+\}|\*\*?", lambda _: next(left, "a"), pattern)
    assert PathPattern(pattern).match(path) == backtracking(pattern, path)


@given(st.text(max_size=40))
def test_any_text_can_be_a_pattern(text: str) -> None:
    PathPattern(text).match(text)


@pytest.mark.parametrize(
    ("pattern", "path", "named"),
    [
        ("/users/{id}/mail/{n}", "/users/7/mail/3", {"id": "7", "n": "3"}),
        ("/{a}/{a}", "/1/2", {"a": "1"}),
        ("/{1}", "/x", {}),
        ("/**/{last}", "/a/b/c", {"last": "c"}),
        ("", "", {}),
        ("", "/", None),
    ],
)
def test_what_is_taken_by_name(pattern: str, path: str, named: dict[str, str] | None) -> None:
    assert PathPattern(pattern).match(path) == named
