"""The contract format, HTTP agents: every key that shapes requests and replies, on a real server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from files1 import (
    CALM,
    RULES,
    HttpAgent,
    Told,
    contract_run,
    http_agent,
    http_section,
    project,
    raw_agent,
    spec_of,
    tell,
)

AWKWARD = [
    'say "hi"', "back\\slash", "new\nline", "tab\tand {brace} and {{two}}", "ünïcödé 日本 🎉", "</script>",
    "a&b=c %20 +", "{prompt}", "' OR 1=1", "\u2028line", "null", '{"json": [1]}',
]  # fmt: skip


def run(folder: Path, agent: HttpAgent, more: str = "", *args: str, prompts: str = '["What is the total?"]') -> Told:
    return contract_run(folder, http_section(agent, more, prompts) + RULES + CALM, "", *args)


def source(request: Any) -> Any:
    return {"output": "source"}


# -- request: method, request_template, query_params, headers -------------------------------------
def test_the_default_body_is_input_and_the_method_is_post(tmp_path: Path) -> None:
    with http_agent(source) as agent:
        assert run(tmp_path, agent).code == 0
        for request in agent.asked():
            assert (request.method, request.json) == ("POST", {"input": "What is the total?"})
            assert request.headers["Content-Type"] == "application/json"


def test_request_template_carries_any_prompt_unharmed(tmp_path: Path) -> None:
    template = """, request_template: '{"messages": [{"role": "user", "content": "{prompt}"}], "raw": {prompt}}'"""
    with http_agent(source) as agent:
        told = run(tmp_path, agent, template, "--no-preflight", prompts=json.dumps(AWKWARD, ensure_ascii=False))
        assert told.code == 0, told
        bodies = [request.json for request in agent.asked()]
        assert sorted(body["messages"][0]["content"] for body in bodies) == sorted(AWKWARD)
        assert all(body["raw"] == body["messages"][0]["content"] for body in bodies)


def test_a_template_that_is_no_json_is_sent_as_text(tmp_path: Path) -> None:
    with http_agent(source) as agent:
        assert run(tmp_path, agent, ', request_template: "Q: {prompt}!"').code == 0
        assert agent.asked()[0].body == "Q: What is the total?!"
        assert agent.asked()[0].headers["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_get_and_delete_put_the_template_into_the_query(tmp_path: Path, method: str) -> None:
    template = f""", method: {method}, request_template: '{{"q": "{{prompt}}", "n": 3}}', query_params: {{k: v}}"""
    with http_agent(source) as agent:
        assert run(tmp_path, agent, template, prompts=json.dumps(["a&b=c é"])).code == 0
        request = agent.asked()[0]
        assert (request.method, request.body) == (method, "")
        assert request.query == {"q": "a&b=c é", "n": "3", "k": "v"}


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_method(tmp_path: Path, method: str) -> None:
    with http_agent(source) as agent:
        assert run(tmp_path, agent, f", method: {method}").code == 0
        assert {r.method for r in agent.asked()} == {method}
        assert agent.asked()[0].json == {"input": "What is the total?"}


def test_query_params_and_headers(tmp_path: Path) -> None:
    with http_agent(source) as agent:
        assert (
            run(tmp_path, agent, ', query_params: {page: 2, q: "{prompt}"}, headers: {X-Team: blue, X-Num: 7}').code
            == 0
        )
        request = agent.asked()[0]
        assert request.query == {"page": "2", "q": "What is the total?"}
        assert (request.headers["X-Team"], request.headers["X-Num"]) == ("blue", "7")


# -- parse_structured_input -----------------------------------------------------------------------
FIELDS = """, request_template: '{"city": "{city}", "p": "{prompt}"}'"""
KEYED = json.dumps(["city: Ulm\nbudget: 5"])


def test_a_prompt_of_key_value_lines_also_fills_fields(tmp_path: Path) -> None:
    with http_agent(source) as agent:
        assert run(tmp_path, agent, FIELDS, prompts=KEYED).code == 0
        assert agent.asked()[0].json == {"city": "Ulm", "p": "city: Ulm\nbudget: 5"}


def test_parse_structured_input_false_leaves_them_alone(tmp_path: Path) -> None:
    with http_agent(source) as agent:
        told = run(tmp_path, agent, FIELDS + ", parse_structured_input: false", prompts=KEYED)
        assert told.code == 4
        assert "{city}" in told.json["errors"][0]["message"]
        assert agent.asked() == []


# -- the answer: response_path, the usual keys, text ----------------------------------------------
KEYS = [
    "output",
    "response",
    "result",
    "data",
    "content",
    "text",
    "message",
    "answer",
    "reply",
    "queries",
    "query",
    "results",
]


@pytest.mark.parametrize("key", KEYS)
def test_the_answer_is_found_under_the_usual_keys(tmp_path: Path, key: str) -> None:
    with http_agent(lambda r: {"id": 1, key: "source here"}) as agent:
        assert run(tmp_path, agent).trial("cites")["answer"] == "source here"


def test_the_usual_keys_are_tried_in_their_order(tmp_path: Path) -> None:
    with http_agent(lambda r: {key: key for key in reversed(KEYS)}) as agent:
        assert run(tmp_path, agent).trial("cites")["answer"] == "output"


NESTED = {"choices": [{"message": {"content": "source a"}}, {"message": {"content": "b"}}], "output": "decoy"}


@pytest.mark.parametrize(("path", "answer"), [
    ("$.choices[0].message.content", "source a"),
    ("choices.0.message.content", "source a"),
    ("choices[0].message.content", "source a"),
    ("$.choices[*].message.content", "source a\nb"),
    ("$..content", "source a\nb"),
])  # fmt: skip
def test_response_path_as_jsonpath_and_dotted(tmp_path: Path, path: str, answer: str) -> None:
    with http_agent(lambda r: NESTED) as agent:
        assert run(tmp_path, agent, f', response_path: "{path}"').trial("cites")["answer"] == answer


def test_nothing_at_response_path_ends_the_run_with_the_body_shown(tmp_path: Path) -> None:
    with http_agent(lambda r: {"other": "the body"}) as agent:
        told = run(tmp_path, agent, ", response_path: $.answer")
    assert told.code == 4
    assert "$.answer" in told.json["errors"][0]["message"]
    assert "the body" in json.dumps(told.json["errors"][0])


def test_a_reply_that_is_not_json_is_the_answer_as_text(tmp_path: Path) -> None:
    with http_agent(lambda r: "plain source text") as agent:
        assert run(tmp_path, agent).trial("cites")["answer"] == "plain source text"


# -- endings --------------------------------------------------------------------------------------
BAD = {
    "error in the body": ({"output": "source", "error": "boom"}, "http_error"),
    "success false": ({"output": "source", "success": False}, "http_error"),
    "status 500": ((500, {"output": "source"}), "http_error"),
    "status 404": ((404, "source"), "http_error"),
    "redirect": ((302, "source", {"Location": "/elsewhere"}), "http_error"),
    "no content": ((204, b""), "no_answer"),
    "empty body": ("", "no_answer"),
    "wrong charset": ((200, b"\xff\xfe source", {"Content-Type": "text/plain; charset=ascii"}), "unreadable"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_replies_are_bad_endings_of_the_agent(tmp_path: Path, what: str) -> None:
    reply, ending = BAD[what]
    rules = RULES + "    - {id: ends, type: completes}\n"
    with http_agent(lambda r: reply) as agent:
        told = contract_run(tmp_path, http_section(agent) + rules + CALM, "", "--no-preflight")
        assert told.trial("ends")["ending"] == ending
        assert told.cell("ends")["outcome"] == "fail"
        assert told.code == 1
        assert {r.path for r in agent.requests} == {"/ask"}


def test_null_error_is_no_bad_ending(tmp_path: Path) -> None:
    with http_agent(lambda r: {"output": "source", "error": None, "success": True}) as agent:
        assert run(tmp_path, agent).trial("cites")["ending"] == "answered"


def test_a_status_of_500_is_judged_by_its_text_and_named_in_the_report(tmp_path: Path) -> None:
    with http_agent(lambda r: (500, {"output": "source"})) as agent:
        told = run(tmp_path, agent)
    assert told.cell("cites")["outcome"] == "pass"
    assert "500" in told.trial("cites")["detail"]


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/ask", "http://no-such-host.invalid/ask"])
def test_refused_and_unknown_hosts_are_errors_and_not_results(tmp_path: Path, url: str) -> None:
    project(tmp_path, f"agent: {{endpoint: '{url}'}}\ngolden_prompts: [x]\nadvanced: {{retries: 0}}\n" + RULES + CALM)
    assert tell(tmp_path, "contract", "run").code == 3
    told = tell(tmp_path, "contract", "run", "--json", "--no-preflight")
    assert told.code == 3
    assert told.cell("cites")["outcome"] == "error"


RAW = {
    "closed without an answer": (b"", "closed"),
    "no HTTP": (b"hello there, this is no HTTP\r\n\r\n", "closed"),
    "cut in the middle": (b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nsource", "closed"),
}


@pytest.mark.parametrize("what", RAW)
def test_accepted_and_then_broken_is_the_agents_ending(tmp_path: Path, what: str) -> None:
    sent, ending = RAW[what]
    with raw_agent(sent) as url:
        told = contract_run(
            tmp_path, f"agent: {{endpoint: {url}/ask}}\ngolden_prompts: [x]\n" + RULES + CALM, "", "--no-preflight"
        )
    assert told.trial("cites")["ending"] == ending
    assert told.cell("cites")["outcome"] == ("pass" if b"source" in sent else "fail")


def test_timeout_of_an_http_agent(tmp_path: Path) -> None:
    async def slow(request: Any) -> Any:
        await asyncio.sleep(3)
        return {"output": "source"}

    with http_agent(slow) as agent:
        told = run(tmp_path, agent, ", timeout: 1000", "--no-preflight")
    assert told.trial("cites")["ending"] == "timeout"
    assert 900 < told.trial("cites")["latency_ms"] < 2500


def test_bodies_over_ten_megabytes_are_cut_and_noted(tmp_path: Path) -> None:
    with http_agent(lambda r: "source " + "x" * 10_500_000) as agent:
        told = run(tmp_path, agent, "", "--no-preflight")
    trial = told.trial("cites")
    assert any("10 MB" in note for note in trial["notes"])
    assert len(trial["answer"]) < 1_100_000


def test_an_event_stream_is_its_joined_data(tmp_path: Path) -> None:
    body = b"data: sou\n\ndata: rce\n\ndata: [DONE]\n\n"
    with http_agent(lambda r: (200, body, {"Content-Type": "text/event-stream"})) as agent:
        assert run(tmp_path, agent).trial("cites")["answer"] == "source"


def test_each_trial_has_a_new_cookie_jar(tmp_path: Path) -> None:
    with http_agent(lambda r: (200, {"output": "source"}, {"Set-Cookie": "sid=1"})) as agent:
        assert run(tmp_path, agent).code == 0
        assert [r.headers.get("Cookie") for r in agent.asked()] == [None] * 3


# -- reset ----------------------------------------------------------------------------------------
def test_reset_endpoint_may_be_relative_and_comes_before_every_trial(tmp_path: Path) -> None:
    with http_agent(source) as agent:
        rules = RULES + "    - {id: other, type: contains, value: source}\n"
        told = contract_run(tmp_path, http_section(agent, ", reset_endpoint: /reset") + rules + CALM)
        assert told.code == 0
        order = [(r.method, r.path) for r in agent.requests]
        assert order == [("POST", "/reset"), ("POST", "/ask")] * 3


def test_a_failing_reset_is_an_error_of_the_trial(tmp_path: Path) -> None:
    with http_agent(lambda r: (503, "no") if r.path == "/reset" else {"output": "source"}) as agent:
        more = http_section(agent, ", reset_endpoint: /reset") + "advanced: {retries: 0}\n"
        told = contract_run(tmp_path, more + RULES + CALM, "", "--no-preflight")
    assert told.code == 3
    assert "503" in told.cell("cites")["reason"] + told.trial("cites")["reason"]


def test_reset_function_of_an_http_agent_runs_in_a_child_process(tmp_path: Path) -> None:
    reset = "import os\ndef again():\n    open('resets', 'a').write(f'{os.getpid()} ')\n"
    with http_agent(source) as agent:
        project(tmp_path, http_section(agent, ', reset_function: "bot:again"') + RULES + CALM, reset)
        assert tell(tmp_path, "contract", "run").code == 0
    pids = (tmp_path / "resets").read_text().split()
    assert len(set(pids)) == len(pids) == 2


# -- stateful -------------------------------------------------------------------------------------
def test_a_steady_agent_is_not_called_stateful_and_one_with_a_reset_is_asked_once(tmp_path: Path) -> None:
    with http_agent(source) as agent:
        told = run(tmp_path, agent)
        assert (told.json["warnings"], len(agent.asked())) == ([], 3)
    with http_agent(source) as agent:
        run(tmp_path, agent, ", reset_endpoint: /reset")
        assert len(agent.asked()) == 2


def test_a_stateful_agent_runs_one_trial_at_a_time(tmp_path: Path) -> None:
    now, most, count = 0, 0, 0

    async def counting(request: Any) -> Any:
        nonlocal now, most, count
        now, count = now + 1, count + 1
        most = max(most, now)
        await asyncio.sleep(0.02)
        now -= 1
        return {"output": f"source {count}"}

    with http_agent(counting) as agent:
        assert run(tmp_path, agent, "", "--replicas", "6").code == 0
    assert most == 1


def test_advanced_concurrency_is_how_many_run_at_once(tmp_path: Path) -> None:
    def busiest(limit: int) -> int:
        now = most = 0

        async def counting(request: Any) -> Any:
            nonlocal now, most
            now += 1
            most = max(most, now)
            await asyncio.sleep(0.05)
            now -= 1
            return {"output": "source"}

        with http_agent(counting) as agent:
            spec = http_section(agent) + RULES + CALM + f"replicas: 12\nadvanced: {{concurrency: {limit}}}\n"
            assert contract_run(tmp_path, spec).code == 0
        return most

    assert (busiest(1), busiest(4)) == (1, 4)
    assert spec_of(tmp_path, http_section(HttpAgent("http://h")) + RULES + CALM).concurrency == 10
