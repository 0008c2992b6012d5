"""When the faults of the machine begin, what the ledger has, and what is undone."""

import asyncio
from datetime import UTC, datetime

import pytest

from golden_words import Golden
from holdfast import plugins
from holdfast.faults.world.vanished import Vanished
from holdfast.model.scenario import Injection
from holdfast.protocols.sandbox import FileChange
from holdfast.protocols.world_fault import HIT_TEST
from holdfast.world.disturbances import Disturbances
from planes_kit import FakeContext
from world_kit import FakeWorld

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC).timestamp()


class Sandbox:
    """Its processes can be disturbed; remembers how they were."""

    isolation = ()

    def __init__(self, processes=2):
        self.processes = processes
        self.limits = []
        self.counts = {"memory": 0, "cpu": 0}

    def count_limit_hits(self, what):
        return self.counts[what]

    async def kill(self):
        killed, self.processes = self.processes, 0
        return killed

    async def limit(self, *, memory=None, cpu=None):
        self.limits.append((memory, cpu))


class World:
    """Its clock can be set."""

    def __init__(self, processes=2):
        self.sandbox = Sandbox(processes)
        self.now = NOON
        self.frozen = False

    def time(self):
        return self.now

    async def set_clock(self, now, *, frozen=False):
        self.now, self.frozen = now, frozen


def run(*placed, during=None, world=None):
    """The world and the trip after the faults were around whatever happens `during`."""

    async def trial():
        context = FakeContext([Injection("world", "*", mode, settings) for mode, settings in placed])
        there = world or World()
        faults = Disturbances(context)
        async with faults.act_during(there):
            if during is not None:
                await during(faults, context)
        return there, context, faults

    return asyncio.run(trial())


def told(context):
    return [(entry.index, entry.plane, entry.mode, entry.effect) for entry in context.ledger]


def test_what_has_no_time_is_done_before_the_agent_starts():
    seen = []

    async def during(faults, context):
        seen.append(told(context))

    world, _, _ = run(("skew", {"offset_s": -90}), during=during)
    assert world.now == NOON - 90
    assert seen == [[(0, "world", "skew", "no_effect")]]


def test_a_fault_begins_at_its_time_and_not_if_the_agent_has_ended():
    async def during(faults, context):
        assert context.ledger == []
        await asyncio.sleep(0.15)

    world, context, _ = run(("frozen", {"after_ms": 50}), ("skew", {"after_ms": 60_000}), during=during)
    assert world.frozen
    assert [entry.mode for entry in context.ledger] == ["frozen"]


def test_a_fault_begins_at_its_first_event_and_once():
    async def during(faults, context):
        faults.handle_event("llm_call")
        await asyncio.sleep(0)
        assert context.ledger == []
        faults.handle_event("http_call")
        faults.handle_event("http_call")
        await asyncio.sleep(0.01)

    _, context, faults = run(("killed", {"on_event": "http_call"}), during=during)
    assert told(context) == [(0, "world", "killed", "met")]
    assert asyncio.run(faults.needs_restart())
    assert not asyncio.run(faults.needs_restart())


def test_a_fault_begins_after_the_write_that_it_waits_for():
    async def during(faults, context):
        for write in (True, False, True):
            await asyncio.sleep(0.01)
            assert context.ledger == []
            faults.handle_event("http_call", write)
        await asyncio.sleep(0.01)

    _, context, _ = run(("killed", {"after_event": {"write": 2}}), during=during)
    assert told(context) == [(0, "world", "killed", "met")]


@pytest.mark.parametrize("processes", [0, 2])
def test_an_agent_that_ends_right_after_the_write_is_killed_too(processes):
    """The kill must not depend on whether the agent answers before the signal arrives."""
    restarts = []

    async def during(faults, context):
        faults.handle_event("http_call", True)
        restarts.append(await faults.needs_restart())  # with no wait in between: the agent has just answered

    _, context, _ = run(("killed", {"after_event": {"write": 1}}), during=during, world=World(processes))
    assert (told(context), restarts) == ([(0, "world", "killed", "met")], [True])


def test_a_fault_that_waits_for_a_write_acts_before_its_reply_arrives():
    killed = []

    async def during(faults, context):
        killed.append(await faults.settle_write())  # the first write
        faults.handle_event("http_call", True)
        killed.append(await faults.settle_write())  # the second
        faults.handle_event("http_call", True)
        killed.append(await faults.needs_restart())
        killed.append(await faults.settle_write())

    _, context, _ = run(("killed", {"after_event": {"write": 2}}), during=during)
    assert (killed, told(context)) == ([False, True, True, False], [(0, "world", "killed", "met")])


def test_events_after_the_end_begin_nothing():
    world, context, faults = run(("killed", {"on_event": "command"}))
    faults.handle_event("command")
    assert context.ledger == []
    assert world.sandbox.processes == 2


def test_nobody_to_kill_is_no_effect_and_a_killed_agent_may_stay_dead():
    _, context, faults = run(("killed", {}), world=World(processes=0))
    assert [entry.effect for entry in context.ledger] == ["no_effect"]
    assert not asyncio.run(faults.needs_restart())
    _, _, faults = run(("killed", {"restart": False}))
    assert not asyncio.run(faults.needs_restart())


def test_limits_are_set():
    world, context, _ = run(("memory_limit", {"megabytes": 3}), ("cpu_throttle", {"cores": 0.25}))
    assert world.sandbox.limits == [(3 * 1024 * 1024, None), (None, 0.25)]
    assert [entry.got for entry in context.ledger] == ["3 MiB of memory", "0.25 of a core"]


@pytest.mark.parametrize(("mode", "what"), [("memory_limit", "memory"), ("cpu_throttle", "cpu")])
@pytest.mark.parametrize(
    ("before", "after", "effect", "why"),
    [(2, 3, "met", ""), (2, 2, "no_effect", "never ran into"), (None, None, "no_effect", "cannot see")],
)
def test_a_limit_is_met_if_the_agent_ran_into_it(mode, what, before, after, effect, why):
    world = World()
    world.sandbox.counts[what] = before

    async def during(faults, context):
        assert [entry.effect for entry in context.ledger] == ["no_effect"]
        world.sandbox.counts[what] = after

    _, context, _ = run((mode, {}), world=world, during=during)
    assert [entry.effect for entry in context.ledger] == [effect]
    assert why in context.ledger[0].note


@pytest.mark.parametrize("mode", ["skew", "frozen", "jump"])
def test_a_clock_that_nobody_is_seen_to_read_is_not_met(mode):
    _, context, _ = run((mode, {}))
    assert [(entry.effect, "cannot see" in entry.note) for entry in context.ledger] == [("no_effect", True)]


class Watched(World):
    """It sees who reads its clock."""

    clock_changes = 0
    seen: frozenset[int] | None = frozenset()

    async def set_clock(self, now, *, frozen=False):
        self.clock_changes += 1

    def read_clock_changes(self):
        return self.seen


@pytest.mark.parametrize("mode", ["skew", "frozen", "jump"])
@pytest.mark.parametrize(
    ("seen", "effect", "why"),
    [
        ({1}, "met", ""),
        ({1, 2}, "met", ""),
        ((), "no_effect", "no program read the clock afterwards"),
        ({2}, "no_effect", "changed again before"),
        (None, "no_effect", "cannot see"),
    ],
)
def test_a_change_of_the_clock_is_met_if_a_program_read_it(mode, seen, effect, why):
    world = Watched()

    async def during(faults, context):
        world.seen = None if seen is None else frozenset(seen)

    _, context, _ = run((mode, {}), world=world, during=during)
    assert [(entry.effect, why in entry.note) for entry in context.ledger] == [(effect, True)]


def test_only_what_a_fault_left_is_not_a_change_of_the_agents(tmp_path):
    for name in ("gone", "anew", "taken"):
        (tmp_path / name).touch()
    mine = FileChange("taken", "created", 3)
    world = FakeWorld(tmp_path, changes=[mine])
    placed = (("vanished", {"path": name}) for name in ("gone", "anew", "taken"))
    _, context, faults = run(*placed, world=world)
    assert [entry.effect for entry in context.ledger] == ["no_effect"] * 3
    assert all("cannot see" in entry.note for entry in context.ledger)
    after = [FileChange("anew", "modified", 9), FileChange("gone", "deleted"), FileChange("other", "created", 1)]
    assert [*faults.list_agent_changes(after)] == [after[0], after[2], mine]


class Slow(World):
    """Its clock takes a while to be set."""

    async def set_clock(self, now, *, frozen=False):
        self.frozen = frozen
        await asyncio.sleep(0.1)


def test_a_fault_that_is_done_only_after_the_agent_has_ended_was_not_met(golden: Golden):
    async def during(faults, context):
        faults.handle_event("command")
        await asyncio.sleep(0.01)
        assert context.ledger == []

    world, context, _ = run(("frozen", {"on_event": "command"}), during=during, world=Slow())
    assert world.frozen
    assert told(context) == [(0, "world", "frozen", "no_effect")]
    golden(context.ledger[0].got)


def test_a_fault_that_takes_its_time_is_done_if_the_agent_is_still_there(golden: Golden):
    async def during(faults, context):
        faults.handle_event("command")
        while not context.ledger:
            await asyncio.sleep(0.01)

    _, context, _ = run(("frozen", {"on_event": "command"}), during=during, world=Slow())
    assert told(context) == [(0, "world", "frozen", "no_effect")]
    golden(context.ledger[0].got)


def test_a_fault_that_breaks_is_ours(golden: Golden):
    class Broken(World):
        async def set_clock(self, now, *, frozen=False):
            raise ValueError("no such clock")

    _, context, _ = run(("frozen", {}), world=Broken())
    (trouble,) = context.troubles
    golden(trouble)


@pytest.mark.parametrize(
    ("settings", "border"),
    [
        ({}, "2026-03-11T00:00:00+00:00"),
        ({"zone": "Europe/Berlin"}, "2026-03-10T23:00:00+00:00"),
        ({"to": "month_end"}, "2026-04-01T00:00:00+00:00"),
        ({"to": "month_end", "zone": "America/New_York"}, "2026-04-01T04:00:00+00:00"),
        ({"to": "dst", "zone": "Europe/Berlin"}, "2026-03-29T01:00:00+00:00"),
        ({"to": "dst", "zone": "America/New_York"}, "2026-11-01T06:00:00+00:00"),
    ],
)
def test_jump_comes_to_just_before_the_border(settings, border, golden: Golden):
    fault = plugins.find("faults.world", "jump")(before_s=2, **settings)
    assert datetime.fromtimestamp(fault.find_boundary(NOON), UTC).isoformat() == border
    world, context, _ = run(("jump", {"before_s": 2, **settings}))
    assert world.now == datetime.fromisoformat(border).timestamp() - 2
    golden(context.ledger[0].got)


def test_a_jump_at_the_border_goes_to_the_next():
    fault = plugins.find("faults.world", "jump")()
    border = fault.find_boundary(NOON)
    assert fault.find_boundary(border - 0.5) == border + 86_400


@pytest.mark.parametrize(("felt", "effect"), [(True, "met"), (False, "no_effect")])
def test_a_fault_that_ends_the_agent_before_it_is_wholly_done_is_met_if_that_was_seen(felt, effect, monkeypatch):
    async def disturb(self, world, ctx):
        ctx.memory[HIT_TEST] = lambda: felt
        await asyncio.sleep(0.1)
        return "gone"

    async def during(faults, context):
        faults.handle_event("command")
        await asyncio.sleep(0.01)

    monkeypatch.setattr(Vanished, "disturb", disturb)
    _, context, _ = run(("vanished", {"path": "x", "on_event": "command"}), during=during)
    assert [entry.effect for entry in context.ledger] == [effect]
