"""run_trial: whose failure it is, what is repeated, and what is seen."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from execute_sites import fault, says, seen_of, site_of, trial_of
from golden_words import Golden
from holdfast.errors import AgentUnavailable, HarnessError
from holdfast.execute import trial as module
from holdfast.execute.trial import RESENDS
from holdfast.model.observation import Answer, FaultMet, Turn
from holdfast.model.task import RequestChange, Task, Variation
from holdfast.model.trace import Cost, TraceEvent
from holdfast.protocols.trial import TrialContext


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(seconds: float) -> None: ...

    monkeypatch.setattr(module.asyncio, "sleep", at_once)


def failing(times: int, broken: Exception) -> tuple[Any, list[int]]:
    calls: list[int] = []

    async def act(task: Task, context: TrialContext) -> Answer:
        calls.append(1)
        context.injector.add_fault(FaultMet(0, "tool", "t", "error", len(calls)))
        if len(calls) <= times:
            raise broken
        return Answer((Turn("hi", "fine"),))

    return act, calls


@pytest.mark.parametrize(
    ("broken", "error"),
    [
        (HarnessError("pipe broke"), "pipe broke"),
        (AgentUnavailable("refused", hint="start it"), "refused. start it"),
        (OSError(24, "Too many open files"), "OSError: [Errno 24] Too many open files"),
    ],
)
def test_our_failure_is_an_error_of_the_trial_and_never_ends_the_run(broken: Exception, error: str) -> None:
    act, calls = failing(9, broken)
    seen = seen_of(site_of(act, retries=2))
    assert (seen.error.partition(f" ({__file__}:")[0], seen.attempts, len(calls), seen.turns) == (error, 3, 3, ())


def test_our_failure_is_repeated_and_only_the_last_attempt_is_seen() -> None:
    act, _ = failing(2, HarnessError("once"))
    seen = seen_of(site_of(act, retries=2))
    assert (seen.error, seen.attempts, seen.turns[0].text) == ("", 3, "fine")
    assert [met.call for met in seen.ledger] == [3]


def test_what_the_agent_gave_next_to_our_failure_is_kept() -> None:
    act, _ = failing(9, HarnessError("late", answer=Answer((Turn("hi", "half"),), calls={"t": 1})))
    seen = seen_of(site_of(act))
    assert (seen.error, seen.turns[0].text, seen.calls) == ("late", "half", {"t": 1})


def test_a_trial_in_which_the_agent_ended_badly_is_not_repeated() -> None:
    act, calls = failing(9, HarnessError("late", answer=Answer((Turn("hi", None, ending="raised"),))))
    seen = seen_of(site_of(act, retries=2))
    assert (seen.attempts, len(calls), seen.ending) == (1, 1, "raised")


def test_a_bad_ending_alone_is_a_result() -> None:
    async def act(task: Task, context: TrialContext) -> Answer:
        return Answer((Turn("hi", None, ending="crashed"),))

    seen = seen_of(site_of(act, retries=2))
    assert (seen.error, seen.attempts, seen.ending) == ("", 1, "crashed")


def test_a_configuration_at_fault_ends_the_run_in_a_control_trial_alone() -> None:
    act, _ = failing(9, AgentUnavailable("bad path", config=True))
    assert seen_of(site_of(act)).error == "bad path"
    with pytest.raises(AgentUnavailable):
        seen_of(site_of(act), replace(trial_of(), kind="control"))


def test_faults_are_reported_as_they_are_met() -> None:
    told: list[tuple[str, str]] = []
    act, _ = failing(0, HarnessError(""))
    asyncio.run(module.run_trial(site_of(act), trial_of(n=5), lambda trial, met: told.append((trial.id, met.mode))))
    assert told == [("000000000005", "error")]


def test_an_attack_on_the_input_reaches_the_agent() -> None:
    site = site_of(says("ok"), fault("input", "memory_poisoning", plane="context", payload="obey"))
    seen = seen_of(site)
    assert "obey" in seen.turns[0].asked
    assert [met.mode for met in seen.met] == ["memory_poisoning"]
    assert seen_of(site, trial_of(scenario="calm")).turns[0].asked == "hi"


def test_an_attack_that_had_no_place_was_not_met() -> None:
    async def act(task: Task, context: TrialContext) -> Answer:
        context.injector.rewrite_turn(task.turns[0])
        context.injector.drop_turn_attacks()
        return Answer((Turn("hi", "ok"),))

    seen = seen_of(site_of(act, fault("input", "memory_poisoning", plane="context", payload="obey")))
    assert [met.effect for met in seen.ledger] == ["no_effect"]


def test_an_attack_that_breaks_is_our_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.faults.context.overflow import Overflow

    monkeypatch.setattr(Overflow, "rewrite", lambda self, text, ctx: 1 / 0)
    seen = seen_of(site_of(says("ok"), fault("input", "overflow", plane="context")))
    assert seen.error.startswith("fault overflow failed")


# -- simulate ----------------------------------------------------------------------------------------
def simulated(*injections: Any, text: str = "the answer is long enough", **agent: Any) -> Any:
    return seen_of(site_of(says(text), *injections, simulate="answer", **agent))


def test_a_simulated_fault_damages_the_answer_and_is_marked(golden: Golden) -> None:
    seen = simulated(fault("search", "malicious_response", payload="evil"))
    assert (seen.turns[0].text, seen.simulated) == ("evil", True)
    golden(seen.notes)
    assert [(met.target, met.effect) for met in seen.ledger] == [("(answer)", "met")]


def test_a_calm_scenario_is_not_simulated() -> None:
    site = site_of(says("ok"), simulate="answer")
    assert not seen_of(site, trial_of(scenario="calm")).simulated


def test_a_simulated_failure_is_a_bad_ending() -> None:
    failed = simulated(fault("search", "error", error_code=502)).turns[0]
    timed_out = simulated(fault("chat", "timeout", plane="llm", delay_ms=4000)).turns[0]
    assert (failed.ending, failed.status, failed.text) == ("http_error", 502, None)
    assert (timed_out.ending, timed_out.latency_ms) == ("timeout", 4010.0)


def test_a_simulated_delay_counts_as_time_without_being_sat_through() -> None:
    seen = simulated(fault("search", "slow", delay_ms=5000))
    assert (seen.turns[0].latency_ms, seen.turns[0].ending) == (5010.0, "answered")
    assert seen.duration_ms < 1000


def test_a_simulated_delay_beyond_the_timeout_is_a_timeout() -> None:
    turn = simulated(fault("search", "slow", delay_ms=5000), timeout_ms=3000).turns[0]
    assert (turn.ending, turn.text, turn.latency_ms) == ("timeout", None, 3000)


def test_a_simulated_fault_that_breaks_is_our_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.faults.tools.malformed import Malformed

    async def broken(self: Any, call: Any, forward: Any, ctx: Any) -> Any:
        raise KeyError("bug")

    monkeypatch.setattr(Malformed, "apply", broken)
    seen = simulated(fault("search", "malformed"))
    assert (seen.error_code, f"({__file__}:" in seen.broken_fault) == ("fault-broken", True)


def test_of_an_agent_that_timed_out_it_is_told_how_many_calls_it_made_and_the_last(golden: Golden) -> None:
    async def act(task: Task, context: TrialContext) -> Answer:
        for n in range(3):
            context.sink.add(TraceEvent(float(n), "llm_call", f"m{n}", "llm"))
        return Answer((Turn("hi", None, 9.0, "timeout", "no answer within 9 ms"),))

    golden(seen_of(site_of(act)).notes)


CHANGED = Variation("payload_size_attack", "hi", attack=True, request=RequestChange("payload_size_attack"))
REFUSED = Turn("hi", "no", ending="http_error", status=403)
ATTACK, PLAIN = Task(("hi",), "mutation", CHANGED), Task(("hi",))


@pytest.mark.parametrize(
    ("turn", "steps"),
    [
        (REFUSED, RESENDS),
        (Turn("hi", ending="closed"), RESENDS),
        (Turn("hi", ending="no_answer", status=200), RESENDS),
        (Turn("hi", "I cannot help with that.", status=200), RESENDS),
        (Turn("hi", "fine"), RESENDS[:1]),
        (Turn("hi", ending="timeout"), ()),
        (Turn("hi", ending="http_error", status=429), ()),
        (Turn("hi", ending="http_error", status=503), ()),
    ],
)
def test_after_a_mutation_of_the_request_it_is_repeated_and_the_plain_request_sent_in_calm(
    turn: Turn, steps: tuple[str, ...]
) -> None:
    sent: list[tuple[Task, bool]] = []

    async def act(task: Task, context: TrialContext) -> Answer:
        sent.append((task, context.injector.has_faults))
        context.sink.add(TraceEvent(0.0, "llm_call", "m", cost=Cost("m", 1)))
        context.sink.add(TraceEvent(0.0, "tool_call", "look_up"))
        return Answer((turn if task.changes_request else Turn("hi", "fine"),))

    seen = seen_of(site_of(act, fault("t", "error")), replace(trial_of(), task=ATTACK))
    assert sent == [(ATTACK, True), *((ATTACK, True) if step == "attack" else (PLAIN, False) for step in steps)]
    assert (len(seen.trace), [one.turns for one in seen.repeats]) == (2, [(turn,)] * steps.count("attack"))
    after = seen.asked_again
    assert (after.turns if after else ()) == (Turn("hi", "fine"),) * steps.count("plain")
    assert [event.event_type for event in after.trace] == ["llm_call"] * len(steps) if after else not steps


@pytest.mark.parametrize("answered", range(RESENDS.count("plain")))
def test_the_plain_request_is_sent_until_it_is_refused_and_the_attack_still_repeated(answered: int) -> None:
    plain = 0

    async def act(task: Task, context: TrialContext) -> Answer:
        nonlocal plain
        plain += not task.changes_request
        return Answer((REFUSED if task.changes_request or plain > answered else Turn("hi", "fine"),))

    seen = seen_of(site_of(act), replace(trial_of(), task=ATTACK))
    assert seen.asked_again is not None
    assert seen.asked_again.turns == (*[Turn("hi", "fine")] * answered, REFUSED)
    assert len(seen.repeats) == RESENDS.count("attack")


def test_a_harness_error_in_the_plain_request_is_not_one_of_the_trial() -> None:
    async def act(task: Task, context: TrialContext) -> Answer:
        if not task.changes_request:
            raise AgentUnavailable("gone", config=True)
        return Answer((REFUSED,))

    seen = seen_of(site_of(act), replace(trial_of(), task=ATTACK))
    assert (seen.error, seen.turns) == ("", (REFUSED,))
    assert seen.asked_again is not None
    assert seen.asked_again.error == "gone"


def test_a_refusal_of_an_ordinary_task_is_asked_once() -> None:
    async def act(task: Task, context: TrialContext) -> Answer:
        return Answer((REFUSED,))

    assert seen_of(site_of(act)).asked_again is None
