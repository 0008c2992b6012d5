from pathlib import Path

import pytest
import yaml
from check_exhibits import exhibit

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
