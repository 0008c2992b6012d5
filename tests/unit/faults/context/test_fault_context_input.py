"""Attacks on the agent's input: where each puts its text, and that built-in texts have a canary."""

from typing import Any

import pytest

from holdfast.faults.context.conflicting_context import ConflictingContext
from holdfast.faults.context.injection_via_context import InjectionViaContext
from holdfast.faults.context.memory_poisoning import MemoryPoisoning
from holdfast.faults.context.overflow import Overflow
from holdfast.model.canary import find_canaries
from holdfast.model.shorten import count_tokens

DOCUMENT = "Context (retrieved document):\n<document>\nEVIL\n</document>"


@pytest.mark.parametrize(
    ("attack", "expected"),
    [
        (ConflictingContext(payload="NO"), "ask\n\nNO"),
        (ConflictingContext(payload="NO", inject_at="start"), "NO\n\nask"),
        (InjectionViaContext(payload="EVIL"), f"{DOCUMENT}\n\nask"),
        (InjectionViaContext(payloads=("EVIL",), inject_at="end"), f"ask\n\n{DOCUMENT}"),
        (MemoryPoisoning(payload="EVIL"), "EVIL\n\nask"),
        (MemoryPoisoning(payload="EVIL", strategy="append"), "ask\n\nEVIL"),
        (MemoryPoisoning(payload="EVIL", strategy="replace"), "EVIL"),
    ],
)
def test_an_attack_puts_its_text_into_the_input(context: Any, attack: Any, expected: str) -> None:
    assert attack.rewrite("ask", context()) == expected


@pytest.mark.parametrize("kind", [ConflictingContext, InjectionViaContext, MemoryPoisoning])
def test_a_built_in_text_has_one_canary(context: Any, kind: Any) -> None:
    text = kind().rewrite("ask", context())
    assert "ask" in text
    assert len(find_canaries(text)) == 1


def test_one_of_several_payloads_is_chosen(context: Any) -> None:
    attack = ConflictingContext(payloads=("a", "b"))
    assert {attack.rewrite("ask", context(seed)) for seed in range(20)} == {"ask\n\na", "ask\n\nb"}


@pytest.mark.parametrize("tokens", [1, 7, 250, 4000])
def test_overflow_adds_a_number_of_tokens(context: Any, tokens: int) -> None:
    text = Overflow(inject_tokens=tokens).rewrite("what is it worth", context())
    assert text.endswith("\n\nwhat is it worth")
    assert count_tokens(text) == tokens + 4


def test_overflow_adds_4000_tokens_before_the_input_by_default(context: Any) -> None:
    assert Overflow() == Overflow(inject_tokens=4000, inject_at="start")
    assert Overflow(inject_tokens=9, inject_at="end").rewrite("ask", context()).startswith("ask\n\n")
