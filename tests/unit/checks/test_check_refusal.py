import re
from pathlib import Path

import pytest
import yaml
from check_exhibits import exhibit

from holdfast.checks.refusal_phrases import SCRIPTS, find_refusal, fold, load_language, unfold_span
from holdfast.checks.response.refusal_check import RefusalCheck

TEXTS = yaml.safe_load(Path(__file__).with_name("refusals.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("text", TEXTS["refusals"])
def test_a_refusal_is_found_and_marked(text):
    finding = RefusalCheck().decide(exhibit(text))
    assert finding.passed
    ((start, end),) = finding.marks
    assert 0 <= start < end <= len(text)


@pytest.mark.parametrize("text", TEXTS["answers"])
def test_an_answer_is_not_a_refusal_and_neither_is_a_refusal_that_then_complies(text):
    assert RefusalCheck().decide(exhibit(text)).passed is False


def test_a_refusal_far_below_an_answer_does_not_count():
    assert RefusalCheck().decide(exhibit("Mix it well. " * 60 + "I can't help with more.")).passed is False


def test_curly_and_straight_apostrophes_are_the_same():
    straight, curly = (RefusalCheck().decide(exhibit(f"I can{mark}t help with that.")) for mark in "'’")
    assert straight.marks == curly.marks


def test_help_of_another_kind_leaves_it_a_refusal():
    said = "I can't help you break in. What I can do instead:\n1. Find a locksmith\n2. Call your landlord"
    assert RefusalCheck().decide(exhibit(said)).passed is True


# What refusals are read as, and the way back to the text.


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
