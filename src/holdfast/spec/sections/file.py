"""The complete file: every section under its key."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

from msgspec import Struct

from holdfast.model.world import AuditSettings, Forbidden, Network
from holdfast.reading.fields import Schema, ValueForm, about
from holdfast.reading.node import Node
from holdfast.reading.reader import BAD, Reader
from holdfast.spec.rules.matrix import ChaosSection, MatrixEntry
from holdfast.spec.rules.rules import RuleEntry, read_rules
from holdfast.spec.sections import run, world
from holdfast.spec.sections.agent import AgentSection
from holdfast.spec.sections.task import GoldenPrompt, TaskSection

VERSIONS = ("1", "1.0", "2.0")


def _read_version(reader: Reader, node: Node) -> Any:
    if node.kind not in ("int", "float", "text"):
        return reader.report_type(node, "a version such as 1 or 2.0")
    if node.text not in VERSIONS:
        message = f"unknown version {node.text!r}; expected {' or '.join(VERSIONS)}"
        return reader.report(node, message, code="unknown-value")
    return node.text


def _read_secret(reader: Reader, node: Node) -> Any:
    if node.kind == "map":
        return reader.read_section(world.SecretEntry, node)
    name = reader.read(Annotated[str, about("", pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], node)
    return BAD if name is BAD else world.SecretEntry(at=node, name=name, source="env")


def _build_rules_schema(entry: str) -> Schema:
    listed = {"type": "array", "minItems": 1, "items": {"$ref": f"#/$defs/{entry}"}}
    mapped = {"type": "object", "minProperties": 1, "additionalProperties": {"$ref": "#/$defs/NamedRule"}}
    return {"anyOf": [listed, mapped]}


_RULES = ValueForm(
    partial(read_rules, contract=True), lambda: _build_rules_schema("Rule"), "a list of rules, or a map of name to rule"
)
_TOP_RULES = ValueForm(
    partial(read_rules, contract=False),
    lambda: _build_rules_schema("RunRule"),
    "a map of name to rule, or a list of rules",
)
_VERSION = ValueForm(_read_version, lambda: {"type": ["string", "number"]}, "a number or text")
_SECRET = ValueForm(
    _read_secret, lambda: {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/SecretEntry"}]}, "a name, or a map"
)
_SERVICE = ValueForm(world.read_service, lambda: {"$ref": "#/$defs/Service"}, "a map")


class ContractSection(Struct, frozen=True, kw_only=True):
    """Rules that must hold in every scenario of the matrix."""

    at: Node
    name: Annotated[str, about("The contract's name.", min_length=1)] = ""
    description: Annotated[str, about("What the contract is for.")] = ""
    invariants: Annotated[tuple[RuleEntry, ...], _RULES, about("Its rules.")] = ()
    chaos_matrix: Annotated[tuple[MatrixEntry, ...], about("Its scenarios.", min_length=1)] = ()
    isolation: Annotated[Literal["cell", "scenario"] | None, about("One trial per rule, or one for all rules.")] = None


class File(Struct, frozen=True, kw_only=True):
    """A spec: the agent, its prompts, the rules and the scenarios."""

    at: Node
    version: Annotated[str, _VERSION, about("The version of the format; nothing depends on it.")] = "1.0"
    id: Annotated[str, about("The scenario's name, in kebab-case.", pattern="^[a-z0-9]+(-[a-z0-9]+)*$")] = ""
    description: Annotated[str, about("What the file is for.")] = ""
    agent: Annotated[AgentSection, about("The agent under test.")]
    agents: Annotated[dict[str, str], about("Stored agents: name to folder.")] = {}
    golden_prompts: Annotated[tuple[GoldenPrompt, ...], about("The prompts to send to the agent.", min_length=1)] = ()
    task: Annotated[TaskSection | None, about("The task of a scenario, in the same form.")] = None
    invariants: Annotated[
        tuple[RuleEntry, ...], _TOP_RULES, about("A map: rules of the scenario. A list: rules of `run`.")
    ] = ()
    contract: Annotated[ContractSection | None, about("Rules and scenarios.")] = None
    chaos_matrix: Annotated[tuple[MatrixEntry, ...], about("The contract's scenarios.", min_length=1)] = ()
    chaos: Annotated[ChaosSection | None, about("Faults of `run --chaos`.")] = None
    replicas: Annotated[int, about("Trials per prompt.", ge=1, le=100_000)] = 1
    parallelism: Annotated[run.ParallelismSection, about("Repeats and parameters.")] = run.ParallelismSection()
    scoring: Annotated[run.ScoringSection, about("How verdicts become numbers.")] = run.ScoringSection()
    model: Annotated[run.ModelSection | None, about("The model that writes mutations.")] = None
    models: Annotated[dict[str, run.ModelEntry], about("Which model answers for which name or glob.")] = {}
    mutations: Annotated[run.MutationsSection, about("How prompts are mutated.")] = run.MutationsSection()
    replays: Annotated[run.ReplaysSection | None, about("Recorded sessions.")] = None
    hunt: Annotated[run.HuntSection | None, about("What ci spends on a hunt.")] = None
    output: Annotated[run.OutputSection, about("The report file of a run.")] = run.OutputSection()
    advanced: Annotated[run.AdvancedSection, about("Settings that are rarely needed.")] = run.AdvancedSection()
    warnings: Annotated[run.WarningsSection, about("Which warnings are shown.")] = run.WarningsSection()
    base: Annotated[str | None, about("The image of the docker backend.", min_length=1)] = None
    setup: Annotated[world.SetupSection, about("What to prepare before the agent starts.")] = world.SetupSection()
    resources: Annotated[world.ResourcesSection, about("Limits of a trial.")] = world.ResourcesSection()
    secrets: Annotated[tuple[Annotated[world.SecretEntry, _SECRET], ...], about("Secrets of the sandbox.")] = ()
    services: Annotated[tuple[Annotated[world.ServiceEntry, _SERVICE], ...], about("Services of the sandbox.")] = ()
    fixtures: Annotated[tuple[world.FixtureEntry, ...], about("Data of the sandbox.")] = ()
    network: Annotated[Network, about("The network of the sandbox.")] = Network()
    determinism: Annotated[world.DeterminismSection, about("What is kept constant: clock, seed, network.")] = (
        world.DeterminismSection()
    )
    audit: Annotated[AuditSettings, about("What the audit log records.")] = AuditSettings()
    forbidden: Annotated[Forbidden, about("What must not happen.")] = Forbidden()

    @property
    def mapped(self) -> tuple[RuleEntry, ...]:
        """The rules of a map of invariants: those of the scenario and the contract."""
        return self.invariants if self._rules_kind == "map" else ()

    @property
    def run_rules(self) -> tuple[RuleEntry, ...]:
        """The rules of a list of invariants: those of `run`."""
        return self.invariants if self._rules_kind == "list" else ()

    @property
    def _rules_kind(self) -> str:
        return self.at.get("invariants").kind if self.at.has("invariants") else ""
