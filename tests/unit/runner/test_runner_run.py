"""A planner that invents scenarios: its trials run, are stored and judged, and it learns what came of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent

import pytest
from msgspec.structs import replace

from holdfast.model.codec import digest
from holdfast.model.judged import CallSite, JudgingProgress, VerdictCode
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.spec import AgentSpec, Invariant, Spec, ToolRef
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.plan import RunOptions, encode_agent, encode_identity
from holdfast.runner.job import Job
from holdfast.runner.run import Budget, RunInProgress, run
from holdfast.store.record import read_scenarios, read_trials, read_verdicts
from holdfast.store.rundir import RunDir

AGENT = """
    def search(query):
        return "7 left"

    def ask(prompt):
        try:
            return search(prompt) + ", and " + search("more")
        except Exception:
            return "sorry"
"""


class Inventor:
    """Asks once in calm, then breaks each call that it saw."""

    detailed = True

    def __init__(self, spec: Spec, first: Trial) -> None:
        self.heard: list[JudgingProgress] = []
        self._spec = spec
        self._first = first

    def next(self, judged: JudgingProgress) -> Sequence[Trial]:
        self.heard.append(judged)
        if not judged.done:
            return [self._first]
        return [self._broken(site) for site in judged.trials[0].calls] if judged.done == 1 else []

    def _broken(self, site: CallSite) -> Trial:
        fault = Injection("tool", site.target, "error")
        scenario = Scenario(
            f"hunt-{site.ordinal}", (replace(fault, schedule=replace(fault.schedule, on_call=site.ordinal)),)
        )
        first = self._first
        agent = encode_agent(self._spec.agent)
        id = digest(encode_identity("contract", scenario, first.task, {}, 0, first.invariant, agent, first.seed))
        return replace(first, id=id, scenario=scenario)


@pytest.fixture
def spec(tmp_path: Path) -> Spec:
    (tmp_path / "agent.py").write_text(dedent(AGENT))
    (tmp_path / "spec.yaml").write_text("{}")
    agent = AgentSpec("python", "agent:ask", isolation="inline", tools=(ToolRef("agent:search"),))
    rule = Invariant("says", "contains", {"value": "left"})
    path = str(tmp_path / "spec.yaml")
    return Spec(path, agent, tasks=(Task(("how many?",)),), scenarios=(Scenario("calm"),), invariants=(rule,))


def test_a_planner_may_invent_scenarios(spec: Spec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(spec, RunOptions(preflight=False), {})
    planner = Inventor(spec, job.plan.trials[0])
    monkeypatch.setattr(RunInProgress, "_build_planner", lambda *_: planner)
    rundir = RunDir.create(tmp_path / "runs")
    running = run(job, rundir, lambda event: None)
    calm, broken = planner.heard[1].trials, planner.heard[2].trials
    assert [one.calls for one in calm] == [(CallSite("tool", "search", 1), CallSite("tool", "search", 2))]
    assert [[(met.index, met.call, met.effect) for met in one.ledger] for one in broken] == [
        [(0, 1, "met")],
        [(0, 2, "met")],
    ]
    assert [one.verdicts for one in (*calm, *broken)] == [
        (VerdictCode("says", "pass", ""),),
        (VerdictCode("says", "fail", "text-missing"),),
        (VerdictCode("says", "fail", "text-missing"),),
    ]
    assert [one.outcome for one in running.intake.tally.iter_cells()] == ["pass"]
    known = read_scenarios(rundir, spec.scenarios)
    stored = [one.build_trial(known) for one in read_trials(rundir) if one.kind == "contract"]
    assert [one.scenario.injections != () for one in stored] == [False, True, True]
    assert [one.outcome for one in read_verdicts(rundir.get_verdict_file())] == ["pass", "fail", "fail"]


def test_a_planner_that_does_not_ask_learns_of_no_single_trial(spec: Spec, tmp_path: Path) -> None:
    job = Job(spec, RunOptions(preflight=False), {})
    running = run(job, RunDir.create(tmp_path / "runs"), lambda event: None)
    assert running.intake.judged is None


TRIALS = [Trial(str(n), "contract", Scenario("calm"), Task(("q",)), n) for n in range(5)]


def let_through(options: RunOptions, *, done: int = 0, price: float = 0.0, takes_s: float = 0.0) -> tuple[int, str]:
    """How many of five trials begin, and what ended it, where each costs and takes so much."""
    state = {"spent": 0.0, "now": 100.0}
    budget = Budget(options, done, lambda: state["spent"], lambda: state["now"])
    count = 0
    for _ in budget.limit_trials(TRIALS):
        count += 1
        state["spent"] += price
        state["now"] += takes_s
    return count, budget.ended_by


def test_without_a_budget_all_go_through():
    assert let_through(RunOptions(), price=9.0, takes_s=9.0) == (5, "")


def test_trials_that_are_stored_already_count():
    assert let_through(RunOptions(max_trials=3)) == (3, "--max-trials 3")
    assert let_through(RunOptions(max_trials=3), done=2) == (1, "--max-trials 3")
    assert let_through(RunOptions(max_trials=5)) == (5, "")


def test_money_ends_it_once_it_is_spent():
    assert let_through(RunOptions(max_cost=1.0), price=0.4) == (3, "--max-cost 1")


def test_time_ends_it_from_the_first_trial_on():
    assert let_through(RunOptions(max_time_s=10.0), takes_s=4.0) == (3, "--max-time 10s")


def test_a_later_batch_is_not_begun_either():
    budget = Budget(RunOptions(max_trials=5), 0, lambda: 0.0, lambda: 0.0)
    assert len(list(budget.limit_trials(TRIALS))) == 5
    assert budget.ended_by == ""
    assert list(budget.limit_trials(TRIALS)) == []
    assert budget.ended_by == "--max-trials 5"
