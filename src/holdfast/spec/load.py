"""A file to a Spec, or to everything that is wrong with it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import SpecError
from holdfast.model.codec import digest
from holdfast.model.session import ReplaySpec
from holdfast.model.spec import BuiltText, Part, PartAsked, Problem, Spec, Unbuilt
from holdfast.reading.file import Source, read_file
from holdfast.reading.node import Node, put_at
from holdfast.reading.reader import Bad, Reader
from holdfast.reading.tree import parse
from holdfast.spec.agent import agent_problems, agent_unbuilt
from holdfast.spec.explain import joined
from holdfast.spec.lint.lint import lint
from holdfast.spec.lint.named_files import beside_problems, named_files
from holdfast.spec.references import SettledValues, url_fault
from holdfast.spec.rules import contract
from holdfast.spec.rules.contract import CALM, ContractRules, Overrides, ScenarioSet
from holdfast.spec.rules.fault_entry import FaultEntry
from holdfast.spec.rules.mutations import mutation_spec
from holdfast.spec.rules.parts import (
    declared,
    excuse_other_parts,
    part_problems,
    part_rules,
    part_weather,
    part_weights,
    scenario_problems,
    settled_part,
    unused_scoring,
)
from holdfast.spec.secrecy import references
from holdfast.spec.sections.file import File
from holdfast.spec.sections.run import FILENAME_PARTS, ModelEntry, OutputSection
from holdfast.spec.stored_agent import stored_agent
from holdfast.spec.task import task_problems, user_scripts, users_unbuilt
from holdfast.spec.world.databases import database_problems
from holdfast.spec.world.world import world_problems
from holdfast.spec.world.world_value import world_spec


class Checked(Struct, frozen=True):
    """A file as read: the Spec if it can be used, all problems, and the text for showing them."""

    spec: Spec | None
    problems: tuple[Problem, ...]
    source: str


def load(
    path: Path,
    *,
    environ: Mapping[str, str],
    seed: int | None = None,
    replicas: int | None = None,
    profile: str | None = None,
    copied_from: Path | None = None,
    part: PartAsked = "contract",
    chaos: bool = False,
    chaos_profile: str | None = None,
    settled: Mapping[str, str] | None = None,
    built: BuiltText | None = None,
) -> tuple[Spec, tuple[Problem, ...]]:
    """The Spec and its warnings. Raises SpecError with every problem if there is an error."""
    checked = check(
        path,
        environ=environ,
        seed=seed,
        replicas=replicas,
        profile=profile,
        copied_from=copied_from,
        part=part,
        chaos=chaos,
        chaos_profile=chaos_profile,
        settled=settled,
        built=built,
    )
    if checked.spec is None:
        raise SpecError(str(path), checked.problems, source=checked.source)
    return checked.spec, checked.problems


def check(
    path: Path,
    *,
    environ: Mapping[str, str],
    seed: int | None = None,
    replicas: int | None = None,
    profile: str | None = None,
    copied_from: Path | None = None,
    part: PartAsked = "contract",
    chaos: bool = False,
    chaos_profile: str | None = None,
    settled: Mapping[str, str] | None = None,
    built: BuiltText | None = None,
) -> Checked:
    """Reads the file and says all that is wrong with it; never raises for what is in it.

    A copy was checked when it was made: the files that it names lie in the folder it was copied from, and may be gone.
    What variables gave when its run began is `settled`, by path. Of a spec that is built in Python, `path` is the file
    of that code, which is not read.
    """
    if built is None:
        file = read_file(path, absent="holdfast init writes a first one", piped=True)
    else:
        file = Source(built.text.encode(), built.text)
    source = file.text if built is None else ""
    if file.problem is not None:
        return Checked(None, (file.problem,), source)
    root, problems = parse(file.text)
    if built is not None:
        problems = [replace(one, line=built.line, column=1, length=1) for one in problems]
    if root is None:
        return Checked(None, tuple(problems), source)
    if built is not None:
        put_at(root, built.line)
    values = SettledValues(environ, settled)
    reader = Reader(values)
    reader.problems += problems
    overrides = Overrides(seed, replicas, profile, part, chaos, chaos_profile)
    spec = _spec(reader, root, path, digest(file.data, 16), environ, overrides, copied_from, values)
    found = tuple(sorted(joined(reader.problems), key=lambda p: (p.line, p.column)))
    failed = any(p.severity == "error" for p in found)
    if spec is not None and built is not None:
        spec = replace(spec, built=built)
    return Checked(None if failed else spec, found, source)


def source_of(spec: Spec) -> str:
    """The text of a spec, for showing problems in it; empty if it cannot be read, or was built in Python."""
    if spec.built is not None:
        return ""
    try:
        return Path(spec.path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _spec(
    reader: Reader,
    root: Node,
    path: Path,
    file_digest: str,
    environ: Mapping[str, str],
    overrides: Overrides,
    copied_from: Path | None,
    values: SettledValues,
) -> Spec | None:
    file = reader.section(File, root, "")
    if isinstance(file, Bad):
        return None
    folder = path.parent
    agent_problems(reader, file.agent)
    rules = contract.contract_rules(reader, file)
    weather = contract.contract_weather(reader, file, overrides, folder)
    count = contract.replicas(reader, file, overrides.replicas)
    seed = contract.seed(reader, file, overrides.seed)
    scoring = contract.scoring(reader, file, rules, weather, count)
    _shape(reader, file, folder if copied_from is None else None)
    parts = declared(file, rules, weather)
    part = settled_part(overrides.part, parts)
    if part == "scenario" and (parts or overrides.part != "ci"):  # ci says itself that there is nothing to run
        scenario_problems(reader, file, path)
    part_problems(reader, file, part, overrides)
    unused_scoring(reader, file, parts)
    held = part_rules(file, part, rules)
    blows = part_weather(reader, file, part, overrides, folder, weather)
    world_problems(reader, file, (*rules.all, *file.run_rules), (*weather.placed, *_added(weather, blows)))
    referred = references(reader, file, environ, copied_from or folder, values)
    if copied_from is None and referred.secrets:
        from holdfast.spec.secrecy import short_secrets

        short_secrets(reader, file, environ)
    named_to = reader if copied_from is None else Reader()
    files = named_files(named_to, file, rules, copied_from or folder)
    user_scripts(named_to, file, copied_from or folder)
    beside_problems(named_to, file, copied_from or folder, environ)
    database_problems(named_to, file, (*rules.all, *file.run_rules), copied_from or folder)
    agent = stored_agent(reader, file, copied_from or folder)
    mutations = mutation_spec(reader, file)
    lint(reader, file, rules, weather, folder)
    excuse_other_parts(reader, overrides.part, part)
    met = overrides.part != "verify" or not any(one.code == "unreachable-fault" for one in reader.problems)
    return Spec(
        path=str(path),
        agent=agent,
        name=(file.contract.name if file.contract else "") or file.id or path.stem,
        description=(file.contract.description if file.contract else "") or file.description,
        tasks=contract.tasks(file, part),
        invariants=tuple(rule.invariant for rule in held.all),
        cell_rules=() if part == "replay" else held.cells,
        scenarios=blows.scenarios if met else tuple(one for one in blows.scenarios if one.calm),
        tools_on_wire=blows.tools_on_wire,
        models={name: model.spec for name, model in file.models.items()},
        world=world_spec(file),
        params=_params(file),
        replicas=count,
        seed=seed,
        scoring=scoring,
        concurrency=file.advanced.concurrency if file.advanced else 10,
        retries=file.advanced.retries if file.advanced else 2,
        output=_output(file),
        variables=referred.variables,
        settled=values.found,
        unsettled=tuple(dict.fromkeys(name for missing in values.unset.values() for name in missing)),
        secrets=referred.secrets,
        passed_on=referred.passed_on,
        files=files,
        unbuilt=_unbuilt(file, held),
        replays=_replays(file),
        part=part,
        matrix=_has_matrix(part, weather, rules, overrides),
        digest=file_digest,
        declares=parts,
        has_golden=bool(file.golden_prompts),
        beside=(CALM,) if part == "chaos" else (),
        weights=part_weights(file),
        mutations=mutations if part == "mutation" else None,
    )


def _unbuilt(file: File, rules: ContractRules) -> tuple[Unbuilt, ...]:
    return (
        *agent_unbuilt(file.agent, file.agents, file.models),
        *contract.rules_unbuilt(rules, file, _params(file)),
        *users_unbuilt(file),
    )


def _has_matrix(part: Part, weather: ScenarioSet, rules: ContractRules, overrides: Overrides) -> bool:
    """Whether cells are reported: of a scenario only where the file has a matrix, or rules with trials of their own."""
    if part == "scenario":
        return weather.at is not None or bool(overrides.profile or rules.cells)
    return part in ("contract", "chaos")


def _added(weather: ScenarioSet, blows: ScenarioSet) -> tuple[FaultEntry, ...]:
    """Faults of a part that are not the contract's."""
    return () if blows is weather else tuple(blows.placed)


def _params(file: File) -> tuple[dict[str, Any], ...]:
    """Every combination of the matrix, in the order of the file."""
    matrix = file.parallelism.matrix if file.parallelism else {}
    return tuple(dict(zip(matrix, values, strict=True)) for values in product(*matrix.values()))


def _replays(file: File) -> ReplaySpec | None:
    if file.replays is None:
        return None
    from holdfast.spec.rules.replays import replay_value

    return replay_value(file.replays)


def _output(file: File) -> dict[str, str]:
    if file.output is None:
        return {}
    written = {"format": file.output.format, "path": file.output.path}
    return written | ({"filename_template": file.output.filename_template} if file.output.filename_template else {})


def _filename(reader: Reader, section: OutputSection) -> None:
    for name in re.findall(r"\{[^{}]*\}", section.filename_template or ""):
        if name not in FILENAME_PARTS:
            where, hint = section.at.get("filename_template"), f"known are {', '.join(FILENAME_PARTS)}"
            message = f"unknown placeholder {name[:60]!r}"
            reader.error(where, "output.filename_template", message, hint=hint, code="unknown-value")


def _shape(reader: Reader, file: File, folder: Path | None) -> None:
    """Keys that need each other."""
    task_problems(reader, file)
    if folder is not None and file.agent.dir is not None and _holds(folder / file.agent.dir, folder):
        hint = "put the agent's files into a folder of their own, next to the spec: dir: ./agent"
        message = f"{file.agent.dir[:60]!r} holds the spec: the agent would see its rules"
        reader.error(file.agent.at.get("dir"), "agent.dir", message, hint=hint, code="bad-setting")
    _sandboxed(reader, file)
    if file.mapped and all(rule.invariant.weight == 0 for rule in file.mapped):
        reader.error(file.at.key("invariants"), "invariants", "every weight is 0", code="bad-weights")
    for name, model in file.models.items():
        _model(reader, name, model)
    if file.output is not None:
        _filename(reader, file.output)
    if file.replays is not None:
        from holdfast.spec.rules.replays import replays_problems

        replays_problems(reader, file.replays, folder)


def _sandboxed(reader: Reader, file: File) -> None:
    """Keys that mean something in a sandbox alone."""
    agent = file.agent
    asked = {"dir": agent.dir is not None, "nested_sandbox": agent.nested_sandbox, "programs": bool(agent.programs)}
    for key in (key for key, wanted in asked.items() if wanted and world_spec(file) is None):
        message, hint = "is for a sandboxed agent", "add sandbox: true"
        reader.error(agent.at.key(key), f"agent.{key}", message, hint=hint, code="conflict")
    for number, name in enumerate(agent.programs):
        if not re.fullmatch(r"(~?/)?[^\s/]+|~?/\S+", name):
            message = f"expected a name such as pytest, or a path from / or ~/, found {name[:60]!r}"
            reader.error(agent.at.get("programs"), f"agent.programs[{number}]", message, code="bad-setting")


def _holds(place: Path, folder: Path) -> bool:
    """Whether a folder lies in another, links followed."""
    return Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(place))


def _model(reader: Reader, name: str, model: ModelEntry) -> None:
    path, at = f"models.{name}", model.at
    if model.script is None and not model.name and not model.base_url:
        hint = "the model's name at its provider, a base_url, or a script"
        reader.error(at, path, "needs one of name, base_url, script", hint=hint, code="missing-key")
    url = model.base_url
    if url is not None and (wrong := url_fault(url)):
        reader.error(at.get("base_url"), f"{path}.base_url", f"{wrong}, found {url[:60]!r}", code="bad-value")
    for key in ("provider", "base_url", "api_key") if model.script is not None else ():
        if at.has(key):
            reader.error(at.key(key), f"{path}.{key}", "a script has no provider", code="conflict")
