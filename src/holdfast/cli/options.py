"""Options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from holdfast.errors import UsageError
from holdfast.model.spec import Problem, Spec
from holdfast.plan import Select
from holdfast.runner.job import Options

F = TypeVar("F", bound=Callable[..., Any])


class Percentage(click.FloatRange):
    """A number from 0 to 100. `nan` is none: nothing would ever be below it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if number != number:
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


DEFAULT_FILES = ("holdfast.yaml", "flakestorm.yaml")

config = click.option(
    "-c", "--config", type=click.Path(path_type=Path), metavar="FILE", help="The spec; default holdfast.yaml."
)
as_json = click.option("--json", "as_json", is_flag=True, help="JSON on stdout, and nothing else.")

_WHAT = [
    click.option("--scenario", "scenarios", multiple=True, metavar="GLOB", help="Only these scenarios."),
    click.option("--invariant", "invariants", multiple=True, metavar="GLOB", help="Only these rules."),
    click.option("--trial", "trials", multiple=True, metavar="ID", help="Only this trial: reproduces a failure."),
    click.option("--profile", metavar="NAME", help="Add a built-in chaos profile as a scenario."),
    click.option("--replicas", type=click.IntRange(1, 100_000), metavar="N", help="Ask each prompt N times."),
    click.option("--seed", type=click.IntRange(0, 2**63 - 1), metavar="N", help="The luck of the run."),
]
_HOW = [
    click.option("--concurrency", type=click.IntRange(1), metavar="N", help="Trials at once."),
    click.option("--record", type=click.Path(path_type=Path), metavar="FILE", help="Keep every model call in FILE."),
    click.option("--replay", type=click.Path(path_type=Path), metavar="FILE", help="Answer model calls from FILE."),
    click.option("--fail-fast", is_flag=True, help="Stop at the first failure."),
    click.option("--no-preflight", is_flag=True, help="Do not ask the agent once first."),
    click.option("--resume", metavar="RUN", help="Go on with a run that was left."),
    click.option("--force", is_flag=True, help="Resume although spec or agent changed."),
]
_VERDICT = [
    click.option("--min-score", type=Percentage(0, 100), metavar="N", help="Tolerate failures above this, 0-100."),
    click.option("--strict", is_flag=True, help="Any unproven cell exits 5."),
    click.option("--allow-vacuous", is_flag=True, help="A scenario that met no fault is no failure."),
    click.option("--max-errors", type=click.IntRange(0), default=0, metavar="N", help="Errors of ours to accept."),
]


def run_options(command: F) -> F:
    """Everything that decides what is run, how, and what counts as held."""
    for option in reversed([config, *_WHAT, *_HOW, *_VERDICT]):
        command = option(command)
    return command


def verdict_options(command: F) -> F:
    """What counts as held."""
    for option in reversed(_VERDICT):
        command = option(command)
    return command


def options(
    *,
    scenarios: tuple[str, ...] = (),
    invariants: tuple[str, ...] = (),
    trials: tuple[str, ...] = (),
    profile: str | None = None,
    replicas: int | None = None,
    seed: int | None = None,
    concurrency: int | None = None,
    record: Path | None = None,
    replay: Path | None = None,
    fail_fast: bool = False,
    no_preflight: bool = False,
    min_score: float | None = None,
    strict: bool = False,
    allow_vacuous: bool = False,
    max_errors: int = 0,
) -> Options:
    """The command line as a value."""
    return Options(
        select=Select(scenarios, invariants, trials),
        concurrency=concurrency,
        record=record,
        replay=replay,
        min_score=min_score,
        strict=strict,
        fail_fast=fail_fast,
        preflight=not no_preflight,
        max_errors=max_errors,
        allow_vacuous=allow_vacuous,
        replicas=replicas,
        seed=seed,
        profile=profile,
    )


def option_warnings(spec: Spec, given: Options) -> list[str]:
    """What the command line asks for and probably does not mean."""
    warnings = []
    if given.min_score is not None and 0 < given.min_score <= 1:
        warnings.append(f"--min-score is 0 to 100: {given.min_score:g} means {given.min_score:g} %")
    cores = os.cpu_count() or 1
    timed = any(rule.check == "latency" for rule in spec.invariants)
    if timed and given.concurrency is not None and given.concurrency > cores:
        cost = "trials that wait for a core look slow"
        warnings.append(f"{given.concurrency} trials at once on {cores} cores, beside a latency rule: {cost}")
    return warnings


def find_config(given: Path | None) -> Path:
    """The file named, or the first of the default ones that is here."""
    if given is not None:
        return given
    for name in DEFAULT_FILES:
        if Path(name).is_file():
            return Path(name)
    raise UsageError(
        f"there is no {' or '.join(DEFAULT_FILES)} here", hint="name one by -c FILE, or write one: holdfast init"
    )


def load_contract(path: Path, given: Options) -> tuple[Spec, tuple[Problem, ...]]:
    """The spec with the command line's overrides; raises SpecError if it is not a runnable contract."""
    from holdfast.errors import SpecError
    from holdfast.spec import check, requires_contract

    checked = check(path, environ=os.environ, seed=given.seed, replicas=given.replicas, profile=given.profile)
    problems = checked.problems
    if checked.spec is not None:
        problems = (*problems, *requires_contract(checked.spec))
    if checked.spec is None or any(p.severity == "error" for p in problems):
        raise SpecError(str(path), problems, source=checked.source)
    return checked.spec, problems
