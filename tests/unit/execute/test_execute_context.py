"""What one trial may keep: nothing that comes after it, and no more than fits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from execute_sites import Scripted, seen_of, site_of, trial_of
from holdfast.errors import AgentUnavailable, HarnessError
from holdfast.execute.trace_sink import NOTES_KEPT
from holdfast.execute.trial import run_trial
from holdfast.model.codec import HALVES, encode
from holdfast.model.observation import Answer, FaultMet, Turn
from holdfast.model.scenario import Injection
from holdfast.model.task import Task
from holdfast.model.trace import TraceEvent
from holdfast.model.world import Evidence
from holdfast.planes.injection.faulted_call import drive
from holdfast.planes.injection.firing import skip_wait
from holdfast.planes.injection.ledger import LEDGER_LIMIT
from holdfast.planes.injection.weather import Weather
from holdfast.protocols.fault import Call, Failed, Reply
from holdfast.protocols.trial import TrialContext, WorldFindings
from planes_kit import FakeContext

CALL = TraceEvent(0.1, "llm_call", "m", "llm", 1)


def test_an_event_that_comes_after_the_trial_is_dropped() -> None:
    kept: list[TrialContext] = []
    told: list[Any] = []

    async def act(task: Task, context: TrialContext) -> Answer:
        kept.append(context)
        context.sink.add(CALL)
        return Answer((Turn("hi", "answer"),))

    site = site_of(act)
    assert isinstance(site.agent, Scripted)
    seen = asyncio.run(run_trial(site, trial_of(), lambda *met: told.append(met), lambda *event: told.append(event)))
    kept[0].sink.add(CALL)
    kept[0].injector.add_fault(FaultMet(0, "llm", "m", "timeout", 1))
    kept[0].sink.note("late")
    assert len(told) == 1
    assert seen.trace == (CALL,)


def test_the_code_of_a_broken_fault_wins_over_the_first() -> None:
    context = FakeContext()
    context.sink.add_error("the provider is down", "model-unavailable")
    context.sink.add_error("fault empty broke", "fault-broken")
    context.sink.add_error("a bug", "bug")
    observation = context.observe(Answer(()))
    assert (observation.error_code, observation.broken_fault) == ("fault-broken", observation.error)


def test_notes_and_troubles_are_capped_and_say_so() -> None:
    context = FakeContext()
    for n in range(NOTES_KEPT + 50):
        context.sink.note(f"note {n} " + "x" * 10_000)
        context.sink.add_error(f"trouble {n}", "bug")
    for kept in (context.notes, context.troubles):
        assert len(kept) == NOTES_KEPT + 1
        assert kept[-1] == "and more"
        assert all(len(text) <= 1_000 for text in kept)


def test_a_target_of_megabytes_is_kept_short_everywhere_and_distinguished() -> None:
    context = FakeContext()
    one, other = ("https://example.com/" + "a" * 2_000_000 + end + "a" * 1_000 for end in "xy")
    assert context.injector.count("http", one) == context.injector.count("http", other) == 1
    assert context.injector.count("http", one) == 2
    assert all(len(key) < 600 for key in context.weather.calls)
    context.sink.add(TraceEvent(0.1, "http_call", f"GET {one}", "http", 1, digest="d"))
    context.sink.add(TraceEvent(0.1, "http_call", f"GET {other}", "http", 1, digest="d"))
    first, second = (event.tool for event in context.trace)
    assert first != second
    assert first.startswith("GET https://example.com/aaa")
    assert len(first) < 600


def test_a_call_of_a_long_target_still_knows_the_faults_it_met() -> None:
    context = FakeContext([Injection("llm", "*", "quota")])
    target = "m" * 5_000

    async def forward(call: Call) -> Reply:
        return Reply("never asked")

    with pytest.raises(Failed):
        drive(context.injector.inject(Call("llm", target, {}, 1), forward, skip_wait))
    assert context.injector.join_modes_met("llm", target, 1) == "quota"
    assert len(context.ledger[0].target) <= 600


def test_firings_beyond_the_limit_are_not_listed_and_one_note_says_so() -> None:
    found: list[FaultMet] = []
    weather = Weather(trial_of(), found.append, print)
    for n in range(LEDGER_LIMIT + 5):
        weather.ledger.record(FaultMet(0, "llm", "m", "timeout", n))
    assert len(found) == LEDGER_LIMIT
    assert [met.call for met in found if met.note] == [LEDGER_LIMIT - 1]


def waited(ms: float) -> Any:
    async def act(task: Task, context: TrialContext) -> Answer:
        held = TraceEvent(0.0, "llm_call", "gpt-4o", "llm", 1, phase="unfinished", duration_ms=900.0,
                          error_type="client_gone", waited_ms=ms)  # fmt: skip
        context.sink.add(held)
        return Answer((Turn("hi", None, 1000.0, "timeout"),))

    return act


def test_a_timeout_is_the_upstreams_if_that_was_silent_and_the_agents_if_it_only_held_the_stream() -> None:
    assert "waited 800 ms for gpt-4o" in seen_of(site_of(waited(800.0))).error
    assert seen_of(site_of(waited(0.0))).error == ""
    assert seen_of(site_of(waited(100.0))).error == ""


HALF = "a\ud800b"


def test_whatever_text_a_trial_brings_can_be_stored_and_is_noted() -> None:
    context = FakeContext([Injection("http", "*", "timeout")])
    count = context.injector.count("http", HALF)
    context.sink.add(TraceEvent(0.1, "http_call", f"GET {HALF}", "http", count, input=HALF, output=HALF))
    context.injector.add_fault(FaultMet(0, "http", HALF, "timeout", count, would=HALF))
    context.sink.add_error(HALF, "bug")
    context.findings = WorldFindings({HALF: Evidence({HALF: [HALF]})}, (), (), ())
    assert context.injector.join_modes_met("http", HALF, count) == "timeout", (
        "the ledger knows the target by the same name"
    )
    seen = context.observe(Answer((Turn(HALF, HALF, detail=HALF),), HALF, (HALF,), {HALF: 1}))
    encode(seen)
    assert seen.turns[0].text == "a\ufffdb"
    assert HALVES in seen.notes
    context.injector.mark_undelivered("http", HALF, count)
    assert context.ledger[0].effect == "no_effect"


@pytest.mark.parametrize("broken", [HarnessError(HALF), AgentUnavailable(HALF, hint=HALF), ValueError(HALF)])
def test_an_error_that_quotes_the_agent_can_be_stored(broken: Exception) -> None:
    async def act(task: Task, context: TrialContext) -> Answer:
        raise broken

    seen = asyncio.run(run_trial(site_of(act), trial_of()))
    assert "a\ufffdb" in seen.error
    encode(seen)


def test_text_that_can_be_stored_is_left_as_it_is() -> None:
    context = FakeContext()
    answer = Answer((Turn("hi", "\x00 \ufffd \U0001f600"),))
    assert context.observe(answer).turns is answer.turns
    assert context.notes == []
