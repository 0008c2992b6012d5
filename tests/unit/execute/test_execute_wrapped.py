"""Agents around agents fill in the parameters of a trial."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from holdfast.errors import UserError
from holdfast.execute.site import refers_to_params, resolve_agent
from holdfast.execute.wrapped import ByParams, WithParams
from holdfast.model.observation import Answer
from holdfast.model.spec import AgentSpec, Task
from holdfast.model.trial import Trial
from holdfast.protocols import TrialContext


@dataclass
class Recording:
    """Remembers what it was asked and told to do."""

    seen: list[object] = field(default_factory=list)

    async def run(self, task: Task, context: TrialContext) -> Answer:
        self.seen.append(task.turns)
        return Answer(())

    async def reset(self, trial: Trial) -> None:
        self.seen.append("reset")

    async def close(self) -> None:
        self.seen.append("close")


class Walk:
    """A trip of one trial."""

    def __init__(self, **params: object) -> None:
        self.trial = Trial("0" * 12, "contract", "x", Task(("in {{ params.lang }}", "${HOME}")), params=dict(params))


def test_with_params_fills_what_is_asked_and_leaves_other_references() -> None:
    agent, context = Recording(), Walk(lang="de")
    asyncio.run(WithParams(agent).run(context.trial.task, context))  # type: ignore[arg-type]  # only the trial is read
    assert agent.seen == [("in de", "${HOME}")]
    assert context.trial.task.turns[0] == "in {{ params.lang }}"


def test_by_params_asks_the_agent_of_the_trials_combination_and_closes_all() -> None:
    english, german = Recording(), Recording()
    both, context = ByParams([{"lang": "en"}, {"lang": "de"}], [english, german]), Walk(lang="de")

    async def go() -> None:
        await both.reset(context.trial)
        await both.run(context.trial.task, context)  # type: ignore[arg-type]  # only the trial is read
        await both.close()

    asyncio.run(go())
    assert english.seen == ["close"]
    assert german.seen == ["reset", context.trial.task.turns, "close"]


def test_resolve_agent_fills_every_string_that_may_hold_a_reference() -> None:
    text = "{{ params.p }}-${V}"
    agent = AgentSpec(
        endpoint=text, request_template=text, response_path=text, reset_endpoint=text,
        headers={"h": text}, query_params={"q": text}, env={"e": text},
    )  # fmt: skip
    made = resolve_agent(agent, {"V": "v"}, {"p": 1})
    strings = [made.endpoint, made.request_template, made.response_path, made.reset_endpoint]
    assert [*strings, made.headers["h"], made.query_params["q"], made.env["e"]] == ["1-v"] * 7
    assert refers_to_params(agent)
    assert not refers_to_params(made)
    with pytest.raises(UserError, match="params"):
        resolve_agent(agent, {"V": "v"})
