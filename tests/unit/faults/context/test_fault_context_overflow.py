import pytest

from holdfast.faults.context.overflow import Overflow
from holdfast.model.shorten import count_tokens

PROMPT = "what is it worth"


@pytest.mark.parametrize("tokens", [1, 7, 250, 4000])
def test_overflow_adds_exactly_so_many_tokens(context, tokens):
    text = Overflow(inject_tokens=tokens).rewrite(PROMPT, context())
    assert text.endswith(f"\n\n{PROMPT}")
    assert count_tokens(text) == tokens + 4


def test_overflow_is_four_thousand_tokens_before_the_input_by_default():
    assert Overflow() == Overflow(inject_tokens=4000, inject_at="start")


def test_overflow_goes_where_it_is_told(context):
    assert Overflow(inject_tokens=9, inject_at="end").rewrite("ask", context()).startswith("ask\n\n")
    middle = Overflow(inject_tokens=9, inject_at="middle").rewrite("ask this", context())
    assert middle.startswith("ask\n\n")
    assert middle.endswith("\n\nthis")


def test_overflow_depends_on_luck_alone(context):
    assert Overflow().rewrite("ask", context(1)) == Overflow().rewrite("ask", context(1))
    assert Overflow().rewrite("ask", context(1)) != Overflow().rewrite("ask", context(2))
