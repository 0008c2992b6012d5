from __future__ import annotations

import gzip
import json
import zlib
from email import message_from_bytes
from urllib.parse import parse_qs
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.agents.http.changed_request import FORMS, SIZE_LIMIT, change_body

BODY = json.dumps({"input": 'Wo ist <mein> "Päckchen" & warum?', "k": 3}).encode()
ADDING = ["long_string", "array", "fields", "nested_lists", "nested_objects", "long_number"]


def test_what_is_added_to_an_object_leaves_the_rest_as_it_was() -> None:
    for body in [BODY, b"{}", b"{ }", b""]:
        for form in ADDING:
            value = json.loads(change_body(body, form, 50))
            extra = value.pop("holdfast_extra")
            assert value == json.loads(body or b"{}"), (body, form)
            assert len(json.dumps(extra)) >= 50, (body, form)


def test_what_is_added_to_a_list_is_its_last_item() -> None:
    for body in [b"[]", b'[ "a" ]']:
        for form in ADDING:
            assert json.loads(change_body(body, form, 20))[:-1] == json.loads(body), (body, form)


@pytest.mark.parametrize("form", list(FORMS))
@settings(max_examples=8, deadline=None)
@given(body=st.one_of(st.binary(max_size=50), st.just(BODY)), size=st.sampled_from([0, 1, 30, 10**9]))
def test_no_body_is_without_bound_and_none_is_impossible(form: str, body: bytes, size: int) -> None:
    made = change_body(body, form, size)
    assert len(made) <= 2 * SIZE_LIMIT
    assert made == change_body(body, form, size)


@pytest.mark.parametrize(("form", "unpack"), [("gzip", gzip.decompress), ("deflate", zlib.decompress)])
def test_a_bomb_is_small_and_holds_the_request(form: str, unpack: object) -> None:
    made = change_body(BODY, form, 5_000_000)
    held = unpack(made)  # type: ignore[operator]  # one of two functions
    assert len(made) < 10_000
    assert len(held) == 5_000_000 + len(BODY)
    assert json.loads(held) == json.loads(BODY)


def test_nesting_is_as_deep_as_it_says() -> None:
    assert change_body(b"{}", "nested_lists", 3) == b'{"holdfast_extra":[[[0]]]}'
    assert change_body(b"{}", "nested_objects", 2) == b'{"holdfast_extra":{"a":{"a":0}}}'


def test_the_same_fields_in_other_formats() -> None:
    prompt = json.loads(BODY)["input"]
    fields = ElementTree.fromstring(change_body(BODY, "xml", 0))  # our own
    assert [(f.get("name"), f.text) for f in fields] == [("input", prompt), ("k", "3")]
    assert parse_qs(change_body(BODY, "form", 0).decode()) == {"input": [prompt], "k": ["3"]}
    head = b"Content-Type: multipart/form-data; boundary=holdfast-boundary\r\n\r\n"
    parts = message_from_bytes(head + change_body(BODY, "multipart", 0)).get_payload()
    assert [part.get_param("name", header="content-disposition") for part in parts] == ["input", "k"]  # type: ignore[union-attr]
    assert json.loads(change_body(BODY, "utf16", 0).decode("utf-16")) == json.loads(BODY)


def test_keys_twice_the_last_being_the_true_ones() -> None:
    made = change_body(BODY, "twice", 0)
    assert made.startswith(b'{"input":null,"k":null,')
    assert json.loads(made) == json.loads(BODY)


def test_cut_and_empty_bodies() -> None:
    assert change_body(BODY, "cut", 0) == BODY[: len(BODY) // 2]
    assert change_body(BODY, "empty", 0) == b""
