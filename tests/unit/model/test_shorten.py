"""Long texts, shortened."""

import pytest

from holdfast.model.shorten import get_beginning, shorten


@pytest.mark.parametrize(
    ("text", "shown"), [("a" * 9, "a" * 9), ("a" * 50 + "b" * 50, "aaa … bbb"), ("", ""), ("x" * 10, "xxx … xxx")]
)
def test_without_its_middle_a_text_keeps_to_the_limit(text, shown):
    assert shorten(text, 9) == shown


@pytest.mark.parametrize(("text", "shown"), [(" a\n b ", "a b"), ("a" * 6, "aaaa…"), ("a" * 5, "aaaaa"), ("", "")])
def test_the_beginning_is_one_line_of_at_most_the_limit(text, shown):
    assert get_beginning(text, 5) == shown
