"""The trial's time when its world has taken most of it, or all."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, contextmanager
from types import SimpleNamespace

import pytest

from holdfast.agents.http.agent import HttpAgent
from holdfast.errors import HarnessError
from holdfast.execute import boxed_worlds
from holdfast.execute.boxed_worlds import BoxedWorlds
from holdfast.model.observation import Answer, Turn
from holdfast.model.spec import AgentSpec, Spec
from holdfast.model.world import Resources
from holdfast.world.disturbances import Disturbances
from planes_kit import FakeContext


class Agent:
    """Answers at once; remembers that it was asked."""

    asked = 0

    async def run(self, task, world):
        self.asked += 1
        return Answer((Turn(task.turns[0], "hi", 1.0),))


class World:
    """One whose trial has so much time left, of two seconds."""

    isolation = ()

    def __init__(self, context, left_s):
        self.spec = SimpleNamespace(resources=Resources(timeout_ms=2_000), forbidden=SimpleNamespace(rules=()))
        self.disturbances = Disturbances(context)
        self.planes = self
        self.context = context
        self.trial = context.trial
        self._left_s = left_s

    @contextmanager
    def serve_trial(self, context):
        yield

    def audit(self):
        return iter(())

    def time_left_s(self):
        return self._left_s

    async def settle(self, began):
        pass


SITE = SimpleNamespace(settings=SimpleNamespace(keeping=None, secrets={}, nested=True))


@pytest.fixture
def ran(monkeypatch):
    def prepare(left_s):
        @asynccontextmanager
        async def open_world(site, context):
            yield World(context, left_s)

        monkeypatch.setattr(boxed_worlds, "open_world", open_world)
        context, agent = FakeContext(), Agent()
        worlds = BoxedWorlds(SITE, Spec("spec.yaml", AgentSpec()))
        return agent, context, lambda: asyncio.run(worlds.run(agent, context.trial.task, context))

    return prepare


@pytest.mark.parametrize("left_s", [0.0, -0.5])
def test_an_agent_that_no_time_is_left_for_is_not_asked_and_not_to_blame(ran, left_s):
    agent, _, run = ran(left_s)
    with pytest.raises(HarnessError) as raised:
        run()
    assert raised.value.code == "no-time-left"
    assert agent.asked == 0


@pytest.mark.parametrize(("left_s", "told"), [(0.2, True), (1.9, False)])
def test_a_world_that_takes_most_of_the_time_is_noted(ran, left_s, told):
    agent, context, run = ran(left_s)
    assert run().turns[0].text == "hi"
    assert agent.asked == 1
    assert bool(context.notes) is told


@pytest.mark.parametrize("left_s", [0.0, 1.0])
def test_a_reset_that_takes_what_was_left_is_not_a_timeout_of_the_agents(left_s, tmp_path):
    (tmp_path / "tidy.py").write_text("def up(): pass\n")

    spec = AgentSpec(endpoint="http://127.0.0.1:9/", reset_function="tidy:up")

    async def reset():
        agent = await HttpAgent.open(spec, limit=1, root=tmp_path)
        try:
            await agent.reset(World(FakeContext(), left_s))
        finally:
            await agent.close()

    if left_s:
        asyncio.run(reset())
        return
    with pytest.raises(HarnessError, match="being reset"):
        asyncio.run(reset())
