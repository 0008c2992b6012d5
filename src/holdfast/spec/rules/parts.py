"""The parts of a file, and the rules and scenarios of each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shlex import quote

from msgspec.structs import replace

from holdfast.model.scenario import Scenario
from holdfast.model.spec import Part, PartAsked, PartWeights
from holdfast.reading.fields import convert
from holdfast.reading.node import Node
from holdfast.reading.reader import Reader
from holdfast.spec.rules.contract import (
    CALM,
    ContractRules,
    LoadOptions,
    ScenarioSet,
    build_added_entry,
    build_scenario_set,
    is_profile,
)
from holdfast.spec.rules.matrix import MatrixEntry
from holdfast.spec.sections.file import File

_NEEDED = {
    "version": "version: 1",
    "id": "a name in kebab-case, as in id: renewal-mail",
    "task": "task: {prompt: …}",
    "invariants": "a map of name to rule: {description, weight, gate, check}",
}
"""The required keys of the scenario format, and what to write; `agent` is always required."""


def report_scenario_problems(reader: Reader, file: File, path: Path) -> None:
    """Report missing required keys, and that another command runs a contract."""
    if not file.at.has("task") and (file.contract is not None or file.golden_prompts):
        key = "contract" if file.contract is not None else "golden_prompts"
        hint = f"run it with: holdfast contract run {quote(str(path))}"
        message = "this file is a contract and has no task: holdfast run needs one"
        reader.report(file.at.get_key(key), message, hint=hint, code="missing-key")
        return
    if file.run_rules:
        message = "holdfast run needs a map of rules for a task: a list holds the rules of golden prompts"
        hint = f"write {_NEEDED['invariants']}, or add golden_prompts"
        reader.report(file.at.get_key("invariants"), message, hint=hint, code="wrong-type")
        return
    for key, hint in _NEEDED.items():
        if not file.at.has(key):
            reader.report_missing(file.at, key, "missing: holdfast run needs it", hint=hint)


CHAOS = "chaos"
"""The scenario of the `chaos` block."""
REPLAY = "replay"
"""The scenario of recorded sessions without faults: calm, because their tools' answers are recorded."""


def iter_parts(file: File, rules: ContractRules, weather: ScenarioSet) -> Iterator[Part]:
    """Yield the parts that the file configures, in the order in which they run and appear."""
    prompts = bool(file.golden_prompts)
    if file.task is not None and file.mapped:
        yield "scenario"
    # A contract needs something to ask. Probes are enough, because each rule then brings its own prompts.
    only_probes = all(rule.invariant.probes for rule in rules.all)
    if rules.all and weather.at is not None and (prompts or file.task is not None or only_probes):
        yield "contract"
    if prompts and file.run_rules:
        yield "mutation"
    if prompts and file.run_rules and file.chaos is not None:
        yield "chaos"
    if file.replays is not None and (file.replays.sessions or file.replays.sources):
        yield "replay"


def select_part(wanted: PartAsked, parts: tuple[Part, ...]) -> Part:
    """Return the selected part; for `run` and `ci` the first one that they run."""
    if wanted == "ci" and parts:
        return parts[0]
    if wanted == "run" or wanted == "ci":
        return "mutation" if "mutation" in parts and "scenario" not in parts else "scenario"
    return "contract" if wanted == "verify" else wanted


def excuse_other_parts(reader: Reader, wanted: PartAsked, part: Part) -> None:
    """Turn errors of other parts than the selected one into warnings."""
    if wanted == "ci":
        return
    # `contract run` should not refuse a file because its replays name a missing file: an error that concerns only other
    # parts becomes a warning.
    for index, problem in enumerate(reader.problems):
        users = next(
            (by for below, codes, by in _USERS if problem.code in codes and _is_below(problem.path, below)), None
        )
        if users is not None and (wanted == "verify" or part not in users):
            reader.problems[index] = replace(problem, severity="warning")


def _is_below(path: str, below: tuple[str, ...]) -> bool:
    """Return whether it is one of these keys or below one: `models` is not below `model`."""
    return any(path == key or path.startswith((f"{key}.", f"{key}[")) for key in below)


_USERS: tuple[tuple[tuple[str, ...], tuple[str, ...], tuple[Part, ...]], ...] = (
    (("chaos_matrix", "contract.chaos_matrix"), ("unreachable-fault",), ("contract", "scenario")),
    (("model", "mutations"), ("no-model", "missing-key", "conflict"), ("mutation",)),
    (("replays",), ("missing-file", "unusable-session"), ("replay",)),
)
"""Paths and codes of errors that stop only some parts, with those parts."""


def select_part_rules(file: File, part: Part, rules: ContractRules) -> ContractRules:
    """Return the rules of a part: those of `run` for mutations and chaos, otherwise those of the contract.

    Without a contract, the rules of `run` also judge recorded sessions and hunts.
    """
    of_run = part in ("mutation", "chaos") or (part in ("replay", "hunt") and not rules.all)
    selected = ContractRules(file.run_rules) if of_run else rules
    # One trial of a hunt serves every rule, so a rule that asks something else has no part in it.
    return (
        ContractRules(tuple(rule for rule in selected.all if not rule.invariant.probes)) if part == "hunt" else selected
    )


def build_part_weather(
    reader: Reader, file: File, part: Part, options: LoadOptions, root: Path, contract: ScenarioSet
) -> ScenarioSet:
    """Return the scenarios of a part; a contract and a scenario use those of the matrix."""
    if part == "replay":
        return ScenarioSet((Scenario(REPLAY),), ((),), tools_on_wire=contract.tools_on_wire)
    if part == "hunt":
        return ScenarioSet((Scenario(CALM, follows_values=True),), ((),), tools_on_wire=contract.tools_on_wire)
    if part not in ("mutation", "chaos"):
        return contract
    stormy = part == "chaos" or options.chaos or options.chaos_profile is not None
    weather = build_chaos_weather(reader, file, root, options.chaos_profile) if stormy else ScenarioSet()
    if part == "mutation" and stormy:
        return weather
    calm = Scenario(CALM, position=file.agent.at.position)
    return ScenarioSet((calm, *weather.scenarios), ((), *weather.faults), weather.at, weather.tools_on_wire)


def build_chaos_weather(reader: Reader, file: File, root: Path, profile: str | None = None) -> ScenarioSet:
    """Return the weather of the `chaos` block, or of the profile that is named instead."""
    entry = _build_chaos_entry(reader, file, profile)
    return ScenarioSet() if entry is None else build_scenario_set(reader, file, root, (entry,), entry.at)


def _build_chaos_entry(reader: Reader, file: File, profile: str | None) -> MatrixEntry | None:
    if profile is not None:
        known = is_profile(reader, profile, "--chaos-profile")
        return build_added_entry(file, profile, "--chaos-profile", profile) if known else None
    block = file.chaos
    if block is None:
        hint = "add chaos: with tool_faults, llm_faults or context_attacks, or name one: --chaos-profile NAME"
        reader.report_missing(file.at, "chaos", "missing: --chaos needs it", hint=hint)
        return None
    if not (block.tool_faults or block.llm_faults or block.context_attacks):
        if not reader.has_error("chaos"):
            reader.report(block.at, "no fault: the run would be calm", hint="add one", code="empty")
        return None
    return convert(MatrixEntry, block, name=CHAOS)


def build_part_weights(file: File) -> PartWeights:
    """Return the weights of the parts in the overall score."""
    return convert(PartWeights, file.scoring.weights or file.scoring)


def report_part_problems(reader: Reader, file: File, part: Part, options: LoadOptions) -> None:
    """Report what `run` needs for mutated prompts and prompts under chaos, and a task that no part asks."""
    if file.task is not None and file.golden_prompts and file.run_rules:
        hint = "move the task, with a map of invariants, into a file of its own"
        message = "is not used: a task needs a map of invariants, but this file has a list"
        reader.report_conflict(file.at.get_key("task"), message, hint=hint)
    if part == "scenario" and (options.chaos or options.chaos_profile is not None):
        option = "--chaos-profile" if options.chaos_profile is not None else "--chaos"
        hint = "add a chaos_matrix: the task is then run in each of its scenarios"
        message = f"{option} is for golden prompts with a list of invariants, but this file has a task"
        reader.report_conflict(Node("null", 0, 0, path=option), message, hint=hint)
    if part not in ("mutation", "chaos"):
        for key in ("mutations", "chaos"):
            if file.at.has(key) and not (file.run_rules and file.golden_prompts):
                hint = "it needs golden_prompts and a top-level list of invariants, the rules of run"
                reader.warn(file.at.get_key(key), "is not used", hint=hint, code="lint-unused-section")
        return
    if not file.golden_prompts:
        reader.report_missing(file.at, "golden_prompts", "missing: nothing to ask", hint="what the agent is asked")
    if not file.run_rules and not reader.has_error("invariants"):
        hint = "a top-level list of invariants has the rules of run"
        reader.report(file.at.get_key("invariants"), "no rules for run", hint=hint, code="missing-key")


def warn_unused_scoring(reader: Reader, file: File, parts: tuple[Part, ...]) -> None:
    """Report scoring that nothing uses: a contract alone has cells, which pass or fail, and no composite."""
    if parts != ("contract",):
        return
    for key in ("pass_threshold", "gate_on"):
        if file.scoring.at.has(key):
            hint = "it is for a task with a map of invariants; for cells there are severity and min_score"
            message = "is not used: a contract has cells and no composite"
            reader.warn(file.scoring.at.get_key(key), message, hint=hint, code="lint-unused-scoring")
