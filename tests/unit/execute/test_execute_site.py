"""A site fills in the parameters of its trials, and closes all that it opened."""

from __future__ import annotations

import asyncio
import subprocess
from dataclasses import dataclass, field

import pytest

from holdfast.errors import UserError
from holdfast.execute.resolved_spec import has_param_references, make_fill, resolve_agent
from holdfast.execute.site import Site
from holdfast.execute.trial import run_trial
from holdfast.model.observation import Answer
from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec, Spec
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.model.world import Fixture, ServiceSpec, Setup, WorldSpec
from holdfast.protocols.world import World


@dataclass
class Recording:
    """Remembers what it was asked and told to do."""

    seen: list[object] = field(default_factory=list)

    async def run(self, task: Task, world: World) -> Answer:
        self.seen.append(task.turns)
        return Answer(())

    async def close(self) -> None:
        self.seen.append("close")


def trial_of(**params: object) -> Trial:
    return Trial("0" * 12, "contract", Scenario("x"), Task(("in {{ params.lang }}", "${HOME}")), params=dict(params))


def site_of(agent: Recording) -> Site:
    return Site(Spec("spec.yaml", AgentSpec(), params=({"lang": "en"}, {"lang": "de"})), agent, 1)


def test_what_is_asked_has_its_parameters_filled_in_and_other_references_left() -> None:
    agent, trial = Recording(), trial_of(lang="de")
    asyncio.run(run_trial(site_of(agent), trial))
    assert agent.seen == [("in de", "${HOME}")]
    assert trial.task.turns[0] == "in {{ params.lang }}"


def test_a_trial_runs_at_the_site_of_its_parameters_and_all_are_closed() -> None:
    english, german = Recording(), Recording()
    both, trial = site_of(english), trial_of(lang="de")
    both.add({"lang": "en"}, both)
    both.add({"lang": "de"}, site_of(german))

    async def go() -> None:
        await run_trial(both, trial)
        await both.close()

    asyncio.run(go())
    assert english.seen == ["close"]
    assert german.seen == [("in de", "${HOME}"), "close"]


def test_whatever_fails_to_close_the_rest_is_closed() -> None:
    broken, other, closed = Recording(), Recording(), []

    async def fails() -> None:
        raise OSError("no")

    async def rest() -> None:
        closed.append("rest")

    broken.close = fails  # type: ignore[method-assign]
    site = site_of(broken)
    site.close_rest = rest
    site.add({"lang": "en"}, site)
    site.add({"lang": "de"}, site_of(other))
    with pytest.raises(OSError, match="no"):
        asyncio.run(site.close())
    assert (closed, other.seen) == (["rest"], ["close"])


def test_resolve_agent_fills_every_string_that_may_hold_a_reference() -> None:
    text = "{{ params.p }}-${V}"
    agent = AgentSpec(
        endpoint=text, request_template=text, response_path=text, reset_endpoint=text,
        headers={"h": text}, query_params={"q": text}, env={"e": text},
    )  # fmt: skip
    made = resolve_agent(agent, {"V": "v"}, {"p": 1})
    strings = [made.endpoint, made.request_template, made.response_path, made.reset_endpoint]
    assert [*strings, made.headers["h"], made.query_params["q"], made.env["e"]] == ["1-v"] * 7
    assert has_param_references(agent)
    assert not has_param_references(made)
    with pytest.raises(UserError, match="params"):
        resolve_agent(agent, {"V": "v"})


# The world of one trial: its references replaced by values.


HOSTILE = ["two words", "$(echo no)", "'; echo no; '", '"', "`id`", ""]


def trial(value: str) -> Trial:
    return Trial(id="a" * 12, kind="contract", scenario=Scenario("calm"), task=Task(("go",)), params={"x": value})


def test_a_param_in_text_of_a_shell_is_one_word() -> None:
    for written in ["{{ params.x }}", '"{{ params.x }}"', "'{{ params.x }}'"]:
        for value in HOSTILE:
            command = f"printf '%s|' {written} end"
            world = WorldSpec(
                setup=Setup(commands=(command,)), services=(ServiceSpec("db", "postgres", wait_for=command),)
            )
            found = make_fill(world, {}, {})(trial(value))
            for filled in (found.setup.commands[0], found.services[0].wait_for):
                assert filled is not None, (written, value)
                said = subprocess.run(["sh", "-c", filled], capture_output=True, text=True, check=True).stdout
                assert said == f"{value}|end|", (written, value)


def test_in_other_text_it_stands_as_it_is() -> None:
    world = WorldSpec(fixtures=(Fixture("sql", service="db", sql="select '{{ params.x }}', '${A}'"),))
    assert make_fill(world, {}, {})(trial("two words")).fixtures[0].sql == "select 'two words', '${A}'"
