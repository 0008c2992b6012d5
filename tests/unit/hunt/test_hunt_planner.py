"""The planner of a hunt on trials that are only described."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from golden_words import Golden
from holdfast.api.hunt import EndedHunt, add_live_counts
from holdfast.hunt.planner import HuntPlanner
from holdfast.hunt.points import Points
from holdfast.hunt.result import HuntedCause, HuntResult, build_result, merge_causes
from holdfast.model.judged import CallSite, JudgedTrial, JudgingProgress, VerdictCode
from holdfast.model.observation import FaultMet
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.spec import AgentSpec, Invariant, Spec
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.plan.options import HuntOptions, KnownFaults
from holdfast.plan.serving import EVERY_RULE
from holdfast.planes.injection.active_injection import compute_trial_seed
from holdfast.report.terminal.hunt import format_cause

LOST = Injection("tool", "charge", "lost_reply")
LOST = replace(LOST, schedule=replace(LOST.schedule, on_call=1, count="logical"))
KNOWN = KnownFaults(Scenario("hunt-1", (LOST,)), "Pay")
RULE = Invariant("once", "side_effect_once", {"tool": "charge"})
TRIAL = Trial("calm-0", "contract", Scenario("calm"), Task(("Pay",)), 0, {}, EVERY_RULE, 0)
Fails = Callable[[int], bool]


def judged(trial: Trial, *, fails: bool = False, error: bool = False, scripted: bool = True) -> JudgedTrial:
    ledger = tuple(FaultMet(n, one.plane, one.target, one.mode, 1) for n, one in enumerate(trial.scenario.injections))
    verdict = VerdictCode("once", "fail" if fails else "pass", "done-twice" if fails else "")
    calls = (CallSite("tool", "charge", 1),)
    return JudgedTrial(
        trial.id, "answered", () if error else (verdict,), ledger, calls, (0,), scripted=scripted, error=error
    )


def hunted(
    spec: Spec, options: HuntOptions, *, fails: Fails = lambda n: False, errors: int = 0, scripted: bool = True
) -> tuple[HuntPlanner, HuntResult]:
    """A hunt whose trials with faults are broken first, so many, and then fail as `fails` says."""
    calm = [replace(TRIAL, id=f"calm-{n}", replica=n) for n in range(3)]
    planner = HuntPlanner(spec, calm, options)
    batch: Sequence[Trial] = planner.next(JudgingProgress())
    count = number = 0
    while batch:
        trials = []
        for trial in batch:
            faulty = not trial.scenario.calm
            broken = faulty and errors > 0
            errors -= broken
            trials.append(judged(trial, fails=faulty and not broken and fails(number), error=broken, scripted=scripted))
            number += faulty and not broken
            count += 1
        batch = planner.next(JudgingProgress(trials=tuple(trials)))
    return planner, build_result(planner, spec, count, "done")


@pytest.fixture
def spec() -> Spec:
    return Spec("spec.yaml", AgentSpec("python", "agent:ask"), tasks=(Task(("Pay",)),), invariants=(RULE,))


def test_a_known_cause_whose_prompt_is_gone_is_not_tried(spec: Spec) -> None:
    _, found = hunted(spec, HuntOptions(only_known=True, known=(KNOWN, replace(KNOWN, prompt="Pay now"))[1:]))
    assert (found.untried, found.unproven, found.fixed, found.exit_code) == (("hunt-1",), ("hunt-1",), (), 5)


@pytest.mark.parametrize("outcome", ["pass", "unproven"])
def test_a_known_cause_is_not_fixed_while_its_rule_is_unproven(spec: Spec, outcome: Any) -> None:
    """The agent now ends without an answer: a rule on the answer proves nothing, and another rule passes."""
    other = replace(RULE, id="other")
    spec = replace(spec, invariants=(RULE, other))
    planner = HuntPlanner(spec, (TRIAL,), HuntOptions(only_known=True, known=(replace(KNOWN, rules=("once",)),)))
    batch: Sequence[Trial] = planner.next(JudgingProgress())
    while batch:
        verdicts = (VerdictCode("once", outcome, ""), VerdictCode("other", "pass", ""))
        batch = planner.next(JudgingProgress(trials=tuple(replace(judged(one), verdicts=verdicts) for one in batch)))
    found = build_result(planner, spec, 3, "done")
    assert (found.fixed, found.not_met) == ((("hunt-1",), ()) if outcome == "pass" else ((), ("hunt-1",)))


def test_only_live_runs_that_happened_count(spec: Spec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.api.hunt._store_hunt", lambda hunted: hunted)
    options = HuntOptions(only_known=True, known=(KNOWN,), confirm_live=4)
    planner, found = hunted(spec, options, fails=lambda n: True)
    cause = replace(found.causes[0], id="hunt-1")
    before = replace(found, causes=(cause, replace(cause, id="hunt-2")))
    for fails, live in ((lambda n: n < 3, (3, 4)), (lambda n: False, (0, 4))):
        tried, _ = hunted(spec, options, fails=fails)
        ended = EndedHunt(before, planner, None, None)  # type: ignore[arg-type]
        after = add_live_counts(ended, tried).result
        counts = {one.id: (one.live_failed, one.live_runs) for one in (*after.causes, *after.flaky)}
        assert counts == {"hunt-1": live, "hunt-2": (0, 0)}
        assert [one.id for one in after.flaky] == ([] if live[0] else ["hunt-1"])


@pytest.mark.parametrize(("errors", "broken"), [(1, False), (2, False), (3, True)])
def test_a_broken_trial_is_tried_again_but_not_for_ever(spec: Spec, errors: int, broken: bool) -> None:
    options = HuntOptions(only_known=True, known=(KNOWN,), confirm_live=1)
    planner, found = hunted(spec, options, errors=errors, fails=lambda n: True)
    assert (planner.broken, len(found.causes), found.untried) == (broken, not broken, ("hunt-1",) if broken else ())


@pytest.mark.parametrize(
    ("fails", "causes", "flaky", "exit_code"),
    [
        (lambda n: n == 0, 0, 1, 5),
        (lambda n: n in (0, 4), 1, 0, 1),
        (lambda n: False, 0, 0, 0),
    ],
)
def test_one_failure_of_a_noisy_agent_is_no_cause(
    spec: Spec, fails: Fails, causes: int, flaky: int, exit_code: int, golden: Golden
) -> None:
    _, found = hunted(spec, HuntOptions(only_known=True, known=(KNOWN,)), fails=fails, scripted=False)
    assert (len(found.causes), len(found.flaky), found.exit_code) == (causes, flaky, exit_code)
    golden(list(found.notes))


@pytest.mark.parametrize(
    ("check", "changes", "gave_up"),
    [
        ("completes", {}, True),
        ("completes", {"arrived": (0,)}, False),  # any tool may write if no rule says which do
        ("completes", {"statements": 1}, False),
        ("side_effect_once", {"arrived": (0,)}, True),  # the rule is about charge, and this was find
        ("side_effect_once", {"arrived": (1,)}, False),
    ],
)
def test_an_agent_that_wrote_something_did_not_give_up(
    spec: Spec, check: str, changes: dict[str, Any], gave_up: bool
) -> None:
    settings = {} if check == "completes" else RULE.settings
    spec = replace(spec, invariants=(replace(RULE, check=check, settings=settings),))
    calls = (CallSite("tool", "find", 1), CallSite("tool", "charge", 1), CallSite("llm", "*", 1))
    down = Scenario("hunt-1", (Injection("llm", "*", "server_error"),))

    def seen(trial: Trial, ending: str, **more: Any) -> JudgedTrial:
        verdict = VerdictCode("once", "pass" if ending == "answered" else "fail", "ended-as")
        return replace(judged(trial), ending=ending, calls=calls, verdicts=(verdict,), **more)

    planner = HuntPlanner(spec, (TRIAL,), HuntOptions(only_known=True, known=(KnownFaults(down, "Pay"),)))
    planner.next(JudgingProgress())
    (trial, *_) = planner.next(JudgingProgress(trials=(seen(TRIAL, "answered"),)))
    planner.next(JudgingProgress(trials=(seen(trial, "crashed", **changes),)))
    found = build_result(planner, spec, 2, "done")
    assert (len(found.gave_up), len(found.causes)) == ((1, 0) if gave_up else (0, 1))


def test_a_mode_with_two_settings_is_shown_as_failed_if_one_of_them_fails(spec: Spec) -> None:
    calls = (CallSite("llm", "*", 1),)

    def seen(trial: Trial) -> JudgedTrial:
        cut = [one for one in trial.scenario.injections if one.mode == "truncated_response"]
        return replace(
            judged(trial, fails=any(one.settings == {"max_tokens": 8} for one in cut)),
            calls=calls,
        )

    planner = HuntPlanner(spec, (TRIAL,), HuntOptions(order=1))
    batch: Sequence[Trial] = planner.next(JudgingProgress())
    while batch:
        batch = planner.next(JudgingProgress(trials=tuple(map(seen, batch))))
    found = build_result(planner, spec, 1, "done")
    (row,) = found.matrix
    assert (row.states["truncated_response"], row.states["rate_limit"]) == ("failed", "held")
    assert [one.scenario["llm_faults"] for one in found.causes] == [
        [{"mode": "truncated_response", "max_tokens": 8, "times": 1, "on_call": 1, "count": "logical"}]
    ]


@pytest.mark.parametrize("severity", ["critical", "low"])
def test_the_target_of_a_severe_rule_is_tried_first(spec: Spec, severity: Any) -> None:
    spec = replace(spec, invariants=(replace(RULE, severity=severity),))
    calls = (CallSite("tool", "find", 1), CallSite("tool", "charge", 1), CallSite("tool", "tell", 1))
    planner = HuntPlanner(spec, (TRIAL,), HuntOptions(order=1))
    planner.next(JudgingProgress())
    planner.next(JudgingProgress(trials=(replace(judged(TRIAL), calls=calls, writes=(1,)),)))
    points = planner.hunts[0].search.points
    heaviest = {points[number].site for number in range(len(points)) if points[number].weight == 3.0}
    assert heaviest == ({1} if severity == "critical" else set())


def test_a_repeated_plan_draws_the_same_random_values() -> None:
    spec = Spec("", AgentSpec("python"), invariants=(RULE,))
    points = Points(spec)
    plan, _ = points.build_plan(Scenario("s", (LOST,)))
    scenario = points.build_scenario(plan)
    seeds = {compute_trial_seed(replace(TRIAL, scenario=scenario, replica=n)) for n in range(3)}
    assert seeds == {compute_trial_seed(replace(TRIAL, scenario=replace(scenario, steady=False)))}


def _cause(prompt: str, rule: str) -> HuntedCause:
    faults = ({"plane": "tool", "target": "charge", "on_call": 1, "mode": "lost_reply"},)
    scenario = {"name": "hunt-1", "tool_faults": [{"tool": "charge", "mode": "lost_reply", "on_call": 1}]}
    return HuntedCause("hunt-1", (rule,), "done-twice", faults, 2, 2, 0, 3, scenario, "t", False, "", prompt, (prompt,))


def test_a_cause_on_two_prompts_is_one_block_that_lists_them() -> None:
    (cause,) = merge_causes([_cause("Charge it", "once"), _cause("Pay it", "once"), _cause("Go", "answers")])
    assert (cause.rules, cause.prompts) == (("once", "answers"), ("Charge it", "Pay it", "Go"))
    assert (cause.failed, cause.runs, cause.calm_failed, cause.calm_runs) == (6, 6, 0, 9)
    shown = list(format_cause(cause, "shop.yaml"))
    assert shown[1:4] == ["  asked      Charge it", "             Pay it", "             Go"]
