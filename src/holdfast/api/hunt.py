"""Hunts: from a file to the causes it finds, with the same code as every run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from holdfast.api.job import load_part, prepare_job
from holdfast.errors import HarnessError, HoldfastError, NothingProven, UsageError, UserError
from holdfast.hunt.failed_trial import list_forms
from holdfast.hunt.fault_map import build_fault_map
from holdfast.hunt.planner import HuntPlanner
from holdfast.hunt.points import list_sweep_modes
from holdfast.hunt.result import (
    CALM_FAILS,
    SEVERITIES,
    HuntResult,
    HuntStop,
    build_result,
    collect_causes,
    collect_rules,
)
from holdfast.model.scenario import Scenario
from holdfast.model.score import CostEstimate
from holdfast.model.spec import Spec
from holdfast.plan import Plan, RunOptions
from holdfast.plan.options import HuntOptions, HuntPurpose, KnownFaults
from holdfast.runner.job import Job, format_spec_warnings
from holdfast.runner.outcome import RunOutcome, apply_hunt, store_score
from holdfast.runner.past.hunted import load_hunt, read_tried_faults
from holdfast.runner.start import load_stored_spec
from holdfast.score.run_totals import SpendingTally, estimate_cost
from holdfast.store.known_causes import KnownCause, read_known_causes, write_causes
from holdfast.store.record import read_observations, read_scenarios, read_trials, read_verdicts
from holdfast.store.rundir import HUNT, MAP, RunDir, seal_hunt, write_json
from holdfast.store.traces import read_details

CALM_REPLICAS = 3
"""Calm trials of each prompt, unless a script or a recording answers for the model."""
_ABOUT_SCENARIOS = frozenset({"lint-idle-scenario", "lint-no-calm", "lint-when-unmet"})
"""Warnings about the scenarios of the file, which a hunt does not run."""


class EndedHunt(Struct, frozen=True):
    """A hunt that has ended."""

    result: HuntResult
    planner: HuntPlanner
    run: RunDir
    outcome: RunOutcome
    """As reports show it: by its causes."""


def prepare_hunt(path: Path, options: RunOptions, *, cause: str = "") -> Job:
    """Return the job of a new hunt; `cause`: try only this known cause."""
    # The spec is loaded twice: known causes and the number of calm replicas depend on it, and become options with which
    # it is loaded again.
    spec, problems = load_part(path, options)
    script = bool(spec.models) and all(one.is_script for one in spec.models.values())
    if script and options.hunt.confirm_live:
        what = "--confirm-live: a script answers for the model, so there is no live model to call"
        raise UsageError(what, code="option-inapplicable", hint="leave it out: a script always gives the same answers")
    scripted = options.replay is not None or script
    options = replace(options, replicas=options.replicas or (1 if scripted else CALM_REPLICAS))
    if not options.hunt.shrink and options.hunt.purpose != "map":
        options = replace(options, hunt=_with_known(spec, options, cause))
    spec, problems = load_part(path, options)
    if not spec.invariants:
        raise UserError("a hunt needs rules, but this file has none that it can judge", code="hunt-no-rules")
    about_hunt = [one for one in problems if one.code not in _ABOUT_SCENARIOS]
    return prepare_job(spec, options, format_spec_warnings(spec, about_hunt))


def _with_known(spec: Spec, options: RunOptions, cause: str) -> HuntOptions:
    """Return the options of the hunt with the causes of earlier ones."""
    known = load_known_causes(spec, options.select.invariants, cause)
    prompts = list(dict.fromkeys(task.prompt for task in spec.tasks))
    orphans = [one for one in known if one.prompt not in prompts or one.params not in spec.params or not one.rules]
    if options.hunt.replay_orphans:
        known = [one for one in known if one not in orphans]
        questions = [(prompt, params) for prompt in prompts for params in spec.params]
        known += [replace(one, prompt=prompt, params=params) for one in orphans for prompt, params in questions]
    return replace(
        options.hunt,
        known=tuple(known),
        orphans=tuple(one.scenario.name for one in orphans),
        only_known=options.hunt.only_known or bool(cause),
    )


def prepare_shrink(run: RunDir, trial: str, options: RunOptions, config: Path | None) -> Job:
    """Return the hunt that reduces a failed trial to its cause; raise UserError if it did not fail, or met no fault."""
    manifest = run.read_manifest()
    spec, _ = load_stored_spec(run, manifest, None, os.environ)
    begun = next(one for one in read_trials(run) if one.id == trial).build_trial(read_scenarios(run, spec.scenarios))
    severity = {rule.id: SEVERITIES.index(rule.severity) for rule in spec.invariants}
    failed = [one for one in read_verdicts(run.get_verdict_file()) if one.trial == trial and one.outcome == "fail"]
    if not failed or begun.scenario.calm:
        problem = "had no faults" if failed else "did not fail"
        hint = "holdfast show lists the trials of a run"
        raise UserError(f"trial {trial} of run {run.id} {problem}", code="nothing-to-shrink", hint=hint)
    worst = min(failed, key=lambda one: severity.get(one.invariant, 9))
    (observation,) = (one for one in read_observations(run, traces=False) if one.trial == trial)
    forms = list_forms(begun, observation.ledger, spec.params[0])
    goal = replace(options.hunt, shrink=forms, failure=(worst.invariant, worst.code), failed_trial=trial)
    seed = manifest.seed if options.seed is None else options.seed
    job = prepare_hunt(config or manifest.original, replace(options, hunt=goal, seed=seed))
    if worst.invariant not in {rule.id for rule in job.plan.invariants}:
        problem = f"trial {trial} broke {worst.invariant}, which is not a rule that hunts of this file judge"
        hint = "a hunt judges the rules of the contract if there is one, and no rule with probes"
        raise UserError(problem, code="nothing-to-shrink", hint=hint)
    return job


def prepare_confirmation(job: Job, result: HuntResult) -> Job:
    """Return the causes once more, without the recording: as often as `--confirm-live` says."""
    ids = {one.id for one in result.causes}
    known = tuple(one for one in load_known_causes(job.spec, ()) if one.scenario.name in ids)
    hunt = replace(job.options.hunt, known=known, only_known=True, purpose="confirmation")
    spec, problems = load_part(Path(job.spec.path), replace(job.options, replay=None, hunt=hunt))
    return prepare_job(spec, replace(job.options, replay=None, hunt=hunt), format_spec_warnings(spec, problems))


def add_live_counts(hunted: EndedHunt, live: HuntPlanner) -> EndedHunt:
    """Return the hunt with how often its causes failed live. One that was tried and never did is flaky."""
    runs = {name: hunt.find_runs(plan) for hunt in live.hunts for plan, name in hunt.known.items()}
    causes = [
        replace(
            one,
            live_failed=sum(not collect_rules(run.failures).isdisjoint(one.rules) for run in runs.get(one.id, ())),
            live_runs=len(runs.get(one.id, ())),
        )
        for one in hunted.result.causes
    ]
    failing = tuple(one for one in causes if one.live_failed or not one.live_runs)
    flaky = (*hunted.result.flaky, *(one for one in causes if one.live_runs and not one.live_failed))
    return _store_hunt(replace(hunted, result=replace(hunted.result, causes=failing, flaky=flaky)))


def _store_hunt(hunted: EndedHunt) -> EndedHunt:
    """Store what the hunt found, and the verdict that follows from it."""
    write_json(hunted.run.path / HUNT, hunted.result)
    write_json(hunted.run.path / MAP, build_fault_map(hunted.planner, read_tried_faults([hunted.run])))
    seal_hunt(hunted.run)
    outcome = apply_hunt(hunted.outcome, hunted.run, hunted.result)
    store_score(hunted.run, outcome.score)
    return replace(hunted, outcome=outcome)


def load_known_causes(spec: Spec, rules: Iterable[str], cause: str = "") -> list[KnownFaults]:
    """Return the causes of earlier hunts, without repeats; raise UserError if the named one is unknown."""
    wanted, own = set(rules), {rule.id for rule in spec.invariants}
    by_rule = {rule: causes for rule, causes in read_known_causes(spec).items() if not wanted or rule in wanted}
    every = [one for causes in by_rule.values() for one in causes]
    # A renamed rule must not silence its causes: they stay known until a hunt finds or retires them.
    broken: dict[str, list[str]] = {}
    for rule, causes in by_rule.items():
        for one in causes if rule in own else ():
            broken.setdefault(one.id, []).append(rule)
    wanted_causes = [one for one in every if one.id.startswith(cause)]
    known = {
        one.id: KnownFaults(one.scenario, one.prompt, one.params, tuple(broken.get(one.id, ())))
        for one in wanted_causes
    }
    if cause and not known:
        hint = "holdfast hunt lists them" if not every else f"known: {', '.join(sorted({one.id for one in every})[:8])}"
        raise UserError(f"no hunt of this file found a cause {cause!r}", code="cause-unknown", hint=hint)
    return [known[id] for id in sorted(known)]


def conclude_hunt(
    plan: Plan, options: RunOptions, outcome: RunOutcome, show_calm: Callable[[RunOutcome], None] = lambda _: None
) -> EndedHunt:
    """Store the result of the hunt in its run and among the known causes.

    Raises if the calm run shows that a hunt is impossible, and if Holdfast failed and no cause was found before. The
    result is stored first, and `show_calm` shows calm failures and harness errors.
    """
    run = RunDir(Path(outcome.run.path))
    planner = load_hunt(run, plan, options)
    count = len({observation.trial for observation in read_observations(run, traces=False)})
    result = build_result(planner, plan.spec, count, _get_stop(options, planner, run, outcome, count))
    result = replace(result, cost=_estimate_cost(planner, run, options.max_trials))
    refused = None if result.stopped == "interrupted" else _refusal(planner, run, outcome)
    if refused is not None:
        result = replace(result, refused=refused.code, notes=(*result.notes, str(refused)))
        ended = _store_hunt(EndedHunt(result, planner, run, outcome))
        if refused.code == CALM_FAILS:
            show_calm(ended.outcome)
        raise refused
    if planner.options.purpose == "map" and result.stopped != "broken":
        return EndedHunt(result, planner, run, outcome)
    hunted = _store_hunt(EndedHunt(result, planner, run, outcome))
    known = (
        (rule, KnownCause(cause.id, cause.code, _find_scenario(planner, cause.id), cause.prompt, cause.params))
        for cause in result.causes
        for rule in cause.rules
        if not cause.shrunk_trial
    )
    # The shards of a hunt may be merged on a machine that does not have the spec.
    if plan.spec.file is None or Path(plan.spec.file).parent.is_dir():
        write_causes(plan.spec, known, result.fixed, result.retired)
    if result.stopped == "broken" and not result.causes:
        show_calm(hunted.outcome)
        raise HarnessError("Holdfast could not observe the agent's trials, or not judge them", code="hunt-broken")
    return hunted


def _estimate_cost(planner: HuntPlanner, run: RunDir, max_trials: int | None) -> CostEstimate | None:
    calm = {one.trial for one in planner.calm}
    spending = SpendingTally()
    for observation in read_observations(run, traces=False):
        if observation.trial in calm:
            spending.add(read_details(run, observation).trace)
    return estimate_cost(spending, len(calm), max_trials)


def _find_scenario(planner: HuntPlanner, id: str) -> Scenario:
    hunts = ((hunt, cause) for hunt in planner.hunts for cause in collect_causes(planner, hunt))
    scenarios = (hunt.points.build_scenario(cause.points) for hunt, cause in hunts)
    return next(one for one in scenarios if one.name == id)


def _get_stop(options: RunOptions, planner: HuntPlanner, run: RunDir, outcome: RunOutcome, count: int) -> HuntStop:
    ended = run.read_end()
    if ended is None or not ended.complete:
        return "interrupted"
    if _is_broken(planner):
        return "broken"
    if planner.done or not ended.stopped_by:
        return "done"
    if options.max_trials is not None and count >= options.max_trials:
        return "trials"
    spent = outcome.score.spent
    used = (spent.cost_usd or 0.0) if spent is not None else 0.0
    return "cost" if options.max_cost is not None and used >= options.max_cost else "time"


def _is_broken(planner: HuntPlanner) -> bool:
    return planner.broken or any(one.error for one in planner.calm)


def _refusal(planner: HuntPlanner, run: RunDir, outcome: RunOutcome) -> HoldfastError | None:
    """Return why the calm trials do not allow a hunt; None if they do."""
    failing = planner.failing_in_calm
    if failing and planner.options.purpose != "map":
        rules = ", ".join(dict.fromkeys(rule for rule, _ in failing))
        hint = "fix the agent or the rule first, or hunt for another rule: --rule ID"
        return UserError(f"the agent breaks {rules} even without faults", code=CALM_FAILS, hint=hint)
    if _is_broken(planner):
        return None  # what was found before is stored first
    if not outcome.score.trials and not planner.calm and not planner.broken_in_calm:
        reason = "every rule applies only under faults, so no calm trial shows where to place them"
        return NothingProven(reason, code="hunt-no-rules")
    ended = run.read_end()
    if planner.broken_in_calm and ended is not None and ended.stopped_by:
        first = f"it asks every prompt without faults first, which takes {planner.calm_total} trials; give it more"
        return NothingProven(f"{ended.stopped_by} ended the hunt in its calm trials: {first}", code="hunt-budget")
    if not planner.calm or any(hunt.points.all for hunt in planner.hunts):
        return None
    if planner.options.sweep and any(one.calls for one in planner.calm):
        modes = " or ".join(planner.options.sweep)
        where = "holdfast map marks the writes; an agent is killed only in a sandbox"
        return NothingProven(f"--sweep: no write of this agent can meet {modes} ({where})", code="hunt-no-writes")
    advice = "name its functions in agent.tools, or let its model, HTTP and MCP calls go through Holdfast"
    reason = f"the agent made no call that Holdfast can see, so there is nowhere to place a fault; {advice}"
    return NothingProven(reason, code="hunt-no-calls")


def build_hunt_options(
    *, order: int = 2, sweep: str = "", confirm_live: int = 0, purpose: HuntPurpose = "hunt"
) -> HuntOptions:
    """Return the options of a hunt; raise UserError if a mode of a sweep is not one that hunts use at writes."""
    modes = tuple(filter(None, (one.strip() for one in sweep.split(","))))
    for mode in modes:
        if mode not in list_sweep_modes():
            hint = f"modes: {', '.join(list_sweep_modes())}"
            raise UsageError(f"--sweep: {mode!r} cannot be tried at writes", code="argument-invalid", hint=hint)
    return HuntOptions(order=order, sweep=modes, confirm_live=confirm_live, purpose=purpose)
