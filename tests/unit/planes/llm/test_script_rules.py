"""A scripted model: which rule answers, and with what."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from upstream_kit import ask, called, chat, message, passed, query, said, script, tool

from codec_kit import read, sent
from golden_words import Golden
from holdfast.model.completion import Pause, Text
from holdfast.planes.llm.codecs.formats import find_route
from holdfast.planes.llm.sources.script import NoRule, Script, ScriptRule
from holdfast.planes.llm.sources.script_lists import embed_text
from holdfast.planes.llm.sources.script_text import TextTemplate
from holdfast.planes.llm.sources.source import PassedReply, WrittenReply

ECHO = '  - {text: "You said {{ prompt }}."}\n'


def test_script_first_rule_that_matches_wins(tmp_path: Path) -> None:
    model = script(tmp_path, "  - {match: {prompt: '*price*'}, text: 12}\n  - {text: other}\n")
    assert said(model, chat("What is the price?")).text == "12"
    assert said(model, chat("Hello")).text == "other"


def test_a_reply_names_the_script_and_the_line_of_its_rule(tmp_path: Path) -> None:
    rules = "  - match: {prompt: one}\n    text: first\n  - {match: {prompt: two}, status: 500}\n  - {text: other}\n"
    model = script(tmp_path, rules)
    asked = ("one", "two", "three")
    assert [ask(model, chat(prompt)).script for prompt in asked] == ["model.yaml:2", "model.yaml:4", "model.yaml:5"]
    assert [ask(model, chat(prompt)).origin for prompt in asked[:2]] == ["script model.yaml:2", "script model.yaml:4"]
    assert ask(model, query(method="GET", path="/v1/models")).script == "model.yaml"


def test_script_prompt_matches_by_regex(tmp_path: Path) -> None:
    model = script(tmp_path, r"  - {match: {prompt: '/order \d+/i'}, text: found}" + "\n  - {text: none}\n")
    assert said(model, chat("where is ORDER 12 now")).text == "found"
    assert said(model, chat("where is order x")).text == "none"


def test_script_matches_model_system_tools_and_turn(tmp_path: Path) -> None:
    rules = """
  - {match: {model: 'gpt-*', system: '*terse*', tools: [search, book]}, text: both}
  - {match: {tools: search}, text: searching}
  - {match: {turn: 2}, text: second}
  - {text: first}
"""
    model = script(tmp_path, rules)
    system = {"role": "system", "content": "Be terse."}
    assert said(model, chat(system, "hi", tools=[tool("book"), tool("search")])).text == "both"
    assert said(model, chat("hi", tools=[tool("search")])).text == "searching"
    assert said(model, chat("hi")).text == "first"
    assert said(model, chat("hi", {"role": "assistant", "content": "yes"}, "more")).text == "second"


def test_script_tool_rule_fits_only_the_result_that_came_last(tmp_path: Path) -> None:
    rules = """
  - {match: {tool: get_price, result: '*12*'}, text: 'It costs {{ result.price }}.'}
  - {match: {tool: get_price}, text: no price}
  - {tool_calls: [{name: get_price, arguments: {item: '{{ prompt }}'}}]}
"""
    model = script(tmp_path, rules)
    first = said(model, chat("tea"))
    assert [(c.name, json.loads(c.arguments)) for c in first.tool_calls] == [("get_price", {"item": "tea"})]
    assert first.finish == "tool_calls"
    assert said(model, chat("tea", *called("get_price", {"price": 12.5}))).text == "It costs 12.5."
    assert said(model, chat("tea", *called("get_price", "nothing"))).text == "no price"
    later = chat("tea", *called("get_price", {"price": 12}), {"role": "assistant", "content": "12"}, "milk")
    assert said(model, later).tool_calls, "an old result is not the one that came last"


def test_script_missing_field_makes_the_rule_not_match(tmp_path: Path) -> None:
    model = script(tmp_path, "  - {text: '{{ result.price }}'}\n  - {text: no data}\n")
    assert said(model, chat("tea", *called("p", {"price": None}))).text == "null"
    assert said(model, chat("tea", *called("p", {"cost": 1}))).text == "no data"
    assert said(model, chat("tea", *called("p", "<html>"))).text == "no data"
    assert said(model, chat("tea")).text == "no data"


def test_script_fills_results_of_named_tools_arguments_and_list_items(tmp_path: Path) -> None:
    rules = "  - {text: '{{ results.a.rows.1 }} {{ results.b }} {{ arguments.city }} {{ result }}'}\n"
    talk = [*called("a", {"rows": [1, 2]}, id="c1"), *called("b", "sun", {"city": "Rome"}, id="c2")]
    assert said(script(tmp_path, rules), chat("hi", *talk)).text == "2 sun Rome sun"


def test_script_argument_that_is_one_hole_keeps_its_type(tmp_path: Path) -> None:
    rules = "  - tool_calls: [{name: pay, arguments: {sum: '{{ result.n }}', note: 'n={{ result.n }}', on: no}}]\n"
    call = said(script(tmp_path, rules), chat("hi", *called("get", {"n": 3}))).tool_calls[0]
    assert json.loads(call.arguments) == {"sum": 3, "note": "n=3", "on": "no"}


def test_script_text_of_the_user_is_never_a_template(tmp_path: Path) -> None:
    assert said(script(tmp_path, ECHO), chat("{{ result }}")).text == "You said {{ result }}."


def test_script_times_are_counted_trial_by_trial(tmp_path: Path) -> None:
    model = script(tmp_path, "  - {times: 2, text: once more}\n  - {text: enough}\n")
    texts = [said(model, chat("hi", trial=trial)).text for trial in ("a", "b", "a", "a", "b", "b")]
    assert texts == ["once more", "once more", "once more", "enough", "once more", "enough"]
    model.forget("a")
    assert said(model, chat("hi", trial="a")).text == "once more"


def test_script_counters_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.planes.llm.sources.source.TRIALS_KEPT", 3)
    model = script(tmp_path, "  - {times: 1, text: x}\n  - {text: y}\n")
    for number in range(10):
        said(model, chat("hi", trial=str(number)))
    assert len(model._used._trials) == 3


def test_script_without_a_rule_names_the_prompt_and_the_file(tmp_path: Path) -> None:
    model = script(tmp_path, "  - {match: {prompt: hello}, text: x}\n")
    with pytest.raises(NoRule) as raised:
        ask(model, chat("What now?"))
    assert raised.value.code == "script-no-rule"


def test_script_status_is_a_failure_in_the_shape_of_the_provider(tmp_path: Path) -> None:
    model = script(tmp_path, "  - {status: 429, error: 'slow down, {{ prompt }}'}\n")
    status, body = passed(model, chat("you"))
    assert (status, body["error"]["message"]) == (429, "slow down, you")
    status, body = passed(model, message("you"))
    assert (status, body["type"], body["error"]["type"]) == (429, "error", "rate_limit_error")


def test_script_delays_of_a_stream_stand_between_its_chunks(tmp_path: Path) -> None:
    model = script(tmp_path, "  - {text: a b c d e, chunks: 2, delay_ms: 50, token_delay_ms: 7}\n")
    deltas = said(model, chat("hi", stream=True)).deltas[:6]
    assert deltas == (Pause(50), Text("a b "), Pause(7), Text("c d "), Pause(7), Text("e"))
    assert said(model, chat("hi")).deltas[:2] == (Pause(64), Text("a b c d e"))


def test_script_usage_is_counted_unless_the_rule_states_it(tmp_path: Path) -> None:
    counted = said(script(tmp_path, "  - {text: 'Yes, it is.'}\n"), chat("Is it so?")).usage
    assert counted is not None
    assert (counted.input_tokens, counted.output_tokens) == (4, 5)
    given = said(script(tmp_path, "  - {text: x, finish: length, usage: {output_tokens: 9}}\n"), chat("Is it so?"))
    assert given.usage is not None
    assert (given.usage.input_tokens, given.usage.output_tokens, given.finish) == (4, 9, "length")


def test_script_call_ids_are_repeatable_and_unique(tmp_path: Path) -> None:
    model = script(tmp_path, "  - tool_calls: [{name: a}, {name: a}]\n")
    first, again = said(model, chat("hi")), said(model, chat("hi", trial="other"))
    assert first == again
    later = said(model, chat("hi", *called("a", "x")))
    assert len({call.id for call in (*first.tool_calls, *later.tool_calls)}) == 4


def test_script_pattern_that_runs_away_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.planes.llm.sources.script_text.LIMIT_S", 0.05)
    model = script(tmp_path, "  - {match: {prompt: '/(a|a|a)+(b|b)+$/'}, text: x}\n  - {text: y}\n")
    with pytest.raises(Exception, match="took over 2 s"):
        ask(model, chat("a" * 40 + "!"))


USER = {"role": "user", "content": "tea"}
FORMATS: list[tuple[str, dict[str, Any]]] = [
    ("/v1/chat/completions", {"model": "m", "messages": [USER]}),
    ("/v1/responses", {"model": "m", "input": "tea"}),
    ("/v1/messages", {"model": "m", "max_tokens": 9, "messages": [USER]}),
    ("/v1beta/models/m:generateContent", {"contents": [{"role": "user", "parts": [{"text": "tea"}]}]}),
    ("/v1beta/models/m:streamGenerateContent?alt=sse", {"contents": [{"role": "user", "parts": [{"text": "tea"}]}]}),
    ("/api/chat", {"model": "m", "messages": [USER]}),
    ("/api/generate", {"model": "m", "prompt": "tea"}),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("path", "body"), FORMATS)
def test_script_speaks_every_format(tmp_path: Path, path: str, body: dict[str, Any], stream: bool) -> None:
    route = find_route("POST", path)
    assert route is not None
    assert route.codec is not None
    codec = route.codec
    asked = query({**body, "stream": stream}, codec=codec, path=path)
    assert asked.request is not None
    calls = "" if path == "/api/generate" else ", tool_calls: [{name: brew, arguments: {cups: 2}}]"
    completion = said(script(tmp_path, f"  - {{match: {{model: m, prompt: tea}}, text: one two{calls}}}\n"), asked)
    if asked.request.stream:
        received = read(codec, sent(codec.write_frames(completion, asked.request)))
    else:
        received = codec.read_reply(json.loads(codec.write_body(completion, asked.request)))
    assert received.text == "one two"
    assert [(c.name, json.loads(c.arguments)) for c in received.tool_calls] == (
        [("brew", {"cups": 2})] if calls else []
    )


@given(st.text(max_size=200), st.integers(1, 5))
def test_script_chunks_of_a_stream_join_to_the_text(text: str, size: int) -> None:
    model = Script("m", (ScriptRule(text=TextTemplate((text,)), chunks=size),))
    answered = ask(model, chat("hi", stream=True))
    assert isinstance(answered, WrittenReply)
    assert answered.completion.text == text
    assert not isinstance(answered, PassedReply)


# What a scripted model answers besides completions.


RULES = "  - {match: {model: small}, text: x}\n  - {match: {model: 'big-*'}, text: y}\n"


def near(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_script_embeddings_are_the_same_every_time_and_near_for_like_texts(tmp_path: Path) -> None:
    asked = query(
        {"model": "text-embedding-3-small", "input": ["tea price", "price of tea", "rain"]}, path="/v1/embeddings"
    )
    status, body = passed(script(tmp_path, RULES), asked)
    assert (status, body) == passed(script(tmp_path, RULES), asked)
    tea, also, rain = [item["embedding"] for item in body["data"]]
    assert len(tea) == 1536
    assert near(tea, also) > 0.7 > 0.3 > near(tea, rain)


def test_script_embeddings_are_base64_on_request(tmp_path: Path) -> None:
    data = {"model": "m", "input": "tea", "dimensions": 8, "encoding_format": "base64"}
    _, body = passed(script(tmp_path, RULES), query(data, path="/embeddings"))
    values = struct.unpack("<8f", base64.b64decode(body["data"][0]["embedding"]))
    assert list(values) == pytest.approx(embed_text("tea", 8), abs=1e-6)


@pytest.mark.parametrize("given", [[1, 2, 3], [[1, 2, 3]]])
def test_script_embeddings_take_tokens(tmp_path: Path, given: list[object]) -> None:
    _, body = passed(script(tmp_path, RULES), query({"model": "m", "input": given}, path="/embeddings"))
    assert len(body["data"]) == 1


@pytest.mark.parametrize(
    ("provider", "path", "data", "at"),
    [
        ("google", "/v1beta/models/e:embedContent", {"content": {"parts": [{"text": "tea"}]}}, ("embedding", "values")),
        (
            "google",
            "/v1beta/models/e:batchEmbedContents",
            {"requests": [{"content": {"parts": [{"text": "tea"}]}}]},
            ("embeddings", 0, "values"),
        ),
        ("ollama", "/api/embed", {"model": "e", "input": "tea"}, ("embeddings", 0)),
        ("ollama", "/api/embeddings", {"model": "e", "prompt": "tea"}, ("embedding",)),
    ],
)
def test_script_embeddings_have_the_shape_of_each_provider(
    tmp_path: Path, provider: str, path: str, data: object, at: tuple[str | int, ...]
) -> None:
    status, found = passed(script(tmp_path, RULES), query(data, provider=provider, path=path))
    for step in at:
        found = found[step]
    assert (status, found) == (200, embed_text("tea", 768))


@pytest.mark.parametrize(
    ("provider", "path", "entry"),
    [
        ("openai", "/v1/models", ("data", "id", "small")),
        ("anthropic", "/v1/models?limit=20", ("data", "id", "small")),
        ("google", "/v1beta/models", ("models", "name", "models/small")),
        ("ollama", "/api/tags", ("models", "name", "small")),
        ("ollama", "/v1/models", ("data", "id", "small")),
    ],
)
def test_script_lists_the_models_that_it_replaces(
    tmp_path: Path, provider: str, path: str, entry: tuple[str, str, str]
) -> None:
    asked = query(None, provider=provider, method="GET", path=path)
    status, body = passed(script(tmp_path, RULES, names=("gpt-4o",)), asked)
    listed, field, name = entry
    assert status == 200
    assert [model[field] for model in body[listed]] == [name.replace("small", "gpt-4o"), name]


def test_script_knows_one_of_its_models_and_no_other(tmp_path: Path) -> None:
    model = script(tmp_path, RULES)
    assert passed(model, query(None, method="GET", path="/v1/models/small"))[1]["id"] == "small"
    assert passed(model, query(None, method="GET", path="/v1/models/other"))[0] == 404


def test_script_has_nothing_for_other_requests(tmp_path: Path, golden: Golden) -> None:
    status, body = passed(script(tmp_path, RULES), query({}, path="/v1/files"))
    assert status == 404
    golden(body["error"]["message"])


@given(st.text(max_size=50), st.integers(1, 300))
def test_script_vector_has_length_one(text: str, size: int) -> None:
    assert near(embed_text(text, size), embed_text(text, size)) == pytest.approx(1.0) or not any(embed_text(text, size))
