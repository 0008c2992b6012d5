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
    spec_of,
    tell,
)

from holdfast.execute.open_site import count_slots


def run(folder: Path, agent: HttpAgent, more: str = "", *args: str, prompts: str = '["What is the total?"]') -> Told:
    return contract_run(folder, http_section(agent, more, prompts) + RULES + CALM, "", *args)


def source(request: Any) -> Any:
    return {"output": "source"}


# -- request: method, request_template, query_params, headers -------------------------------------


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_get_and_delete_put_the_template_into_the_query(tmp_path: Path, method: str) -> None:
    template = f""", method: {method}, request_template: '{{"q": "{{prompt}}", "n": 3}}', query_params: {{k: v}}"""
    with http_agent(source) as agent:
        assert run(tmp_path, agent, template, prompts=json.dumps(["a&b=c é"])).code == 0
        request = agent.asked()[0]
        assert (request.method, request.body) == (method, "")
        assert request.query == {"q": "a&b=c é", "n": "3", "k": "v"}


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


def test_parse_structured_input_false_leaves_them_alone(tmp_path: Path) -> None:
    with http_agent(source) as agent:
        told = run(tmp_path, agent, FIELDS + ", parse_structured_input: false", prompts=KEYED)
        assert told.code == 4
        assert "{city}" in told.json["errors"][0]["message"]
        assert agent.asked() == []


# -- the answer: response_path, the usual keys, text ----------------------------------------------


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


# -- endings --------------------------------------------------------------------------------------


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


def test_each_trial_has_a_new_cookie_jar(tmp_path: Path) -> None:
    with http_agent(lambda r: (200, {"output": "source"}, {"Set-Cookie": "sid=1"})) as agent:
        assert run(tmp_path, agent).code == 0
        assert [r.headers.get("Cookie") for r in agent.asked()] == [None] * 3


# -- stateful -------------------------------------------------------------------------------------


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
    assert count_slots(spec_of(tmp_path, http_section(HttpAgent("http://h")) + RULES + CALM), None) == 10
