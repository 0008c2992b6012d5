from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.agents.http.template import (
    TemplateFields,
    UnknownField,
    make_body_template,
    make_text_template,
    parse_fields,
)

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


def test_unknown_field_of_a_json_template_names_the_known_ones() -> None:
    with pytest.raises(UnknownField) as caught:
        make_body_template('{"a": "{town}"}').fill(TemplateFields("city: Rome", ["city: Rome"]))
    assert (caught.value.name, caught.value.known) == ("town", ("prompt", "city"))


def test_a_template_that_is_not_json_is_filled_as_text_and_keeps_unknown_braces() -> None:
    template = make_body_template("<q lang={lang}>{prompt}</q> {css}")
    assert not template.is_json
    assert template.fill(TemplateFields("a & b", ["lang: en"])) == "<q lang=en>a & b</q> {css}"


def test_form_bodies_are_percent_encoded() -> None:
    template = make_body_template("q={prompt}&n=1", "application/x-www-form-urlencoded")
    assert template.fill(TemplateFields("a&b=ü c")) == "q=a%26b%3D%C3%BC+c&n=1"


def test_lone_surrogates_do_not_break_the_query() -> None:
    assert make_text_template("{prompt}").fill(TemplateFields("a\ud800b")).encode() == b"a?b"
