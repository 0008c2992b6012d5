"""The contract of a file: its rules, scenarios, repeats, seed and scoring, from both spellings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from holdfast.model.scenario import Scenario
from holdfast.model.spec import Aggregation, Part, PartAsked, Scoring, Unbuilt
from holdfast.model.task import Task
from holdfast.reading.node import Node
from holdfast.reading.reader import Reader
from holdfast.reading.words import near
from holdfast.spec.references import interpolate
from holdfast.spec.rules.fault_entry import FaultEntry
from holdfast.spec.rules.matrix import MatrixEntry
from holdfast.spec.rules.reach import Reach, scenarios
from holdfast.spec.rules.rules import RuleEntry, aggregation_problem, duplicates
from holdfast.spec.sections.file import File
from holdfast.spec.sections.run import Weights
from holdfast.spec.task import task_of
from holdfast.spec.world.world_value import world_spec

CALM = "calm"
"""The one scenario of a file without a matrix."""


class Overrides(Struct, frozen=True):
    """What the command line says over the file."""

    seed: int | None = None
    replicas: int | None = None
    profile: str | None = None
    part: PartAsked = "contract"
    chaos: bool = False
    """`run --chaos`."""
    chaos_profile: str | None = None


class ScenarioSet(Struct, frozen=True):
    """The scenarios of a file, with the faults of each as they were read."""

    scenarios: tuple[Scenario, ...] = ()
    faults: tuple[tuple[FaultEntry, ...], ...] = ()
    at: Node | None = None
    path: str = "chaos_matrix"
    tools_on_wire: bool = False
    """Tools of a Python agent are met in its model traffic."""

    @property
    def placed(self) -> Iterator[FaultEntry]:
        return (fault for faults in self.faults for fault in faults)


class ContractRules(Struct, frozen=True):
    """The rules of the contract, and which of them have trials of their own."""

    all: tuple[RuleEntry, ...] = ()
    cells: tuple[str, ...] = ()


# -- rules --------------------------------------------------------------------------------------
def contract_rules(reader: Reader, file: File) -> ContractRules:
    """The rules of `contract.invariants` and of a map of invariants, in the order of the file."""
    listed = file.contract.invariants if file.contract else ()
    mapped = file.mapped
    isolation = file.contract.isolation if file.contract else None
    ordered = tuple(sorted((*listed, *mapped), key=lambda rule: (rule.at.line, rule.at.column)))
    duplicates(reader, ordered)
    duplicates(reader, file.run_rules)
    _contract_keys(reader, file, bool(mapped))
    own = {rule.path for rule in listed}
    cells = tuple(r.invariant.id for r in ordered if _own_trials(r, isolation, r.path in own))
    return ContractRules(ordered, cells)


def _own_trials(rule: RuleEntry, isolation: str | None, listed: bool) -> bool:
    if rule.invariant.probes or isolation == "cell":
        return True
    return listed and isolation is None


def _contract_keys(reader: Reader, file: File, mapped: bool) -> None:
    if file.contract is None:
        return
    at = file.contract.at
    if not at.has("name") and (at.has("invariants") or not mapped):
        reader.error(at, "contract.name", "missing", hint="the contract's name", code="missing-key")
    if not at.has("invariants") and not mapped:
        reader.error(at, "contract.invariants", "missing", hint="its rules", code="missing-key")


# -- scenarios ----------------------------------------------------------------------------------
def contract_weather(reader: Reader, file: File, overrides: Overrides, root: Path) -> ScenarioSet:
    """The scenarios of the one matrix, and that of `--profile`."""
    inner = file.contract is not None and file.contract.at.has("chaos_matrix")
    if inner and file.at.has("chaos_matrix"):
        message = "a second chaos_matrix: the contract has one already"
        reader.error(file.at.key("chaos_matrix"), "chaos_matrix", message, code="conflict")
    path = "contract.chaos_matrix" if inner else "chaos_matrix"
    owner = file.contract.at if inner and file.contract else file.at
    entries = file.contract.chaos_matrix if inner and file.contract else file.chaos_matrix
    _same_names(reader, entries, path)
    added = _profile_entry(reader, file, entries, overrides.profile) or _calm_entry(file, entries, overrides.part)
    reach = None if reader.failed("agent") else Reach(file.agent, root, world_spec(file))
    made: list[tuple[Scenario, tuple[FaultEntry, ...]]] = []
    names = {entry.name for entry in entries}
    for entry in (*entries, *added):
        where = _path_of(path, owner, entry)
        new = scenarios(reader, reach, entry, where)
        _taken(reader, entry, new, names, where)
        made += new
    at = owner.key("chaos_matrix") if owner.has("chaos_matrix") else None
    return ScenarioSet(
        tuple(s for s, _ in made), tuple(f for _, f in made), at, path, reach is not None and reach.tools_on_wire
    )


def _path_of(path: str, owner: Node, entry: MatrixEntry) -> str:
    for index, item in enumerate(owner.get("chaos_matrix").items if owner.has("chaos_matrix") else ()):
        if item is entry.at:
            return f"{path}[{index}]"
    return "--profile"


def _same_names(reader: Reader, entries: tuple[MatrixEntry, ...], path: str) -> None:
    seen: dict[str, MatrixEntry] = {}
    for index, entry in enumerate(entries):
        first = seen.setdefault(entry.name, entry)
        if first is not entry:
            message = f"the name {entry.name!r} is used twice: first on line {first.at.line}"
            where, hint = f"{path}[{index}].name", "give it a name of its own"
            reader.error(entry.at.get("name"), where, message, hint=hint, code="duplicate-id")


def _taken(
    reader: Reader, entry: MatrixEntry, made: Iterable[tuple[Scenario, object]], names: Collection[str], path: str
) -> None:
    """Scenarios of a profile whose name another entry has."""
    for scenario, _ in made:
        if scenario.name != entry.name and scenario.name in names:
            message = f"profile {entry.profile} has a scenario of the name {scenario.name!r} too"
            reader.error(entry.at.get("name"), f"{path}.name", message, code="duplicate-id")


def _profile_entry(
    reader: Reader, file: File, entries: tuple[MatrixEntry, ...], profile: str | None
) -> tuple[MatrixEntry, ...]:
    """The scenario that `--profile` adds; beside a calm one where the file has no matrix."""
    if profile is None:
        return ()
    from holdfast.faults import profiles
    from holdfast.reading.words import near_hint

    at = file.agent.at
    if profile not in profiles.names():
        hint = near_hint(profile, profiles.names(), label="profiles")
        reader.error(
            Node("null", 0, 0), "--profile", f"unknown profile {profile[:60]!r}", hint=hint, code="unknown-value"
        )
        return ()
    same = next((entry for entry in entries if entry.name == profile), None)
    if same is not None:
        if same.profile != profile:
            message = f"the matrix has another scenario called {profile!r}"
            reader.error(same.at.get("name"), "--profile", message, code="duplicate-id")
        return ()
    added = MatrixEntry(at=Node("map", at.line, at.column, at.length), name=profile, profile=profile)
    calm = MatrixEntry(at=Node("map", at.line, at.column, at.length), name="no-chaos")
    return (added,) if entries else (calm, added)


def _calm_entry(file: File, entries: tuple[MatrixEntry, ...], part: PartAsked) -> tuple[MatrixEntry, ...]:
    """A scenario without a matrix is run in calm."""
    if entries or part not in ("scenario", "run", "ci"):
        return ()
    at = file.agent.at
    return (MatrixEntry(at=Node("map", at.line, at.column, at.length), name=CALM),)


def rules_unbuilt(rules: ContractRules, file: File, params: Iterable[Mapping[str, Any]]) -> Iterator[Unbuilt]:
    """Judges whose model nothing here answers for, with whatever parameters."""
    models = {name: model.spec for name, model in file.models.items()}
    for rule in rules.all:
        if not rule.traits.asks_model:
            continue
        from holdfast.planes.llm.sources.provider_hosts import is_hosted, meaning, without_meaning

        written = str(rule.invariant.settings["model"])
        for model in dict.fromkeys(interpolate(written, values) for values in params):
            if meaning(models, model) is None:
                at = rule.settings_at.get("model").position
                close = near(model, models)
                hint = f"did you mean {close}?" if close else ""
                mistake = not is_hosted(model)
                yield Unbuilt(f"{rule.settings_path}.model", without_meaning(model), at, hint, mistake=mistake)


# -- repeats and scores -------------------------------------------------------------------------
def tasks(file: File, part: Part) -> tuple[Task, ...]:
    """What is asked: by a contract the golden prompts, else the task; by a scenario its task."""
    if part == "replay":
        return ()
    if file.golden_prompts and part != "scenario":
        return tuple(task_of(prompt, "golden") for prompt in file.golden_prompts if prompt.asked)
    return (task_of(file.task, "task"),) if file.task is not None and file.task.asked else ()


def replicas(reader: Reader, file: File, override: int | None) -> int:
    """How often each prompt is tried."""
    own = file.parallelism.replicas if file.parallelism else None
    if own is not None and file.at.has("replicas"):
        message = "written twice: replicas and parallelism.replicas are the same"
        reader.error(file.at.key("replicas"), "replicas", message, code="conflict")
    return override or own or file.replicas


def seed(reader: Reader, file: File, override: int | None) -> int:
    """The seed of all luck."""
    first = file.determinism.seed if file.determinism else None
    second = file.advanced.seed if file.advanced else None
    if first is not None and second is not None and first != second and file.advanced:
        message = f"another seed than determinism.seed, which is {first}"
        reader.error(file.advanced.at.get("seed"), "advanced.seed", message, code="conflict")
    return next((s for s in (override, first, second) if s is not None), 0)


def scoring(reader: Reader, file: File, rules: ContractRules, weather: ScenarioSet, count: int) -> Scoring:
    """The scoring of the contract; reports what can never be reached."""
    section = file.scoring
    listed = file.contract is not None and bool(file.contract.invariants)
    contract = listed or weather.at is not None or any(scenario.name != CALM for scenario in weather.scenarios)
    for rule in rules.all:
        own = rule.invariant.replica_aggregation
        if own is not None:
            where = f"{rule.path}.replica_aggregation"
            _aggregation(reader, own, count, rule.at.get("replica_aggregation"), where, contract)
    if section is None:
        return Scoring()
    if section.at.has("replica_aggregation"):
        node, where = section.at.get("replica_aggregation"), "scoring.replica_aggregation"
        _aggregation(reader, section.replica_aggregation, count, node, where, contract)
    _weights(reader, file)
    return Scoring(section.min_score, section.replica_aggregation, section.pass_threshold, section.gate_on)


def _aggregation(reader: Reader, how: Aggregation, count: int, node: Node, path: str, contract: bool) -> None:
    message = aggregation_problem(how, count, contract=contract)
    if message:
        reader.error(node, path, message, hint="all, any, majority, at_least or rate", code="conflict")


def _weights(reader: Reader, file: File) -> None:
    section = file.scoring
    if section is None:
        return
    flat = [key for key in ("mutation", "chaos", "contract", "replay") if section.at.has(key)]
    if flat and section.weights is not None:
        message = "written twice: the weights stand under weights already"
        reader.error(section.at.key(flat[0]), f"scoring.{flat[0]}", message, code="conflict")
        return
    weights: Weights = section.weights or Weights(
        at=section.at, mutation=section.mutation, chaos=section.chaos, contract=section.contract, replay=section.replay
    )
    total = weights.mutation + weights.chaos + weights.contract + weights.replay
    if abs(total - 1.0) > 0.001 + 1e-9 and not reader.failed("scoring"):
        node = section.at.key("weights") if section.weights else section.at.key(flat[0]) if flat else section.at
        hint = "missing ones keep their defaults: mutation 0.20, chaos 0.35, contract 0.35, replay 0.10"
        message = f"the weights sum to {total:.3f}, not to 1.0"
        reader.error(node, "scoring.weights" if section.weights else "scoring", message, hint=hint, code="bad-weights")
