"""A Job: everything that decides one run, fixed before anything runs, and how much it would do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypedDict

from msgspec import UNSET

from holdfast.errors import NotBuilt, SpecError, UserError
from holdfast.model.codes import RunWarning, mark_ignored
from holdfast.model.events import Event
from holdfast.model.spec import Invariant, Problem, Spec
from holdfast.model.trial import Trial
from holdfast.plan import Plan, RunOptions, build_plan
from holdfast.plan.checks import get_traits
from holdfast.runner.consultations import consults_model, count_user_calls
from holdfast.spec import warn_unmasked_values
from holdfast.spec.explain import read_source
from holdfast.store.record import read_observations
from holdfast.store.rundir import RunDir

Listen = Callable[[Event], None]


class Job:
    """A spec, the part of it to run, and how."""

    def __init__(
        self,
        spec: Spec,
        options: RunOptions,
        environ: Mapping[str, str],
        warnings: tuple[RunWarning, ...] = (),
        *,
        resumed: RunDir | None = None,
    ) -> None:
        refuse_unrunnable(spec)
        self.resumed = resumed
        """The run to resume; None for a new run."""
        self.files = ""
        """With `--cached`: the digest of the files next to the spec."""
        self.spec = spec
        self.options = options
        self.environ = environ
        self.warnings = mark_ignored((*warnings, *warn_unmasked_values(spec, environ)), spec.ignored_warnings)
        self.plan: Plan = build_plan(spec, options.select, sequential=options.auto)
        self.secrets = read_world_secrets(spec, options, environ)
        """Values of the world's secrets, by name."""

    @property
    def preflight_trial(self) -> Trial | None:
        """The trial of the preflight; None if it would leave traces that the trials are judged by.

        Also None if the first question was recorded during a failure: a bad answer would say nothing about whether the
        agent can be reached.
        """
        first = self.plan.preflight
        if first is None or not self.options.preflight:
            return None
        marked = self.spec.world is not None and self.spec.world.leaves_marks
        recorded = first.task.recording
        broken = recorded is not UNSET and (recorded.has_failures or recorded.seed is not None)
        return None if marked or broken else first


def read_world_secrets(spec: Spec, options: RunOptions, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the values of the world's secrets, by name; raise UserError if one cannot be resolved."""
    if spec.world is None or not spec.world.secrets:
        return {}
    from holdfast.secrets.values import resolve_secrets

    root = Path(spec.path).resolve().parent
    return resolve_secrets(spec.world.secrets, environ, root, spec.seed, commands=is_trusted(spec, options))


def is_trusted(spec: Spec, options: RunOptions) -> bool:
    """Return whether the spec's commands may provide secrets: the spec is in the project folder, or the user allows
    it.
    """
    return options.allow_commands or Path(spec.path).resolve().parent.is_relative_to(Path.cwd())


def format_spec_warnings(spec: Spec, problems: Iterable[Problem]) -> tuple[RunWarning, ...]:
    """Format each warning about a file as one line with its position."""
    return tuple(
        RunWarning(p.code, f"{spec.path}:{p.line}: {p.path} {p.message}" + (f" ({p.hint})" if p.hint else ""))
        for p in problems
    )


def refuse_unrunnable(spec: Spec) -> None:
    """Reject a contract that this release cannot run completely, or that has a number without a value."""
    for name in spec.unsettled:
        raise UserError(
            f"the variable {name} is not set",
            code="variable-unset",
            hint=f"export {name}=… or write ${{{name}:-default}}",
        )
    if not spec.unbuilt:
        return
    source = read_source(spec)
    problems = [
        Problem(u.why, u.section, line=u.position.line, column=u.position.column, hint=u.hint, code="not-built")
        for u in spec.unbuilt
    ]
    raise (
        SpecError(spec.path, problems, source=source)
        if source or spec.built
        else NotBuilt(spec.unbuilt[0].why, code="not-built")
    )


class DryRun(TypedDict):
    """The number of trials and model calls of a run."""

    trials: int
    cells: int
    controls: int
    judge_calls: int
    user_calls: int
    """An upper limit: a conversation may end early."""


def count_planned(job: Job) -> DryRun:
    """Count a whole new run, or what is missing from a run to resume."""
    plan = job.plan
    stored = read_observations(job.resumed, traces=False) if job.resumed else ()
    done = {observation.trial for observation in stored if not observation.error}
    votes = {rule.id: count_calls(rule) for rule in plan.invariants if consults_model(rule)}
    trials = judge_calls = asked_users = 0
    for trial in plan.trials:
        if trial.id not in done:
            trials += 1
            judge_calls += sum(votes.get(rule.id, 0) for rule in plan.get_rules(trial)) if votes else 0
            asked_users += count_user_calls(trial.task)
    by_id = {trial.id: trial for trial in (*plan.controls, *([job.preflight_trial] if job.preflight_trial else []))}
    controls = [trial for id, trial in by_id.items() if id not in done]
    asked_users += sum(count_user_calls(trial.task) for trial in controls)
    return DryRun(
        trials=trials, cells=len(plan.cells), controls=len(controls), judge_calls=judge_calls, user_calls=asked_users
    )


def count_calls(rule: Invariant) -> int:
    """Model calls for one verdict of the rule, without cached or malformed replies."""
    votes = rule.settings.get("votes", 1)
    times = votes if isinstance(votes, int) else 1  # a plug-in may use the setting for something else
    return times * get_traits(rule).calls_per_vote
