import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.faults.llm.response_drift import name_smaller_model
from holdfast.faults.texts import dump_like, parse_json, rename_field

DATA = {"name": "Zoë", "rows": [1, 2.5, {"a: b, c": None}], "on": True}


def test_json_text_is_written_back_in_its_own_style():
    for text in [
        json.dumps(DATA),
        json.dumps(DATA, ensure_ascii=False),
        json.dumps(DATA, separators=(",", ":")),
        json.dumps(DATA, indent=2),
        json.dumps(DATA, indent="\t", ensure_ascii=False),
        "\n " + json.dumps(DATA) + "\n",
        '{"a":1}',
        '{"a": 1}',
        "[1, 2]",
        "[1,2]",
    ]:
        assert dump_like(parse_json(text), text) == text, text


@pytest.mark.parametrize("text", ["", "42", '"word"', "null", "{broken", "{'a': 1}", "[" * 100_000])
def test_only_an_object_or_an_array_counts_as_json(text):
    assert parse_json(text) is None


@given(st.dictionaries(st.text(), st.text() | st.integers()), st.sampled_from([None, 1, 4]))
def test_written_json_parses_to_the_same_data(data, indent):
    text = json.dumps(data, indent=indent)
    assert parse_json(dump_like(data, text)) == data


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ('{"a": "x"}', '{"a": "Zoë"}'),
        ('{"a": "\\u00eb"}', '{"a": "Zo\\u00eb"}'),
        ('{"a": "ë\\u00eb"}', '{"a": "Zoë"}'),
    ],
)
def test_letters_are_escaped_only_if_all_were_escaped(text, written):
    assert dump_like({"a": "Zoë"}, text) == written


def test_a_fallback_is_a_smaller_model_of_the_family():
    for model, fallback in [
        ("gpt-4o", "gpt-4o-mini"),
        ("gpt-4o-2024-08-06", "gpt-4o-mini"),
        ("gpt-4.1-mini", "gpt-4.1-nano"),
        ("claude-opus-4-1-20250805", "claude-haiku-4-1-20250805"),
        ("claude-3-5-sonnet-latest", "claude-3-5-haiku-latest"),
        ("gemini-2.5-pro", "gemini-2.5-flash"),
        ("gemini-2.5-flash", "gemini-2.5-flash-lite"),
        ("mistral-large-latest", "mistral-small-latest"),
        ("llama3.1:70b", "llama3.1:8b"),
        ("llama3.1:8b", "llama3.1:1b"),
        ("qwen2.5:1.5b", "qwen2.5:1.5b-mini"),
        ("", ""),
    ]:
        assert name_smaller_model(model) == fallback, (model, fallback)


@pytest.mark.parametrize(
    ("old", "new"),
    [("total_price", "totalPrice"), ("totalPrice", "total_price"), ("price", "price_value"), ("USD", "USD_value")],
)
def test_a_field_gets_the_name_of_another_style(old, new):
    assert rename_field(old) == new


@given(st.text(min_size=1), st.lists(st.text()))
def test_a_new_name_is_never_the_old_one_nor_taken(name, taken):
    assert rename_field(name, taken) not in {name, *taken}
