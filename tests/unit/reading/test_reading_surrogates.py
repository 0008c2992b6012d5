"""A spec that json.dumps has written: characters beyond the first plane are two escapes."""

from __future__ import annotations

import json

import pytest

from holdfast.reading.tree import parse

VALUES = [
    "😀",
    "a😀b🚀c",
    "\U00010000\U0010ffff",
    "café \u2028 😀",
    "back\\slash 😀",
    '"quoted" 😀',
    "\\ud83d\\ude00 😀",
]


def plain(text: str) -> object:
    root, problems = parse(text)
    assert not problems
    assert root is not None
    return root.to_plain()


def test_what_json_writes_is_read_as_it_was_meant() -> None:
    for indent in [None, 2]:
        for value in VALUES:
            document = {"a": [value, {value: 1}], "b": value}
            assert plain(json.dumps(document, indent=indent)) == document, (indent, value)


def test_every_place_stays_what_it_is() -> None:
    text = '{"a": "\\ud83d\\ude00", "b": 1}'
    root, _ = parse(text)
    assert root is not None
    assert (root.get_key("b").column, root.get("b").column) == (text.index('"b"') + 1, text.index("1}") + 1)
    start, end = root.get("a").span
    assert text[start:end] == '"\\ud83d\\ude00"'


def test_without_double_quotes_a_backslash_is_a_backslash() -> None:
    text = "a: \"\\ud83d\\ude00\"\nb: '\\ud83d\\ude00'\nc: \\ud83d\\ude00\nd: |\n  \\ud83d\\ude00\n"
    assert plain(text) == {"a": "😀", "b": "\\ud83d\\ude00", "c": "\\ud83d\\ude00", "d": "\\ud83d\\ude00\n"}


def test_characters_of_the_private_range_are_left_alone_where_there_is_no_pair() -> None:
    assert plain('a: "\\ue03d\\ue600"') == {"a": "\ue03d\ue600"}


@pytest.mark.parametrize("lone", ["\\ud83d", "\\ude00", "\\ude00\\ud83d", "\\ud83d x \\ude00"])
def test_half_a_pair_is_an_error(lone: str) -> None:
    root, problems = parse(f'a: "{lone}"')
    assert root is None
    assert [problem.code for problem in problems] == ["yaml-syntax"]
