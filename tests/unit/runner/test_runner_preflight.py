"""What the first question finds out about an agent's models."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.model.model_spec import ModelSpec
from holdfast.model.observation import Observation, Turn
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.spec import AgentSpec, Spec
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.runner.preflight import run_preflight

TRIAL = Trial("0123456789ab", "contract", Scenario("calm"), Task(("q",)))
BEDROCK = "bedrock-runtime.eu-west-1.amazonaws.com speaks Bedrock Converse"
ANSWERED = Turn("q", "a")
COMMAND = AgentSpec(type="command", command="agent")
SCRIPTED = {"*": ModelSpec("script", script="model.yaml")}
LIMITED = (Scenario("limit", (Injection("llm", "*", "rate_limit"),)),)


class Answering:
    """An executor whose agent made these calls."""

    def __init__(self, calls: dict[str, int], turn: Turn) -> None:
        self._seen = Observation(TRIAL.id, (turn,), calls=calls)

    async def execute(self, trials: Iterable[Trial]) -> AsyncIterator[tuple[Trial, Observation]]:
        for trial in trials:
            yield trial, self._seen


def warnings(calls: dict[str, int], turn: Turn = ANSWERED, *, agent: AgentSpec = COMMAND, **how: Any) -> list[str]:
    said: list[str] = []
    spec = Spec(path="s.yaml", agent=agent, **how)
    asyncio.run(run_preflight(Answering(calls, turn), spec, TRIAL, lambda code, text: said.append(code)))  # type: ignore[arg-type]
    return said


def test_a_host_that_speaks_a_format_nobody_reads_is_named() -> None:
    for calls in ({f"unread:{BEDROCK}": 2, "llm:gpt-4o": 1}, {f"unread:{BEDROCK}": 2}):
        assert warnings(calls, models=SCRIPTED) == ["model-unread"]


@pytest.mark.parametrize(
    ("calls", "how", "warned"),
    [
        ({}, {"models": SCRIPTED}, True),
        ({"http:https://api.example.com": 1}, {"scenarios": LIMITED}, True),
        ({"llm:gpt-4o": 1}, {"models": SCRIPTED, "scenarios": LIMITED}, False),
        ({}, {}, False),
        ({}, {"models": {"judge": ModelSpec("script", script="judge.yaml")}}, False),
    ],
)
def test_an_agent_that_goes_past_the_gateway_is_warned_of_where_a_model_is_expected(
    calls: dict[str, int], how: dict[str, Any], warned: bool
) -> None:
    for agent in (COMMAND, AgentSpec(type="python", endpoint="agent:answer")):
        assert warnings(calls, agent=agent, **how) == (["model-not-asked"] if warned else [])
    inline = AgentSpec(type="python", endpoint="agent:answer", isolation="inline")
    assert warnings(calls, agent=inline, **how) == []


def test_an_agent_that_died_may_not_have_come_to_its_model() -> None:
    for ending, warned in [
        ("crashed", False),
        ("raised", False),
        ("out_of_memory", False),
        ("timeout", True),
        ("empty", True),
    ]:
        for gateway in [False, True]:
            agent = replace(COMMAND, gateway=gateway)
            found = warnings({}, Turn("q", None, ending=ending), agent=agent, models=SCRIPTED)
            assert bool(found) == warned, (ending, gateway)


@pytest.mark.parametrize(
    ("status", "warned"),
    [(400, True), (404, True), (405, True), (415, True), (422, True), (401, True), (429, False), (500, False)],
)
def test_a_server_that_refuses_the_first_request_may_want_another_one(status: int, warned: bool) -> None:
    said: list[str] = []
    agent = AgentSpec(type="http", endpoint="http://localhost:1/", reset_endpoint="http://localhost:1/reset")
    spec = Spec(path="s.yaml", agent=agent)
    turn = Turn("q", "{}", ending="http_error", status=status)
    asyncio.run(run_preflight(Answering({}, turn), spec, TRIAL, lambda code, text: said.append(code)))  # type: ignore[arg-type]
    assert said == (["request-refused"] if warned else [])
