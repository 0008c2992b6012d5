import json

import pytest

from holdfast.faults.llm.response_drift import ResponseDrift
from holdfast.model.shorten import count_tokens

JSON = '{"unit_price": 1, "rows": [{"name": "a"}], "total": 2}'
PROSE = "The price is high. However, it does not rise. Buy later. Wait for the news first."


def drift(drift_type, severity="subtle", **more):
    return ResponseDrift(drift_type=drift_type, severity=severity, **more)


def names(text):
    data = json.loads(text)
    return {*data, *(name for row in next(v for v in data.values() if isinstance(v, list)) for name in row)}


@pytest.mark.parametrize(("severity", "changed"), [("subtle", 1), ("moderate", 2), ("significant", 4)])
def test_json_field_rename_changes_more_fields_with_severity(meet, severity, changed):
    received = meet(drift("json_field_rename", severity), JSON)
    assert len(names(JSON) - names(received)) == changed


def test_json_field_rename_reaches_a_fenced_block(meet):
    received = meet(drift("json_field_rename"), 'Here:\n```json\n{"a": 1}\n```\nDone.')
    assert received == 'Here:\n```json\n{"a_value": 1}\n```\nDone.'


@pytest.mark.parametrize("text", [PROSE, "[1, 2]", ""])
def test_json_field_rename_has_no_effect_without_fields(meet, text):
    assert meet(drift("json_field_rename"), text) is text


@pytest.mark.parametrize(("severity", "factor"), [("subtle", 1.5), ("moderate", 2), ("significant", 4)])
def test_verbosity_shift_expands_by_severity(meet, severity, factor):
    received = meet(drift("verbosity_shift", severity), PROSE)
    assert received.startswith(PROSE)
    assert factor <= count_tokens(received) / count_tokens(PROSE) < factor + 1


@pytest.mark.parametrize("factor", [2.0, 0.5])
def test_verbosity_shift_compresses_to_whole_sentences(meet, factor):
    received = meet(drift("verbosity_shift", direction="compress", factor=factor), PROSE)
    assert received == PROSE.split(". ")[0] + "."


def test_verbosity_shift_cuts_a_single_sentence(meet):
    assert meet(drift("verbosity_shift", direction="compress", factor=2.0), "one two three four") == "one two"


@pytest.mark.parametrize("kind", ["verbosity_shift", "tone_shift"])
@pytest.mark.parametrize("text", [JSON, "", "  "])
def test_shifts_of_wording_do_not_change_json_or_an_empty_text(meet, kind, text):
    assert meet(drift(kind, "significant"), text) is text


@pytest.mark.parametrize(
    ("text", "severity", "changed"),
    [
        ('{"a": 1}', "subtle", '```json\n{"a": 1}\n```'),
        (
            '```json\n{"unit_price": 1, "tags": ["x", "y"]}\n```',
            "significant",
            "The unit price is 1. The tags is x and y.",
        ),
        ("Hi.", "subtle", "```\nHi.\n```"),
        ("Hi.", "moderate", '{"answer": "Hi."}'),
        ("Hi.", "significant", 'Here is the answer as JSON:\n\n```json\n{"answer": "Hi."}\n```'),
    ],
)
def test_format_change_turns_json_to_prose_and_prose_to_json(meet, text, severity, changed):
    assert meet(drift("format_change", severity), text) == changed


def test_format_change_puts_remarks_around_json(meet):
    received = meet(drift("format_change", "moderate"), '{"a": 1}')
    assert '```json\n{"a": 1}\n```' in received
    assert not received.startswith("```")


@pytest.mark.parametrize(
    ("text", "severity", "changed"),
    [
        ("Sorry, I can’t help with that.", "subtle", "Sorry, I cannot help with that."),
        ("I cannot do it.", "subtle", "I can't do it."),
        ("I can't help with that.", "moderate", "I'm not in a position to assist with that."),
        ("I am unable to say.", "moderate", "I don't have a way to say."),
    ],
)
def test_refusal_rephrase_rewords_a_refusal(meet, text, severity, changed):
    assert meet(drift("refusal_rephrase", severity), text) == changed


def test_refusal_rephrase_may_replace_the_refusal_altogether(meet):
    received = meet(drift("refusal_rephrase", "significant"), "I'm unable to help.")
    assert "unable" not in received
    assert len(received) > 20


def test_refusal_rephrase_has_no_effect_without_a_refusal(meet):
    assert meet(drift("refusal_rephrase", "significant"), PROSE) is PROSE


def test_tone_shift_grows_with_severity_and_keeps_the_facts(meet):
    text = "The total is 42, however it does not include tax. I can't say more, but buy it."
    subtle, moderate, significant = (
        meet(drift("tone_shift", severity), text, seed=1) for severity in ("subtle", "moderate", "significant")
    )
    assert subtle.endswith(text)
    assert subtle != text
    assert text not in moderate
    assert "42" in moderate
    assert significant.startswith(moderate)
    assert significant != moderate


def test_tone_shift_goes_both_ways(meet):
    received = {
        meet(drift("tone_shift", "moderate"), "It does not rise, but it can't fall.", seed=s) for s in range(20)
    }
    assert any("doesn't" in text for text in received)
    assert any("however" in text and "cannot" in text for text in received)


def test_response_drift_works_inside_a_reply(meet):
    received = meet(drift("format_change"), {"choices": [{"message": {"content": "Hi."}}]})
    assert received == {"choices": [{"message": {"content": "```\nHi.\n```"}}]}


def test_response_drift_refuses_settings_its_kind_does_not_read():
    bad = ResponseDrift(drift_type="tone_shift", direction="expand", factor=2.0)
    assert [field for field, _ in bad.problems()] == ["direction", "factor"]
    assert list(drift("verbosity_shift", direction="expand", factor=2.0).problems()) == []
