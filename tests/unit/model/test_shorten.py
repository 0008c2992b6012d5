"""Long texts, shortened."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.shorten import count_tokens, get_beginning, shorten, split_tokens, take_tokens


@pytest.mark.parametrize(
    ("text", "shown"), [("a" * 9, "a" * 9), ("a" * 50 + "b" * 50, "aaa … bbb"), ("", ""), ("x" * 10, "xxx … xxx")]
)
def test_without_its_middle_a_text_keeps_to_the_limit(text, shown):
    assert shorten(text, 9) == shown


@pytest.mark.parametrize(("text", "shown"), [(" a\n b ", "a b"), ("a" * 6, "aaaa…"), ("a" * 5, "aaaaa"), ("", "")])
def test_the_beginning_is_one_line_of_at_most_the_limit(text, shown):
    assert get_beginning(text, 5) == shown


@pytest.mark.parametrize(
    ("text", "limit", "cut"),
    [
        ("The price is $189.30 today.", 4, "The price is $"),
        ("one two", 2, "one two"),
        ("one two ", 5, "one two "),
        ("one", 0, ""),
        ("価格は高い", 2, "価格"),
        ("", 3, ""),
    ],
)
def test_a_token_is_a_word_a_sign_or_a_mark(text, limit, cut):
    assert take_tokens(text, limit) == cut


@given(st.text(), st.integers(0, 20))
def test_a_cut_text_is_a_beginning_with_no_more_tokens_than_allowed(text, limit):
    cut = take_tokens(text, limit)
    assert text.startswith(cut)
    assert count_tokens(cut) == min(limit, count_tokens(text))


@given(st.text("ab1 .,\n\u4e2d"))
def test_pieces_of_a_text_have_a_token_each_and_join_to_it(text):
    pieces = split_tokens(text)
    assert "".join(pieces) == text
    assert [count_tokens(piece) for piece in pieces] in ([1] * count_tokens(text), [0], [])
