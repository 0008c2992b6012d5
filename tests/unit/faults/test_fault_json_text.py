import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.faults.texts import dump_like, parse_json

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
def test_what_is_written_parses_to_the_same_data(data, indent):
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
def test_a_letter_is_escaped_only_where_all_of_them_were(text, written):
    assert dump_like({"a": "Zoë"}, text) == written
