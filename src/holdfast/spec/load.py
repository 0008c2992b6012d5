"""Loads a file as a Spec, or reports all its problems."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from holdfast.errors import SpecError
from holdfast.model.codec import digest
from holdfast.model.codes import load_codes
from holdfast.model.spec import Part, Problem, Spec, Unbuilt
from holdfast.reading.file import Source, read_file
from holdfast.reading.node import set_line
from holdfast.reading.reader import Bad, Reader
from holdfast.reading.tree import parse
from holdfast.reading.words import suggest
from holdfast.spec.agent import build_stored_agent, find_unbuilt_agent, report_agent_problems
from holdfast.spec.explain import combine_problems
from holdfast.spec.lint import lint
from holdfast.spec.named_files import find_named_files, report_file_problems
from holdfast.spec.references import SettledValues, find_url_error
from holdfast.spec.rules import contract
from holdfast.spec.rules.contract import CALM, ContractRules, LoadOptions, ScenarioSet
from holdfast.spec.rules.mutations import build_mutations
from holdfast.spec.rules.parts import (
    build_part_weather,
    build_part_weights,
    excuse_other_parts,
    iter_parts,
    report_part_problems,
    report_scenario_problems,
    select_part,
    select_part_rules,
    warn_unused_scoring,
)
from holdfast.spec.rules.replays import build_replays, report_replay_problems
from holdfast.spec.secrecy import collect_references, report_short_secrets
from holdfast.spec.sections.file import File
from holdfast.spec.sections.run import FILENAME_PARTS, ModelEntry, WarningsSection
from holdfast.spec.task import find_unbuilt_users, report_script_problems, report_task_problems
from holdfast.spec.world import build_world, report_database_problems, report_world_problems


class CheckResult(Struct, frozen=True):
    """The result of reading a file: the Spec if it is usable, all problems, and the text to show them in."""

    spec: Spec | None
    problems: tuple[Problem, ...]
    source: str
    keys: frozenset[str] = frozenset()
    """The top-level keys of the file."""


_DEFAULTS = LoadOptions()


def load(
    path: Path, *, environ: Mapping[str, str], options: LoadOptions = _DEFAULTS
) -> tuple[Spec, tuple[Problem, ...]]:
    """Return the Spec and its warnings. Raises SpecError with every problem if there is an error."""
    checked = check(path, environ=environ, options=options)
    if checked.spec is None:
        raise SpecError(str(path), checked.problems, source=checked.source)
    return checked.spec, checked.problems


def check(path: Path, *, environ: Mapping[str, str], options: LoadOptions = _DEFAULTS) -> CheckResult:
    """Read the file and report all its problems; its content never makes it raise."""
    built = options.built
    if built is None:
        file = read_file(path, absent="holdfast init writes a first one", piped=True)
    else:
        file = Source(built.text.encode(), built.text)
    source = file.text if built is None else ""
    if file.problem is not None:
        return CheckResult(None, (file.problem,), source)
    root, problems = parse(file.text)
    if built is not None:
        problems = [replace(problem, line=built.line, column=1, length=1) for problem in problems]
    if root is None:
        return CheckResult(None, tuple(problems), source)
    if built is not None:
        set_line(root, built.line)
    # A session, of Holdfast or Flakestorm, says what was asked and has no agent.
    if root.has("input") and not root.has("agent") and not root.has("golden_prompts"):
        message = "this is a recorded session, not a spec"
        hint = f"holdfast replay run {path.name} -c SPEC runs it; list it in a spec under replays.sessions"
        return CheckResult(None, (Problem(message, "", root.line, root.column, hint=hint, code="not-a-spec"),), source)
    values = SettledValues(environ, options.settled)
    reader = Reader(values)
    reader.problems += problems
    section = reader.read_section(File, root)
    spec = None if isinstance(section, Bad) else _build_spec(reader, section, path, environ, options, values)
    problems = sorted(combine_problems(reader.problems), key=lambda p: (p.line, p.column))
    if not isinstance(section, Bad):
        codes = section.warnings.ignore
        problems = [replace(p, ignored=p.severity == "warning" and p.code in codes) for p in problems]
    if spec is None or any(p.severity == "error" for p in problems):
        return CheckResult(None, tuple(problems), source, frozenset(root.pairs))
    if options.part == "verify" and any(problem.code == "unreachable-fault" for problem in problems):
        spec = replace(spec, scenarios=tuple(scenario for scenario in spec.scenarios if scenario.calm))
    spec = replace(spec, digest=digest(file.data, 16), built=built)
    return CheckResult(spec, tuple(problems), source, frozenset(root.pairs))


def _build_spec(
    reader: Reader, file: File, path: Path, environ: Mapping[str, str], options: LoadOptions, values: SettledValues
) -> Spec:
    """Return the Spec of a file, whose problems go to the reader; unusable if one of them is an error."""
    # The order matters in two places. The agent comes first, because faults are checked against what it can meet. Lint
    # comes last, because it skips sections that already have errors.
    folder = path.parent
    report_agent_problems(reader, file.agent)
    rules = contract.read_contract_rules(reader, file)
    matrix = contract.build_contract_weather(reader, file, options, folder)
    count = contract.get_replicas(reader, file, options.replicas)
    _check_sections(reader, file, path, copied=options.copied_from is not None)
    parts = tuple(iter_parts(file, rules, matrix))
    part = _select_part(reader, file, path, rules, parts, options)
    scoring = contract.build_scoring(reader, file, rules, matrix, count, part)
    part_rules = select_part_rules(file, part, rules)
    weather = build_part_weather(reader, file, part, options, folder, matrix)
    faults = matrix.placed if weather is matrix else (*matrix.placed, *weather.placed)
    report_world_problems(reader, file, (*rules.all, *file.run_rules), faults)
    referred = collect_references(reader, file, environ, options.copied_from or folder, values)
    files = _check_files(reader, file, rules, folder, environ, options, masks=bool(referred.secrets))
    spec = Spec(
        path=str(path),
        agent=build_stored_agent(reader, file, options.copied_from or folder),
        replicas=count,
        seed=contract.get_seed(reader, file, options.seed),
        scoring=scoring,
        settled=values.found,
        unsettled=tuple(dict.fromkeys(name for missing in values.unset.values() for name in missing)),
        files=files,
        matrix=_has_matrix(part, matrix, rules, options),
        declares=parts,
        mutations=mutations if (mutations := build_mutations(reader, file)) and part == "mutation" else None,
        **asdict(referred),
        **_build_part_fields(file, part, part_rules, weather),
        **_build_plain_fields(file, path),
    )
    lint(reader, file, rules, matrix, folder, spec.agent)
    excuse_other_parts(reader, options.part, part)
    return spec


def _build_part_fields(file: File, part: Part, rules: ContractRules, weather: ScenarioSet) -> dict[str, Any]:
    """Return the fields of a Spec that depend on the selected part."""
    return {
        "part": part,
        "tasks": contract.build_tasks(file, part),
        "invariants": tuple(rule.invariant for rule in rules.all),
        "cell_rules": () if part == "replay" else rules.cells,
        "scenarios": weather.scenarios,
        "tools_on_wire": weather.tools_on_wire,
        "unbuilt": _find_unbuilt(file, rules),
        "beside": (CALM,) if part == "chaos" else (),
    }


def _build_plain_fields(file: File, path: Path) -> dict[str, Any]:
    """Return the fields of a Spec that come from one section, whichever part is run."""
    contract_section = file.contract
    return {
        "name": _get_name(file, path),
        "description": (contract_section.description if contract_section else "") or file.description,
        "models": {name: model.spec for name, model in file.models.items()},
        "world": build_world(file),
        "params": _build_params(file),
        "concurrency": file.advanced.concurrency,
        "retries": file.advanced.retries,
        "output": _build_output(file),
        "replays": (None if file.replays is None else build_replays(file.replays)),
        "hunt_trials": file.hunt.trials if file.hunt else 0,
        "has_golden": bool(file.golden_prompts),
        "weights": build_part_weights(file),
        "ignored_warnings": file.warnings.ignore,
    }


def _get_name(file: File, path: Path) -> str:
    """Return the name of the contract, otherwise of the scenario, otherwise of the file."""
    return (file.contract.name if file.contract else "") or file.id or path.stem


def _select_part(
    reader: Reader, file: File, path: Path, rules: ContractRules, parts: tuple[Part, ...], options: LoadOptions
) -> Part:
    """Return the selected part; reports what it needs and the file lacks."""
    part = select_part(options.part, parts)
    if part == "scenario" and (parts or options.part != "ci"):  # ci itself reports an empty file
        report_scenario_problems(reader, file, path)
    report_part_problems(reader, file, part, options)
    warn_unused_scoring(reader, file, parts)
    if file.hunt is not None and not select_part_rules(file, "hunt", rules).all:
        message = "there is no rule to judge: holdfast hunt and holdfast ci would refuse this file"
        hint = "a hunt judges rules without probes: add one, or remove hunt"
        reader.warn(file.at.get_key("hunt"), message, hint=hint, code="lint-hunt-no-rules")
    return part


def _check_files(
    reader: Reader,
    file: File,
    rules: ContractRules,
    folder: Path,
    environ: Mapping[str, str],
    options: LoadOptions,
    *,
    masks: bool,
) -> tuple[str, ...]:
    """Return the files that the spec names; reports missing or wrong ones, and secrets that are too short."""
    if options.copied_from is not None:
        return find_named_files(Reader(), file, rules, options.copied_from)  # checked when the copy was made
    if masks:
        report_short_secrets(reader, file, environ)
    files = find_named_files(reader, file, rules, folder)
    report_script_problems(reader, file, folder)
    report_file_problems(reader, file, folder, environ)
    report_database_problems(reader, file, (*rules.all, *file.run_rules), folder)
    return files


def _find_unbuilt(file: File, rules: ContractRules) -> tuple[Unbuilt, ...]:
    return (
        *find_unbuilt_agent(file.agent, file.agents, file.models),
        *contract.find_unbuilt_rules(rules, file, _build_params(file)),
        *find_unbuilt_users(file),
    )


def _has_matrix(part: Part, weather: ScenarioSet, rules: ContractRules, options: LoadOptions) -> bool:
    """Return whether cells are reported: for a scenario only with a matrix or rules that have their own trials."""
    if part == "scenario":
        return weather.at is not None or bool(options.profile or rules.cells)
    return part in ("contract", "chaos")


def _build_params(file: File) -> tuple[dict[str, Any], ...]:
    """Return every combination of the matrix, in the order of the file."""
    matrix = file.parallelism.matrix
    return tuple(dict(zip(matrix, values, strict=True)) for values in product(*matrix.values()))


def _build_output(file: File) -> dict[str, str]:
    output = file.output
    if file.at.get("output").kind == "null":  # not there, or without keys
        return {}
    keys = {"format": output.format, "path": output.path, "filename_template": output.filename_template}
    return {key: value for key, value in keys.items() if value}


def _check_sections(reader: Reader, file: File, path: Path, *, copied: bool) -> None:
    """Report keys that need another key."""
    report_task_problems(reader, file)
    folder = os.path.realpath(path.parent / (file.agent.dir or ""))
    if not copied and file.agent.dir is not None and Path(os.path.realpath(path.parent)).is_relative_to(folder):
        hint = "put the agent's files into a folder of their own, next to the spec: dir: ./agent"
        message = f"{file.agent.dir[:60]!r} contains the spec: the agent would see its rules"
        reader.report(file.agent.at.get("dir"), message, hint=hint, code="bad-setting")
    _check_sandbox_keys(reader, file)
    if file.mapped and all(rule.invariant.weight == 0 for rule in file.mapped):
        reader.report(file.at.get_key("invariants"), "every weight is 0", code="bad-weights")
    for model in file.models.values():
        _check_model(reader, model)
    for name in re.findall(r"\{[^{}]*\}", file.output.filename_template or ""):
        if name not in FILENAME_PARTS:
            hint, message = f"known placeholders: {', '.join(FILENAME_PARTS)}", f"unknown placeholder {name[:60]!r}"
            reader.report(file.output.at.get("filename_template"), message, hint=hint, code="unknown-value")
    _check_ignored_warnings(reader, file.warnings)
    if file.replays is not None:
        report_replay_problems(reader, file.replays, None if copied else path, _get_name(file, path))


def _check_ignored_warnings(reader: Reader, section: WarningsSection) -> None:
    """Report codes that no warning has: they are probably misspelt, and only warnings can be ignored."""
    problems = load_codes()["problems"].codes
    of_file = [code for code in problems if code.startswith("lint-") or code == "left-out-scenario"]
    ignorable = [*load_codes()["warnings"].codes, *of_file]
    for node in section.at.get("ignore").items:
        if node.text in ignorable:
            continue
        meant, hint = suggest(node.text, ignorable)
        hint = hint if meant else "docs/codes.md lists the codes of warnings"
        message = f"no warning has the code {node.text[:60]!r}"
        if node.text in problems:
            meant, hint, message = "", "", f"{node.text} is the code of an error, and errors cannot be ignored"
        reader.report(node, message, hint=hint, code="unknown-warning", suggestion=meant)


def _check_sandbox_keys(reader: Reader, file: File) -> None:
    """Report keys that have an effect only in a sandbox."""
    agent = file.agent
    keys = {"dir": agent.dir is not None, "nested_sandbox": agent.nested_sandbox, "programs": bool(agent.programs)}
    for key in (key for key, wanted in keys.items() if wanted and build_world(file) is None):
        message, hint = "is for a sandboxed agent", "add sandbox: true"
        reader.report_conflict(agent.at.get_key(key), message, hint=hint)
    for node in agent.at.get("programs").items:
        if not re.fullmatch(r"(~?/)?[^\s/]+|~?/\S+", node.text):
            reader.report_type(node, "a name such as pytest, or a path from / or ~/", code="bad-setting")


def _check_model(reader: Reader, model: ModelEntry) -> None:
    at = model.at
    if model.script is None and not model.name and not model.base_url:
        hint = "the model's name at its provider, a base_url, or a script"
        reader.report(at, "needs one of name, base_url, script", hint=hint, code="missing-key")
    url = model.base_url
    if url is not None and (wrong := find_url_error(url)):
        reader.report(at.get("base_url"), f"{wrong}, found {url[:60]!r}")
    for key in ("provider", "base_url", "api_key") if model.script is not None else ():
        if at.has(key):
            reader.report_conflict(at.get_key(key), "a script has no provider")
