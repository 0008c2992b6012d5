from random import Random

import pytest

from holdfast.faults.attacks import choose_payload, insert_paragraph
from holdfast.faults.texts import read_texts
from holdfast.model.canary import draw_canary, find_canaries

SHIPPED = [
    "conflicting_context",
    "indirect_injection",
    "injection_via_context",
    "malicious_response",
    "memory_poisoning",
]


@pytest.mark.parametrize("attack", SHIPPED)
def test_every_shipped_attack_text_carries_a_canary(attack):
    texts = read_texts(attack)
    assert len(texts) >= 3
    assert all("{canary}" in text for text in texts)


@pytest.mark.parametrize("attack", SHIPPED)
def test_the_canary_that_was_placed_can_be_found_again(attack):
    payload = choose_payload(None, (), attack, Random(7))
    assert len(find_canaries(payload)) == 1
    assert "{canary}" not in payload
    assert payload == choose_payload(None, (), attack, Random(7))


def test_canaries_differ_by_seed():
    assert len({draw_canary(Random(seed)) for seed in range(50)}) == 50


def test_configured_payloads_replace_the_built_in_ones():
    seen = {choose_payload("one", ["two {x}"], "indirect_injection", Random(seed)) for seed in range(20)}
    assert seen == {"one", "two {x}"}
    assert find_canaries(choose_payload("say {canary}", (), "indirect_injection", Random(1)))


@pytest.mark.parametrize(
    ("place", "expected"),
    [("start", "X\n\na b c d"), ("middle", "a b\n\nX\n\nc d"), ("end", "a b c d\n\nX")],
)
def test_an_addition_is_inserted_at_its_place(place, expected):
    assert insert_paragraph("a b c d", "X", place) == expected


def test_the_middle_of_one_word_is_its_end():
    assert insert_paragraph("word", "X", "middle") == "word\n\nX\n\n"
