from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_http_servers import Plain, ask_web, recorded
from golden_words import Golden
from holdfast.agents.http.request import build_request_form
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


def test_template_is_filled_with_hard_text() -> None:
    (request,) = sent(HARD, request_template='{"messages": [{"role": "user", "content": "{prompt}"}], "n": 0.7}\n')
    assert json.loads(request["body"]) == {"messages": [{"role": "user", "content": HARD}], "n": 0.7}


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
