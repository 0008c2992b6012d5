"""A spec in Python: loaded from a file, or built by code."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct
from msgspec.structs import replace

from holdfast.api.entry_points import Caller
from holdfast.api.job import build_part, choose_part, load_part
from holdfast.api.values import CheckValue, FaultValue
from holdfast.errors import SpecError, UsageError
from holdfast.model.codes import RunWarning
from holdfast.model.spec import PART_COMMANDS, BuiltText, PartAsked, Problem, Spec
from holdfast.plan import RunOptions
from holdfast.reading.node import join_path
from holdfast.reading.words import find_near_name
from holdfast.runner.job import format_spec_warnings

_DEEPEST = 100
_CODE = re.compile(r"agent\.(endpoint|tool_registry|reset_function|llm|(tools|llm)\[\d+\](\.callable)?)")
"""Keys that accept a function, or an object that can be asked, instead of its name."""
_INLINE_CALLABLES = "holdfast.api.inline_callables"


class Builder:
    """Converts a mapping to plain values, and collects the functions that only this process can find."""

    def __init__(self, where: Caller) -> None:
        self._where = where
        self._problems: list[Problem] = []
        self._inline = False
        self.functions: dict[str, Callable[..., Any]] = {}

    def build_text(self, written: Mapping[str, Any]) -> BuiltText:
        """Return the mapping as YAML; SpecError with everything that no file could contain."""
        agent = written.get("agent")
        self._inline = isinstance(agent, Mapping) and agent.get("isolation") == "inline"
        plain = self._convert(written, "", 0)
        if self._problems:
            raise SpecError(self._where.path, self._problems)
        text = yaml.dump(plain, Dumper=_PlainDumper, sort_keys=False, allow_unicode=True, width=float("inf"))
        return BuiltText(text, self._where.line)

    def _convert(self, value: Any, path: str, depth: int) -> Any:
        if isinstance(value, FaultValue):
            return self._convert_fault(value, path)
        if isinstance(value, CheckValue):
            return self._convert(value.entry, path, depth)
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if depth > _DEEPEST:
            return self._add_problem(path, f"nested deeper than {_DEEPEST} levels")
        if _CODE.fullmatch(path) and (callable(value) or isinstance(value, Mapping)) and not _is_entry(value, path):
            return self._build_reference(value, path)
        if isinstance(value, Mapping):
            return {
                self._check_key(key, path): self._convert(one, join_path(path, str(key)), depth + 1)
                for key, one in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._convert(one, f"{path}[{index}]", depth + 1) for index, one in enumerate(value)]
        hint = "write text, a number, true or false, None, a list or a dict"
        return self._add_problem(path, f"a {type(value).__name__} cannot be in a spec", hint=hint)

    def _check_key(self, key: Any, path: str) -> Any:
        if not isinstance(key, str | int) or isinstance(key, bool):
            self._add_problem(path, f"a key must be text, found {key!r:.60}")
        return key

    def _convert_fault(self, value: FaultValue, path: str) -> Any:
        """Return the fault as an entry of its list, which must be the list of its plane."""
        holder = re.sub(r"\[\d+\]$", "", path).rpartition(".")[2]
        if holder != value.family.name:
            problem = f"a {value.plane} fault is in {holder or 'the spec'}"
            self._add_problem(path, problem, hint=f"put it in {value.family.name}")
        return self._convert(value.entry, path, 0)

    def _build_reference(self, value: Any, path: str) -> str:
        """`module:attribute` of a function that a new process can import; otherwise its name in this process."""
        module, name = getattr(value, "__module__", ""), getattr(value, "__qualname__", "")
        # A trial's process imports the agent by name. That works only if the name leads back to this very object: a
        # decorated or nested function, or one of a notebook, has a name that leads elsewhere.
        if module and module != "__main__" and _find_attribute(module, name) is value:
            return f"{module}:{name}"
        if not self._inline:
            hint = "define it at the top of a module; or set isolation: inline to call it in this process"
            self._add_problem(
                path, f"{_describe_callable(value)} cannot be imported by the new process of a trial", hint=hint
            )
        return f"{_INLINE_CALLABLES}:{self._choose_name(value)}"

    def _choose_name(self, value: Any) -> str:
        """Return a name for this spec, the same each time that it is built."""
        # The name is stored in the spec, whose digest identifies runs: the same code must give the same names.
        own = re.sub(r"\W+", "_", str(getattr(value, "__name__", type(value).__name__))).strip("_") or "given"
        name, number = own, 1
        while self.functions.setdefault(name, value) is not value:
            number += 1
            name = f"{own}_{number}"
        return name

    def _add_problem(self, path: str, message: str, *, hint: str = "") -> None:
        self._problems.append(Problem(message, path, self._where.line, 1, hint=hint, code="bad-value"))


def _is_entry(value: Any, path: str) -> bool:
    """Return whether it is an entry of tools or llm, `{name: x, callable: f}`; any other mapping there is a tool
    registry.
    """
    return isinstance(value, Mapping) and not path.endswith("tool_registry")


def _find_attribute(module: str, name: str) -> Any:
    value: Any = sys.modules.get(module)
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def _describe_callable(value: Any) -> str:
    name = getattr(value, "__qualname__", "")
    if getattr(value, "__module__", "") == "__main__":
        return f"{name or type(value).__name__}, which a notebook or a script defines,"
    if "<locals>" in name:
        return f"{name.rpartition('.')[2]}, which is defined inside a function,"
    return f"{name or 'an object of ' + type(value).__name__}, which has no name in its module,"


class _PlainDumper(yaml.SafeDumper):
    """Without anchors: repeated values are written twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


class LoadedSpec(Struct, frozen=True):
    """A spec that can be run. `load` or `build` creates it; it cannot be changed."""

    spec: Spec
    warnings: tuple[RunWarning, ...] = ()
    """Settings that probably do not mean what they seem to."""
    part: PartAsked | None = None
    functions: dict[str, Callable[..., Any]] = {}
    """Functions passed as objects, which only this process can find."""
    seed: int | None = None
    replicas: int | None = None
    """The replicas option; None: as written."""

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
"""A file, a dict with the keys of one, or a loaded or built spec."""


def load_source(source: SpecSource, options: RunOptions, where: Caller, part: PartAsked | None) -> LoadedSpec:
    """Return the spec of a source with the options applied; SpecError with every problem if it cannot be used."""
    _check_options(options, part)
    if isinstance(source, LoadedSpec):
        return _reload(source, options, part)
    if not isinstance(source, str | os.PathLike | Mapping):
        hint = "give the path of a file, a dict with its keys, or what load and build return"
        raise UsageError(f"{source!r} is not a spec", hint=hint, code="argument-invalid")
    if isinstance(source, Mapping):
        builder = Builder(where)
        text = builder.build_text(source)
        path = Path(where.path)
    else:
        builder, text, path = None, None, Path(source)
    options = replace(options, part=part or choose_part(path, options, text))
    spec, problems = load_part(path, options, text)
    return _complete(spec, problems, options, {} if builder is None else builder.functions)


def _complete(
    spec: Spec, problems: Iterable[Problem], options: RunOptions, functions: dict[str, Callable[..., Any]]
) -> LoadedSpec:
    """Return the spec with the tasks of its part, and with all warnings about it."""
    spec, part_warnings = build_part(spec, os.environ)
    warnings = (*format_spec_warnings(spec, problems), *part_warnings)
    return LoadedSpec(spec, warnings, options.part, functions, options.seed, options.replicas)


def _check_options(options: RunOptions, part: PartAsked | None) -> None:
    """Reject what the command line would also reject."""
    for name, value, kind, least, most in (
        ("seed", options.seed, int, 0, 2**63 - 1),
        ("replicas", options.replicas, int, 1, 100_000),
        ("concurrency", options.concurrency, int, 1, None),
        ("min_score", options.min_score, (int, float), 0, 100),
    ):
        fits = isinstance(value, kind) and not isinstance(value, bool)
        if value is not None and not (fits and least <= value and (most is None or value <= most)):
            number = "a whole number" if kind is int else "a number"
            upper = f" to {most}" if most is not None else " or more"
            raise UsageError(f"{name} is {value!r:.60}, expected {number}, {least}{upper}", code="argument-invalid")
    for name, flag in (("strict", options.strict), ("fail_fast", options.fail_fast), ("preflight", options.preflight)):
        if not isinstance(flag, bool):
            raise UsageError(f"{name} is {flag!r:.60}, expected True or False", code="argument-invalid")
    parts = (*PART_COMMANDS, "run", "ci")
    if part is not None and part not in parts:
        miss = find_near_name(str(part), parts)
        hint = f"did you mean {miss}?" if miss else ""
        raise UsageError(
            f"part is {part!r:.60}, expected one of {', '.join(parts)}", hint=hint, code="argument-invalid"
        )


def _reload(source: LoadedSpec, options: RunOptions, part: PartAsked | None) -> LoadedSpec:
    """Return a loaded spec with other options: it must be unchanged."""
    before = source.spec
    wanted = replace(
        options,
        part=part or source.part or "contract",
        seed=source.seed if options.seed is None else options.seed,
        replicas=source.replicas if options.replicas is None else options.replicas,
    )
    if (wanted.seed, wanted.replicas, wanted.part) == (source.seed, source.replicas, source.part):
        return source
    spec, problems = load_part(Path(before.path), wanted, before.built)
    if spec.digest != before.digest:
        raise UsageError(f"{before.path} has changed since it was loaded", hint="load it again", code="spec-changed")
    return _complete(spec, problems, wanted, source.functions)
