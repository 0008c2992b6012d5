"""How a finding words what it saw."""

from __future__ import annotations

import pytest

from holdfast.checks.wording import shorten


@pytest.mark.parametrize(
    ("text", "limit", "shown"),
    [
        ("a" * 33, 33, "a" * 33),
        ("a" * 50 + "b" * 50, 33, "a" * 15 + " … " + "b" * 15),
        ("one\ntwo\x00", 33, "one two·"),
        ("half \ud800", 33, "half ?"),
        ("\x1b[91m" * 9 + "AssertionError\x1b[0m: 1 \x9b1m!= 2\x1b[", 33, "AssertionError: 1 != 2·["),
    ],
)
def test_a_long_text_is_one_line_without_its_middle(text: str, limit: int, shown: str) -> None:
    assert shorten(text, limit) == shown
