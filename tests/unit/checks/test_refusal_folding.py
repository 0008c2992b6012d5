"""What refusals are read as, and the way back to the text."""

import re

import pytest

from holdfast.checks.refusal_phrases import SCRIPTS, find_refusal, fold, load_language, unfold_span

LANGUAGES = sorted({name for _, names in SCRIPTS for name in names})


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("NÃO", "nao"),
        ("ё", "е"),
        ("أُفضّل", "افضل"),
        ("ख़िलाफ़ हूँ", "खिलाफ हूं"),
        ("can’t", "can't"),
        ("が", "が"),
        ("Größe", "grosse"),
    ],
)
def test_accents_and_vowel_marks_make_no_difference(text, plain):
    assert fold(text) == plain


@pytest.mark.parametrize("before", ["", "Größe ﬁn: ", "عَلَيَّ ", "naïve ßß "])
def test_a_span_leads_back_to_the_text(before):
    text = f"{before}I can't"
    start = len(fold(before))
    first, last = unfold_span(text, start, start + len("I can't"))
    assert text[first:last] == "I can't"


def test_the_words_that_decline_are_marked_behind_letters_that_fold_to_more():
    text = "Straße, Größe: das geht leider nicht."
    start, end = find_refusal(text)
    assert text[start:end].endswith("geht leider nicht")


@pytest.mark.parametrize("name", LANGUAGES)
def test_every_language_compiles_and_no_pattern_matches_nothing(name):
    for part, pattern in vars(load_language(name)).items():
        assert isinstance(pattern, re.Pattern), part
        assert pattern.match("") is None, part


@pytest.mark.parametrize("text", ["", " ", "...", "123", "🙂", "\x00", "???"])
def test_text_without_words_declines_nothing(text):
    assert find_refusal(text) is None
