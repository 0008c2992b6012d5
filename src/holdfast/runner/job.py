"""A Job: everything that decides one run, fixed before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from msgspec import UNSET

from holdfast.errors import NotBuilt, SpecError, UserError
from holdfast.model.codes import RunWarning, mark_ignored
from holdfast.model.events import Event
from holdfast.model.spec import Problem, Spec
from holdfast.model.trial import Trial
from holdfast.plan import Plan, RunOptions, build_plan
from holdfast.spec import warn_unmasked_values
from holdfast.spec.explain import read_source

Listen = Callable[[Event], None]


class Job:
    """A spec, the part of it to run, and how."""

    def __init__(
        self, spec: Spec, options: RunOptions, environ: Mapping[str, str], warnings: tuple[RunWarning, ...] = ()
    ) -> None:
        refuse_unrunnable(spec)
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
    """Whether the spec's commands may provide secrets: the spec is in the project folder, or the user allows it."""
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
