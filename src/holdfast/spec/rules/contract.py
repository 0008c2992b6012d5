"""The contract of a file: its rules, scenarios, repeats, seed and scoring, from both formats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from holdfast.faults import profiles
from holdfast.model.scenario import Scenario
from holdfast.model.spec import BuiltText, Part, PartAsked, Scoring, Unbuilt
from holdfast.model.task import Task
from holdfast.reading.fields import convert
from holdfast.reading.node import Node
from holdfast.reading.reader import Reader
from holdfast.reading.words import suggest_name
from holdfast.spec.references import interpolate
from holdfast.spec.rules.fault_entry import FaultEntry
from holdfast.spec.rules.matrix import MatrixEntry
from holdfast.spec.rules.reach import Reach, build_scenarios
from holdfast.spec.rules.rules import RuleEntry, find_aggregation_problem, report_duplicate_rules
from holdfast.spec.sections.file import File
from holdfast.spec.sections.run import ScoringSection
from holdfast.spec.task import build_task, find_unknown_model
from holdfast.spec.world import build_world

CALM = "calm"
"""The one scenario of a file without a matrix."""


class LoadOptions(Struct, frozen=True):
    """How to load a file: command line options, and the origin of a copy."""

    seed: int | None = None
    replicas: int | None = None
    profile: str | None = None
    part: PartAsked = "contract"
    chaos: bool = False
    """`run --chaos`."""
    chaos_profile: str | None = None
    copied_from: Path | None = None
    """The folder that a copy was made from. It was checked then, and the files that it names may be gone."""
    settled: Mapping[str, str] | None = None
    """The values that variables had when the run of a copy began, by path."""
    built: BuiltText | None = None
    """The text of a spec built in Python; the path is the file of that code, which is not read."""


class ScenarioSet(Struct, frozen=True):
    """The scenarios of a file, with the faults of each as read."""

    scenarios: tuple[Scenario, ...] = ()
    faults: tuple[tuple[FaultEntry, ...], ...] = ()
    at: Node | None = None
    tools_on_wire: bool = False
    """Faults reach the tools of a Python agent in its model traffic."""

    @property
    def placed(self) -> Iterator[FaultEntry]:
        return (fault for faults in self.faults for fault in faults)


class ContractRules(Struct, frozen=True):
    """The rules of the contract, and which of them have their own trials."""

    all: tuple[RuleEntry, ...] = ()
    cells: tuple[str, ...] = ()


# -- rules --------------------------------------------------------------------------------------
def read_contract_rules(reader: Reader, file: File) -> ContractRules:
    """Return the rules of `contract.invariants` and of a map of invariants, in the order of the file."""
    listed = file.contract.invariants if file.contract else ()
    mapped = file.mapped
    isolation = file.contract.isolation if file.contract else None
    ordered = tuple(sorted((*listed, *mapped), key=lambda rule: (rule.at.line, rule.at.column)))
    report_duplicate_rules(reader, ordered)
    report_duplicate_rules(reader, file.run_rules)
    _check_contract_keys(reader, file, bool(mapped))
    # A trial that serves all rules is cheaper, but its rules are not independent. So rules of a `contract` list have
    # their own trials unless `isolation: scenario` says otherwise, rules of a map share them, and probes always ask
    # something of their own.
    isolated = {rule.at.path for rule in ordered if rule.invariant.probes or isolation == "cell"}
    isolated |= {rule.at.path for rule in listed if isolation is None}
    return ContractRules(ordered, tuple(rule.invariant.id for rule in ordered if rule.at.path in isolated))


def _check_contract_keys(reader: Reader, file: File, mapped: bool) -> None:
    if file.contract is None:
        return
    at = file.contract.at
    if not at.has("name") and (at.has("invariants") or not mapped):
        reader.report_missing(at, "name", hint="the contract's name")
    if not at.has("invariants") and not mapped:
        reader.report_missing(at, "invariants", hint="its rules")


# -- scenarios ----------------------------------------------------------------------------------
def build_contract_weather(reader: Reader, file: File, options: LoadOptions, root: Path) -> ScenarioSet:
    """Return the scenarios of the one matrix, and that of `--profile`."""
    inner = file.contract is not None and file.contract.at.has("chaos_matrix")
    if inner and file.at.has("chaos_matrix"):
        message = "this is a second chaos_matrix: the contract already has one"
        reader.report_conflict(file.at.get_key("chaos_matrix"), message)
    owner = file.contract.at if inner and file.contract else file.at
    entries = file.contract.chaos_matrix if inner and file.contract else file.chaos_matrix
    reader.report_duplicates(((entry.name, entry.at.get("name")) for entry in entries), "name")
    added = _build_profile_entry(reader, file, entries, options.profile)
    if not entries and not added and options.part in ("scenario", "run", "ci"):
        added = (build_added_entry(file, CALM),)
    at = owner.get_key("chaos_matrix") if owner.has("chaos_matrix") else None
    return build_scenario_set(reader, file, root, (*entries, *added), at)


def build_scenario_set(
    reader: Reader, file: File, root: Path, entries: tuple[MatrixEntry, ...], at: Node | None
) -> ScenarioSet:
    """Return the scenarios of these entries; reports faults that the agent cannot meet."""
    reach = None if reader.has_error("agent") else Reach(file.agent, root, build_world(file))
    built: list[tuple[Scenario, tuple[FaultEntry, ...]]] = []
    names = {entry.name for entry in entries}
    for entry in entries:
        new = build_scenarios(reader, reach, entry)
        for name in (scenario.name for scenario, _ in new if scenario.name != entry.name and scenario.name in names):
            message = f"profile {entry.profile} also has a scenario called {name!r} too"
            reader.report(entry.at.get("name"), message, code="duplicate-id")
        built += new
    on_wire = reach is not None and reach.tools_on_wire
    return ScenarioSet(tuple(s for s, _ in built), tuple(f for _, f in built), at, on_wire)


def _build_profile_entry(
    reader: Reader, file: File, entries: tuple[MatrixEntry, ...], profile: str | None
) -> tuple[MatrixEntry, ...]:
    """Return the scenario that `--profile` adds; with a calm one if the file has no matrix."""
    if profile is None or not is_profile(reader, profile, "--profile"):
        return ()
    same = next((entry for entry in entries if entry.name == profile), None)
    if same is not None:
        if same.profile != profile:
            message = f"--profile {profile}: the matrix has another scenario with this name"
            reader.report(same.at.get("name"), message, code="duplicate-id")
        return ()
    added = build_added_entry(file, profile, "--profile", profile)
    return (added,) if entries else (build_added_entry(file, "no-chaos"), added)


def is_profile(reader: Reader, name: str, option: str) -> bool:
    """Return whether the profile that an option names exists; otherwise reports it."""
    if name in profiles.list_profiles():
        return True
    hint = suggest_name(name, profiles.list_profiles(), label="profiles")
    reader.report(Node("null", 0, 0, path=option), f"unknown profile {name[:60]!r}", hint=hint, code="unknown-value")
    return False


def build_added_entry(file: File, name: str, option: str = "", profile: str | None = None) -> MatrixEntry:
    """Return a scenario that the file does not have.

    Its problems are reported at the agent, under the option's name.
    """
    at = replace(file.agent.at, path=option, pairs={})
    at.pairs["profile"] = (at, at)
    return MatrixEntry(at=at, name=name, profile=profile)


def find_unbuilt_rules(rules: ContractRules, file: File, params: Iterable[Mapping[str, Any]]) -> Iterator[Unbuilt]:
    """Yield the judges whose model is not available here, under any parameters."""
    for rule in rules.all:
        written = str(rule.invariant.settings["model"]) if rule.traits.asks_model else ""
        for model in dict.fromkeys(interpolate(written, values) for values in params) if written else ():
            yield from find_unknown_model(file, model, rule.settings_at.get("model"))


# -- repeats and scores -------------------------------------------------------------------------
def build_tasks(file: File, part: Part) -> tuple[Task, ...]:
    """Return the tasks: a contract asks the golden prompts, or else the task; a scenario asks its task."""
    if part == "replay":
        return ()
    if file.golden_prompts and part != "scenario":
        return tuple(build_task(prompt, "golden") for prompt in file.golden_prompts if prompt.prompts)
    return (build_task(file.task, "task"),) if file.task is not None and file.task.prompts else ()


def get_replicas(reader: Reader, file: File, override: int | None) -> int:
    """Return the number of trials per prompt."""
    replicas = file.parallelism.replicas
    if replicas is not None and file.at.has("replicas"):
        message = "replicas and parallelism.replicas mean the same: write one of them"
        reader.report_conflict(file.at.get_key("replicas"), message)
    return override or replicas or file.replicas


def get_seed(reader: Reader, file: File, override: int | None) -> int:
    """Return the random seed."""
    first, second = file.determinism.seed, file.advanced.seed
    if first is not None and second is not None and first != second:
        reader.report_conflict(file.advanced.at.get("seed"), f"differs from determinism.seed, which is {first}")
    return next((s for s in (override, first, second) if s is not None), 0)


def build_scoring(
    reader: Reader, file: File, rules: ContractRules, weather: ScenarioSet, count: int, part: Part
) -> Scoring:
    """Return the scoring of the contract; reports targets that can never be reached."""
    section = file.scoring
    listed = file.contract is not None and bool(file.contract.invariants)
    faults = weather.at is not None or any(scenario.name != CALM for scenario in weather.scenarios)
    contract = listed or faults or part in ("mutation", "chaos", "replay")
    ways = [(rule.at, rule.invariant.replica_aggregation) for rule in rules.all]
    ways += [(section.at, section.replica_aggregation)] if section.at.has("replica_aggregation") else []
    for at, how in ways:
        if how is not None and (message := find_aggregation_problem(how, count, contract=contract)):
            reader.report_conflict(at.get("replica_aggregation"), message, hint="all, any, majority, at_least or rate")
    _check_weights(reader, section)
    return convert(Scoring, section)


def _check_weights(reader: Reader, section: ScoringSection) -> None:
    flat = [key for key in ("mutation", "chaos", "contract", "replay") if section.at.has(key)]
    if flat and section.weights is not None:
        reader.report_conflict(section.at.get_key(flat[0]), "the weights are already under weights: write them once")
        return
    weights = section.weights or section
    total = weights.mutation + weights.chaos + weights.contract + weights.replay
    # People write 0.333 three times: a thousandth off is accepted, and the weights are normalised later anyway.
    if abs(total - 1.0) > 0.001 + 1e-9 and not reader.has_error("scoring"):
        node = (
            section.at.get_key("weights") if section.weights else replace(section.at.get_key(flat[0]), path="scoring")
        )
        hint = "missing ones keep their defaults: mutation 0.20, chaos 0.35, contract 0.35, replay 0.10"
        reader.report(node, f"the weights sum to {total:.3f}, not to 1.0", hint=hint, code="bad-weights")
