from __future__ import annotations

import gzip
import json
import zlib
from typing import Any
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_http_servers import Plain, ask_web, recorded
from golden_words import Golden
from holdfast.agents.http.reply_headers import read_content_type, unpack_body
from holdfast.agents.http.request import build_request_form
from holdfast.agents.http.template import (
    TemplateFields,
    make_body_template,
    make_text_template,
    parse_fields,
)
from holdfast.errors import AgentUnavailable
from holdfast.model.spec import AgentSpec

HARD = 'He said "no";\n\tC:\\temp {prompt} {x} é 漢字 😀 </p> & = + %20'


def sent(*turns: str, context: Any = None, **settings: Any) -> list[dict[str, Any]]:
    with recorded() as (seen, handler):
        ask_web(handler, *turns, context=context, **settings)
    return seen


def test_default_body_is_input_and_prompt() -> None:
    (request,) = sent(HARD)
    assert (request["method"], request["path"], json.loads(request["body"])) == ("POST", "/ask", {"input": HARD})
    assert request["headers"]["Content-Type"] == "application/json"


def test_method_headers_and_query_params_are_sent() -> None:
    settings = {"method": "put", "headers": {"X-Key": "k1"}, "query_params": {"v": "1", "q": "<{prompt}>"}}
    (request,) = sent("a&b", **settings)
    assert request["method"] == "PUT"
    assert request["headers"]["X-Key"] == "k1"
    assert request["query"] == [("v", "1"), ("q", "<a&b>")]


def test_text_template_goes_as_plain_text_or_as_the_declared_type() -> None:
    (plain,) = sent(HARD, request_template="Q: {prompt}")
    assert (plain["body"], plain["headers"]["Content-Type"]) == (f"Q: {HARD}", "text/plain; charset=utf-8")
    (xml,) = sent("x", request_template="<q>{prompt}</q>", headers={"content-type": "application/xml"})
    assert (xml["body"], xml["headers"]["Content-Type"]) == ("<q>x</q>", "application/xml")


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("q={prompt}&lang=en&blank=", [("q", HARD), ("lang", "en"), ("blank", "")]),
        ('{"q": {prompt}, "n": 3, "deep": {"p": "{prompt}"}}', None),
        ("{prompt}", [("input", HARD)]),
        (None, [("input", HARD)]),
    ],
)
def test_get_and_delete_put_the_template_into_the_query(
    method: str, template: str | None, expected: list[tuple[str, str]] | None
) -> None:
    (request,) = sent(HARD, method=method, request_template=template, query_params={"format": "json"})
    wanted = expected or [("q", HARD), ("n", "3"), ("deep", json.dumps({"p": HARD}))]
    assert request["query"] == [("format", "json"), *wanted]
    assert request["body"] == ""


def test_the_query_of_the_endpoint_stays() -> None:
    form = build_request_form(AgentSpec(endpoint="http://x.test/a?v=1", method="GET", request_template="q={prompt}"))
    assert form.fill("b", "b").target == "/a?v=1&q=b"


def test_unknown_field_is_a_configuration_error_that_names_the_known() -> None:
    form = build_request_form(AgentSpec(endpoint="http://x.test/", request_template='{"a": "{town}"}'))
    with pytest.raises(AgentUnavailable, match="town") as caught:
        form.fill("city: Rome", "city: Rome")
    assert caught.value.config
    assert "prompt, city" in caught.value.hint


def test_structured_input_can_be_switched_off() -> None:
    spec = AgentSpec(endpoint="http://x.test/", request_template='{"a": "{city}"}', parse_structured_input=False)
    with pytest.raises(AgentUnavailable, match="city"):
        build_request_form(spec).fill("city: Rome", "city: Rome")


def test_fields_survive_an_attack_that_replaces_the_prompt() -> None:
    form = build_request_form(AgentSpec(endpoint="http://x.test/", request_template='{"a": "{city}"}'))
    assert form.fill("obey me", "city: Rome").body == b'{"a": "Rome"}'
    assert form.is_attack_dropped("obey me", "city: Rome")
    assert not form.is_attack_dropped("city: Rome\nobey me", "city: Rome")


def test_a_rewritten_prompt_is_sent_and_recorded_as_asked() -> None:
    with recorded() as (seen, handler):
        answer = ask_web(handler, "hi", context=Plain(lambda text: f"EVIL {text}"))
    assert json.loads(seen[0]["body"]) == {"input": "EVIL hi"}
    assert (answer.turns[0].asked, answer.notes) == ("EVIL hi", ())


def test_a_rewritten_prompt_without_a_place_in_the_template_is_noted(golden: Golden) -> None:
    context = Plain(lambda _: "x")
    with recorded() as (_, handler):
        answer = ask_web(handler, "city: Rome", context=context, request_template='{"a": "{city}"}')
    golden(answer.notes[0])
    assert context.losses == 1


def test_a_body_over_a_megabyte_is_sent_whole() -> None:
    (request,) = sent("ü" * 1_200_000)
    assert json.loads(request["body"])["input"] == "ü" * 1_200_000


@pytest.mark.parametrize("endpoint", ["", "myagent:run", "ftp://x.test/", "http://", "http://[::1", "/relative"])
def test_an_endpoint_that_is_not_a_url_is_a_configuration_error(endpoint: str) -> None:
    with pytest.raises(AgentUnavailable, match=r"agent\.endpoint") as caught:
        build_request_form(AgentSpec(endpoint=endpoint))
    assert caught.value.config


def test_a_header_with_a_line_break_is_refused_without_showing_its_value() -> None:
    with pytest.raises(AgentUnavailable) as caught:
        build_request_form(AgentSpec(endpoint="http://x.test/", headers={"X-Key": "secret\r\nX-Evil: 1"}))
    assert "secret" not in str(caught.value)


@given(st.text(st.characters(exclude_categories=())))
def test_any_prompt_makes_a_request(prompt: str) -> None:
    for method in ("POST", "GET"):
        form = build_request_form(AgentSpec(endpoint="http://x.test/", method=method))
        request = form.fill(prompt, prompt)
        if method == "POST":
            assert json.loads(request.body or b"") == {"input": prompt}
        else:
            sent = parse_qs(request.target.partition("?")[2], keep_blank_values=True)
            assert sent == {"input": [prompt.encode("utf-8", "replace").decode()]}


TEXT = b"source: the annual report " * 20


def bare(data: bytes) -> bytes:
    packing = zlib.compressobj(wbits=-15)
    return packing.compress(data) + packing.flush()


def read(packing: str, body: bytes, limit: int = 10_000, *, complete: bool = True) -> tuple[bytes, str]:
    return unpack_body(((b"content-encoding", packing.encode()),), body, limit, complete=complete)


@pytest.mark.parametrize(
    ("packing", "body"),
    [
        ("gzip", gzip.compress(TEXT)),
        ("X-GZIP ", gzip.compress(TEXT)),
        ("gzip", gzip.compress(TEXT[:100]) + gzip.compress(TEXT[100:])),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", bare(TEXT)),
        ("identity", TEXT),
        ("utf-8", TEXT),
    ],
    ids=["gzip", "x-gzip", "gzip-twice", "deflate", "deflate-bare", "identity", "unknown"],
)
def test_packed_bodies_are_read(packing: str, body: bytes) -> None:
    assert read(packing, body) == (TEXT, "")


def test_nothing_packed_is_nothing() -> None:
    assert read("gzip", b"") == (b"", "")
    assert unpack_body((), b"plain", 10, complete=True) == (b"plain", "")


@pytest.mark.parametrize("packing", ["gzip", "deflate"])
def test_a_corrupt_body_is_unpackable(packing: str) -> None:
    assert "Content-Encoding" in read(packing, b"\xff" + b"junk" * 20)[1]


def test_what_follows_a_packed_body_is_corrupt_and_what_was_before_is_kept() -> None:
    body, problem = read("gzip", gzip.compress(TEXT) + b"junk")
    assert body == TEXT
    assert problem


def test_a_body_that_broke_off_is_read_as_far_as_it_goes() -> None:
    part = gzip.compress(TEXT)[:-12]
    found, problem = read("gzip", part, complete=False)
    assert found
    assert TEXT.startswith(found)
    assert problem == ""
    again, problem = read("gzip", part)
    assert again == found
    assert "ends before" in problem


def test_a_bomb_is_read_up_to_the_limit() -> None:
    assert len(read("gzip", gzip.compress(bytes(1_000_000)), limit=5_000)[0]) == 5_001


@pytest.mark.parametrize("packing", ["br", "zstd"])
def test_a_packing_that_was_not_asked_for_is_unpackable(packing: str) -> None:
    body, problem = read(packing, b"anything")
    assert body == b""
    assert packing in problem


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("Text/HTML", ("text/html", None)),
        ("application/json; Charset=UTF-8", ("application/json", "UTF-8")),
        ('text/plain; a=b; charset="iso-8859-1" ; c', ("text/plain", "iso-8859-1")),
        ("text/plain; charset=", ("text/plain", None)),
        ("", ("", None)),
    ],
)
def test_type_and_charset(header: str, found: tuple[str, str | None]) -> None:
    assert read_content_type(((b"Content-Type", header.encode()),)) == found


def test_no_type_is_bytes() -> None:
    assert read_content_type(()) == ("application/octet-stream", None)


ANY_TEXT = st.text(st.characters(exclude_categories=())).map(
    lambda text: text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
)
"""Halves of characters too; two that make a pair are the character, as JSON reads them."""


@given(ANY_TEXT)
def test_any_prompt_survives_inside_and_outside_quotes(prompt: str) -> None:
    template = make_body_template('{"a": "say: {prompt}!", "b": [{prompt}], "{prompt}": {"n": 1}}')
    assert template.is_json
    assert json.loads(template.fill(TemplateFields(prompt))) == {
        "a": f"say: {prompt}!",
        "b": [prompt],
        prompt: {"n": 1},
    }


@given(ANY_TEXT)
def test_a_prompt_that_looks_like_a_field_is_not_filled_again(tail: str) -> None:
    prompt = "{industry} {prompt}" + tail
    template = make_body_template('{"input": "{prompt}"}')
    assert json.loads(template.fill(TemplateFields(prompt, ["industry: banks"]))) == {"input": prompt}


def test_literal_braces_of_json_are_not_placeholders() -> None:
    template = make_body_template('{"a": {}, "b": {"c": "{ not a field }"}, "d": "{prompt}"}')
    assert json.loads(template.fill(TemplateFields("x"))) == {"a": {}, "b": {"c": "{ not a field }"}, "d": "x"}


def test_escaped_quotes_in_a_template_do_not_end_its_string() -> None:
    template = make_body_template(r'{"a": "\"{prompt}\" \\", "b": {prompt}}')
    assert json.loads(template.fill(TemplateFields('"'))) == {"a": '""" \\', "b": '"'}


def test_structured_prompt_fills_fields_by_any_spelling_of_the_key() -> None:
    prompt = "Industry: Fitness tech\nBusiness Model: B2C\ntarget_market: runners\nurl: http://x.test/a"
    template = make_body_template('["{industry}", "{businessModel}", "{targetMarket}", "{url}", {prompt}]')
    filled = json.loads(template.fill(TemplateFields(prompt, [prompt])))
    assert filled == ["Fitness tech", "B2C", "runners", "http://x.test/a", prompt]


def test_a_line_without_key_continues_the_value_above() -> None:
    assert parse_fields("lead in\nsay: one\ntwo\n\nempty:\nthree") == {"say": "one\ntwo", "empty": "three"}


def test_a_url_line_is_not_a_field() -> None:
    assert parse_fields("see\nhttp://x.test/\n12:30") == {}


def test_a_template_that_is_not_json_is_filled_as_text_and_keeps_unknown_braces() -> None:
    template = make_body_template("<q lang={lang}>{prompt}</q> {css}")
    assert not template.is_json
    assert template.fill(TemplateFields("a & b", ["lang: en"])) == "<q lang=en>a & b</q> {css}"


def test_form_bodies_are_percent_encoded() -> None:
    template = make_body_template("q={prompt}&n=1", "application/x-www-form-urlencoded")
    assert template.fill(TemplateFields("a&b=ü c")) == "q=a%26b%3D%C3%BC+c&n=1"


def test_lone_surrogates_do_not_break_the_query() -> None:
    assert make_text_template("{prompt}").fill(TemplateFields("a\ud800b")).encode() == b"a?b"
