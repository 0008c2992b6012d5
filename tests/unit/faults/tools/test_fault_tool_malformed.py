import json
from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.faults.tools.malformed import Malformed, _break_value


@dataclass
class Quote:
    symbol: str
    price: float


def parses(text):
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("value", [{"a": [1, 2]}, [], {}, [1], Quote("A", 1.5), None, 42, True, (1, 2), object()])
def test_malformed_data_is_cut_json_text(meet, value):
    for seed in range(5):
        broken = meet(Malformed(), value, seed=seed)
        assert broken[0] in "{[", seed
        assert not parses(broken), seed


@pytest.mark.parametrize("text", ['{"a": 1}', " [1, 2, 3]\n", '{"a": {"b": "c"}}'])
def test_malformed_json_text_is_a_beginning_that_does_not_parse(meet, text):
    broken = meet(Malformed(), text)
    assert text.strip().startswith(broken)
    assert not parses(broken)


@pytest.mark.parametrize("text", ["The price is 42.", "x", "", "42"])
def test_malformed_plain_text_is_cut_and_corrupted(meet, text):
    broken = meet(Malformed(), text)
    assert broken.endswith("\ufffd")
    assert text.startswith(broken[:-1])
    assert broken != text


@pytest.mark.parametrize("data", [b'{"a": 1}', b"\x89PNG....", b"", "ü".encode() * 3])
def test_malformed_bytes_stay_bytes(meet, data):
    broken = meet(Malformed(), data)
    assert isinstance(broken, bytes)
    assert broken != data
    assert not parses(broken)


@given(st.dictionaries(st.text(), st.text() | st.integers()), st.integers(0, 99))
def test_malformed_never_parses(data, seed):
    for value in (data, json.dumps(data), json.dumps(data, indent=1)):
        assert not parses(_break_value(value, Random(seed)))
