"""What of a prompt is exact, what is a name, and what may be changed."""

from __future__ import annotations

from random import Random
from typing import SupportsIndex

import pytest

from holdfast.mutate.length_extremes import _remove_courtesies
from holdfast.mutate.noise import _add_typos
from holdfast.mutate.words import find_exact_parts, find_free_words, find_gaps, find_names


@pytest.mark.parametrize(
    ("prompt", "parts"),
    [
        ("Where is order A-1234?", ["A-1234"]),
        ('The "Blue Lamp" for $49.90, please', ["Blue Lamp", "$49.90"]),
        ("Write to ann@example.com (by 2026-05-17).", ["ann@example.com", "2026-05-17"]),
        ("See https://example.com/a?b=c and /etc/hosts", ["https://example.com/a?b=c", "/etc/hosts"]),
        ("Was ist „blau“, was ist «bleu»?", ["blau", "bleu"]),
        ("city: Oslo\nguests: 4", ["city", "guests", "4"]),
        ("Fill in {name} for {{ params.who }}", ["{name}", "{{ params.who }}"]),
        ("It's the user's own", []),
        ("我的订单A-1234在哪里？", ["A-1234"]),
        ("/bin/rm -rf build now", ["/bin/rm -rf build"]),
        ("sudo ~/bin/clean old", ["sudo ~/bin/clean old"]),
        ("Rm -rf build now", ["Rm -rf build"]),
        ("RM -RF build now", ["RM -RF build"]),
        (r"rm -rf my\ folder now", [r"rm -rf my\ folder"]),
        ("rm -rf my/folder now", ["rm -rf my/folder"]),
        ("rm -rf 'my old folder' now", ["rm -rf 'my old folder"]),
        ("Hello - how are you?", []),
    ],
)
def test_exact_parts(prompt: str, parts: list[str]) -> None:
    assert find_exact_parts(prompt) == parts


@pytest.mark.parametrize(
    ("prompt", "found"),
    [
        ("Tell Maria that the NASA team is in Oslo.", ["Maria", "NASA", "Oslo"]),
        ("When I'm in town, may I come?", []),
        ("Hello. Where is it?", []),
        ("WHERE IS MY ORDER NOW", []),
        ("How To Cancel My Plan", []),
        ("我的订单", []),
    ],
)
def test_names(prompt: str, found: list[str]) -> None:
    assert find_names(prompt) == found


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ('Tell Maria about "the lamp" A-1 today', ["about", "today"]),
        ("Hi", ["Hi"]),
        ("WHERE IS IT NOW", ["WHERE", "IS", "IT", "NOW"]),
        ("我的订单 42", []),
        ("take 5   st now please", ["take", "now", "please"]),  # a number makes a short word a unit
    ],
)
def test_free_words_are_neither_names_nor_exact_unless_nothing_else_is_left(prompt: str, words: list[str]) -> None:
    assert [word.text for word in find_free_words(prompt)] == words


def test_gaps_are_not_inside_of_what_is_exact() -> None:
    prompt = 'tell "b c" it is 4 kg to Oslo now again'
    assert [prompt[at:].split()[0] for at in find_gaps(prompt)] == ["is", "again"]


def test_a_long_text_is_read_in_proportion_to_its_size() -> None:
    class Counted(str):
        copied = 0

        def __getitem__(self, key: SupportsIndex | slice) -> str:
            part = super().__getitem__(key)
            Counted.copied += len(part)
            return part

    text = Counted("Take 5 kg of it to Maria in Oslo, as we go. " * 4_600)
    assert len(text) > 200_000
    assert len(find_free_words(text)) > 4_600
    assert Counted.copied < 2 * len(text)


@pytest.mark.parametrize(
    ("prompt", "made"),
    [
        ("Hello. Goodbye. Translate both words", "Hello. Goodbye. Translate both words"),
        ("Translate: hello, hi, good morning", "Translate: hello, hi, good morning"),
        ("Say hello! And goodbye! What do they mean", "Say hello! And goodbye! What do they mean"),
        ("Hello, where is order 7? Thank you.", "where is order 7?"),
        ("Where is order 7, please?", "Where is order 7?"),
        ("Hi! Could you please send it, thanks", "send it"),
    ],
)
def test_only_courtesies_that_nobody_asks_about_are_taken_away(prompt: str, made: str) -> None:
    assert _remove_courtesies(prompt, Random(0)) == made


@pytest.mark.parametrize("how", ["neighbour", "missing", "doubled", "swapped"])
def test_a_typo_is_not_another_word(how: str) -> None:
    words = "files form there later coast stale signs causal trail angle slat diary quiet united hoping planed bread"
    others = "flies from three latter cost steal sings casual trial angel salt dairy quite untied hopping planned"
    for seed in range(300):
        made = _add_typos(f"what about {words}", Random(seed), how).split()
        assert not set(made) & {*others.split()}
