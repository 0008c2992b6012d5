"""A spec as Python code holds it: loaded from a file, or built from a dict."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from holdfast.api.built import Builder
from holdfast.api.caller import Caller
from holdfast.api.job import load_part
from holdfast.api.part_spec import made_part
from holdfast.errors import UsageError
from holdfast.model.run_warning import RunWarning
from holdfast.model.spec import PART_COMMANDS, PartAsked, Spec
from holdfast.plan import RunOptions
from holdfast.reading.words import near
from holdfast.runner.job import spec_warnings


class LoadedSpec(Struct, frozen=True):
    """A spec that can be run. It is read by `load` or `build`; nothing of it can be changed."""

    spec: Spec
    warnings: tuple[RunWarning, ...] = ()
    """What probably does not mean what it seems to."""
    part: PartAsked | None = None
    functions: dict[str, Callable[..., Any]] = {}
    """What was given as it is, and only this process can find."""
    seed: int | None = None
    replicas: int | None = None
    """As they were asked for beside what is written; None: as it is written."""

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def rules(self) -> tuple[str, ...]:
        """The ids of its rules."""
        return tuple(rule.id for rule in self.spec.invariants)

    @property
    def scenarios(self) -> tuple[str, ...]:
        """The names of its scenarios."""
        return tuple(scenario.name for scenario in self.spec.scenarios)

    def __repr__(self) -> str:
        return f"<holdfast spec {self.name!r}: {len(self.rules)} rules, {len(self.scenarios)} scenarios>"


SpecSource = str | os.PathLike[str] | Mapping[str, Any] | LoadedSpec
"""A file, a dict with the keys of one, or what was loaded or built before."""


def loaded(source: SpecSource, options: RunOptions, where: Caller, part: PartAsked | None) -> LoadedSpec:
    """The spec of a source, with what the options change in it. SpecError with every problem if it cannot be used."""
    _check_given(options, part)
    if isinstance(source, LoadedSpec):
        return _again(source, options, part)
    if not isinstance(source, str | os.PathLike | Mapping):
        hint = "give the path of a file, a dict with its keys, or what load and build return"
        raise UsageError(f"{source!r} is no spec", hint=hint)
    if isinstance(source, Mapping):
        builder = Builder(where)
        text = builder.text(source)
        path = Path(where.path)
    else:
        builder, text, path = None, None, Path(source)
    part = part or _part(path, options, text)
    spec, problems = load_part(path, replace(options, part=part), text)
    spec, made = made_part(spec, os.environ)
    functions = {} if builder is None else builder.functions
    return LoadedSpec(spec, (*spec_warnings(spec, problems), *made), part, functions, options.seed, options.replicas)


def _check_given(options: RunOptions, part: PartAsked | None) -> None:
    """What the command line would not take is refused here, too, and never ignored."""
    for name, given, kind, least, most in (
        ("seed", options.seed, int, 0, 2**63 - 1),
        ("replicas", options.replicas, int, 1, 100_000),
        ("concurrency", options.concurrency, int, 1, None),
        ("min_score", options.min_score, (int, float), 0, 100),
    ):
        fits = isinstance(given, kind) and not isinstance(given, bool)
        if given is not None and not (fits and least <= given and (most is None or given <= most)):
            number = "a whole number" if kind is int else "a number"
            upper = f" to {most}" if most is not None else " or more"
            raise UsageError(f"{name} is {given!r:.60}, expected {number}, {least}{upper}")
    for name, flag in (("strict", options.strict), ("fail_fast", options.fail_fast), ("preflight", options.preflight)):
        if not isinstance(flag, bool):
            raise UsageError(f"{name} is {flag!r:.60}, expected True or False")
    parts = (*PART_COMMANDS, "run", "ci")
    if part is not None and part not in parts:
        miss = near(str(part), parts)
        hint = f"did you mean {miss}?" if miss else ""
        raise UsageError(f"part is {part!r:.60}, expected one of {', '.join(parts)}", hint=hint)


def _again(source: LoadedSpec, options: RunOptions, part: PartAsked | None) -> LoadedSpec:
    """What was loaded before, with other options: it must still be the same."""
    before = source.spec
    asked = replace(options, part=part or source.part or "contract")
    asked = replace(
        asked,
        seed=source.seed if asked.seed is None else asked.seed,
        replicas=source.replicas if asked.replicas is None else asked.replicas,
    )
    if (asked.seed, asked.replicas, asked.part) == (source.seed, source.replicas, source.part):
        return source
    spec, problems = load_part(Path(before.path), asked, before.built)
    if spec.digest != before.digest:
        raise UsageError(f"{before.path} has changed since it was loaded", hint="load it again")
    spec, made = made_part(spec, os.environ)
    warnings = (*spec_warnings(spec, problems), *made)
    return LoadedSpec(spec, warnings, asked.part, source.functions, asked.seed, asked.replicas)


def _part(path: Path, options: RunOptions, text: Any) -> PartAsked:
    """What is run where nobody says: the contract of a file; of one that has none, what `holdfast run` runs."""
    from holdfast.spec import check

    found = check(path, environ=os.environ, seed=options.seed, replicas=options.replicas, built=text).spec
    return "run" if found is not None and found.declares and "contract" not in found.declares else "contract"
