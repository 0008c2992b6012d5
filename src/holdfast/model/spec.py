"""The user's spec, validated and with defaults: the Spec and its parts.

A Spec holds references (`${VAR}`, `{{ secrets.X }}`), never the values behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, field
from msgspec.structs import asdict, replace

from holdfast.model.model_spec import ModelSpec
from holdfast.model.mutation import MutationSpec
from holdfast.model.scenario import Position, Scenario, When
from holdfast.model.session import ReplaySpec
from holdfast.model.task import Task
from holdfast.model.world import WorldSpec

Severity = Literal["critical", "high", "medium", "low"]
AgentIsolation = Literal["fresh", "worker", "inline"]
Part = Literal["contract", "scenario", "mutation", "chaos", "replay", "hunt"]
"""The part of a file to run: its contract (`contract run`), its task, mutated prompts, prompts under chaos, sessions,
or a hunt for faults that break its rules.
"""

PART_COMMANDS: Mapping[Part, str] = {
    "contract": "holdfast contract run",
    "scenario": "holdfast run",
    "mutation": "holdfast run",
    "chaos": "holdfast run --chaos-only",
    "replay": "holdfast replay run",
    "hunt": "holdfast hunt",
}
"""The command that runs each part."""
PartAsked = Part | Literal["run", "ci", "verify"]
"""A part by name, the default of `holdfast run`, all parts, or only the agent with its first prompt."""


def get_run_command(part: PartAsked) -> str:
    """Return the command that runs a part."""
    if part == "run" or part == "ci" or part == "verify":
        return f"holdfast {part}"
    return PART_COMMANDS[part]


SEVERITY_WEIGHTS: Mapping[str, float] = {"critical": 3.0, "high": 2.0, "medium": 1.0, "low": 1.0}


class Aggregation(Struct, frozen=True, omit_defaults=True):
    """How the replicas of one prompt combine."""

    kind: Literal["all", "any", "majority", "mean", "at_least", "rate"] = "all"
    value: float | None = None


class Invariant(Struct, frozen=True, omit_defaults=True):
    """A named rule: a check with its settings, severity, weight, gate and `when`."""

    id: str
    check: str
    settings: dict[str, Any] = field(default_factory=dict)
    description: str = ""
    severity: Severity = "medium"
    weight: float | None = None
    gate: bool = False
    when: When = "always"
    negate: bool = False
    over: Literal["last", "any", "all"] | None = None
    probes: tuple[str, ...] = ()
    replica_aggregation: Aggregation | None = None
    position: Position | None = None
    attacks_only: bool = False
    """`dangerous_prompts`: judged only on tasks that attack."""
    sessions: tuple[str, ...] = ()
    """For a rule of a session's own contract: the sessions it judges; empty: every task."""
    recorded_when: When = "always"
    """For a replay: the rule's original `when`, which its sessions meet."""
    asked_only: tuple[str, ...] = ()
    """The only probes that it judges, if probes are ordinary tasks."""

    def with_task_probes(self) -> Invariant:
        """Return the rule for specs whose probes are ordinary tasks: it judges its own probes only."""
        return replace(self, probes=(), asked_only=self.probes) if self.probes else self

    @property
    def is_selective(self) -> bool:
        """Whether it judges only some tasks."""
        return self.attacks_only or bool(self.sessions or self.asked_only)

    def is_judging(self, task: Task) -> bool:
        """Return whether the rule judges this task."""
        if self.asked_only or task.kind == "probe":
            return task.kind == "probe" and task.prompt in self.asked_only
        if self.attacks_only and not task.attack:
            return False
        return not self.sessions or (task.recording is not UNSET and task.recording.session in self.sessions)

    @property
    def severity_weight(self) -> float:
        """The weight in the resilience score. A gate counts as critical."""
        return SEVERITY_WEIGHTS["critical" if self.gate else self.severity]

    @property
    def critical(self) -> bool:
        return self.gate or self.severity == "critical"


class ToolRef(Struct, frozen=True):
    """A callable of the agent: `module:attribute`, and its name in faults."""

    path: str
    name: str | None = None


class UsageLimits(Struct, frozen=True, omit_defaults=True):
    """The limits of one trial. Exceeding one stops the agent with the ending `limit`."""

    calls: Annotated[int, Meta(description="Calls of models, tools, MCP tools and URLs together.", ge=1)] | None = None
    cost: Annotated[float, Meta(description="US dollars of its model calls, estimated from tokens.", gt=0)] | None = (
        None
    )
    tokens: Annotated[int, Meta(description="Tokens of its model calls, in and out.", ge=1)] | None = None


class TerminalStep(Struct, frozen=True):
    """The text expected on the agent's terminal, and the reply to type; Enter follows."""

    expect: str
    type: str = ""


def map_texts(part: Any, change: Callable[[str], str]) -> Any:
    """Return a nested value with every text in it changed; keys stay."""
    if isinstance(part, str):
        return change(part)
    if isinstance(part, Mapping):
        return {key: map_texts(inner, change) for key, inner in part.items()}
    return type(part)([map_texts(inner, change) for inner in part]) if isinstance(part, list | tuple) else part


class AgentSpec(Struct, frozen=True, omit_defaults=True):
    """The `agent:` section with defaults; strings keep their references."""

    type: Literal["http", "python", "langchain", "command", "snapshot", "paragon"] = "http"
    endpoint: str = ""
    method: str = "POST"
    request_template: str | None = None
    response_path: str | None = None
    query_params: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    parse_structured_input: bool = True
    keep_alive: bool | None = None
    """Whether connections to an HTTP agent stay open between requests; None: unless it has a reset."""
    timeout_ms: int = 30_000
    reset_endpoint: str | None = None
    reset_function: str | None = None
    isolation: AgentIsolation = "fresh"
    input: str | None = None
    """How a LangChain runnable gets the prompt: messages, input, text or a key; None: by its input schema."""
    tools: tuple[ToolRef, ...] = ()
    tool_registry: str | None = None
    llm: tuple[ToolRef, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    simulate: Literal["answer"] | None = None
    command: str | None = None
    """Run by `sh -c`."""
    binary: str | None = None
    """Executed directly, with `args`."""
    args: tuple[str, ...] = ()
    prompt: Literal["stdin", "arg", "env", "file", "messages"] = "stdin"
    answer_file: str | None = None
    """The file with a command's answer, if it is not on stdout; relative to its working folder."""
    ready: str | None = None
    spares: int | None = None
    """Ready instances of a started HTTP agent; None: one per slot."""
    gateway: bool = False
    mcp_config: str | dict[str, Any] | None = None
    """A file next to the spec, or its content."""
    limits: UsageLimits | None = None
    dir: str | None = None
    """A folder next to the spec that a sandboxed agent sees as /agent."""
    dialogue: tuple[TerminalStep, ...] = ()
    """Terminal steps; a command with steps gets a terminal."""
    nested_sandbox: bool = False
    """Whether it may open its own sandbox inside Holdfast's."""
    programs: tuple[str, ...] = ()
    """Programs of this machine that a sandbox makes available, by name or path."""
    position: Position | None = None

    def map_texts(self, change: Callable[[str], str], *names: str) -> AgentSpec:
        """Return the section with every text of these fields changed."""
        fields = asdict(self)
        return replace(self, **{name: map_texts(fields[name], change) for name in names})

    @property
    def has_reset(self) -> bool:
        return bool(self.reset_endpoint or self.reset_function)

    @property
    def launched(self) -> bool:
        """Whether Holdfast starts it as a program."""
        return self.command is not None or self.binary is not None

    @property
    def is_python(self) -> bool:
        return self.type in ("python", "langchain")

    @property
    def runs_alone(self) -> bool:
        """Whether its trials may not overlap: they share its process, its gateway, or state that a reset affects.

        A Python agent is reset in its own process, a started server on its own port; a separate function, or a fixed
        address, belongs to none of them in particular.
        """
        if self.gateway or (self.isolation == "inline" and self.is_python):
            return True
        if self.is_python or not self.has_reset:
            return False
        if self.type != "http" or not self.launched or self.reset_function is not None:
            return True
        url = self.reset_endpoint or ""
        return "://" in url and "{port}" not in url

    @property
    def web_in_reach(self) -> bool:
        """Whether its HTTP can be routed through Holdfast's proxy."""
        return self.launched or self.gateway or (self.is_python and self.isolation != "inline")


class Scoring(Struct, frozen=True, omit_defaults=True):
    """The `scoring:` section for the contract part."""

    min_score: float | None = None
    replica_aggregation: Aggregation = Aggregation()
    pass_threshold: float | None = None
    """The composite from which a case passes; None: every rule must pass."""
    gate_on: Literal["score", "passed"] = "score"


PartWeight: TypeAlias = Annotated[
    float, Meta(description="Weight in the overall score; the four sum to 1.0.", ge=0, le=1)
]


class PartWeights(Struct, frozen=True, omit_defaults=True):
    """The weights of the parts in the overall score."""

    mutation: PartWeight = 0.20
    chaos: PartWeight = 0.35
    contract: PartWeight = 0.35
    replay: PartWeight = 0.10

    def get_weight(self, part: Literal["mutation", "chaos", "contract", "replay"]) -> float:
        """Return the weight of a part."""
        return {"mutation": self.mutation, "chaos": self.chaos, "contract": self.contract, "replay": self.replay}[part]


class Problem(Struct, frozen=True, omit_defaults=True):
    """One error or warning about a file: position, actual value, expected value, remedy."""

    message: str
    path: str = ""
    """The key, such as `contract.invariants[1].severty`."""
    line: int = 0
    column: int = 0
    length: int = 1
    """The number of characters to underline."""
    hint: str = ""
    severity: Literal["error", "warning"] = "error"
    code: str = ""
    """A stable code for tests and `--json`: unknown-key, bad-value, lint-escaped-regex, ..."""
    suggestion: str = ""
    """The known name that the user probably meant; the hint repeats it."""
    ignored: bool = False
    """A warning whose code `warnings.ignore` lists."""
    values: tuple[str, ...] = ()
    """The values in the message: for `left-out-scenario` the scenario and the reason, for `unset-variable` the
    variable.
    """


class Unbuilt(Struct, frozen=True):
    """A section of the file that this release cannot run."""

    section: str
    why: str
    position: Position
    hint: str = ""
    mistake: bool = False
    """No release will support it: the name is unknown."""


class BuiltText(Struct, frozen=True):
    """A spec built by Python code, as YAML, and the line of that code, which all positions point to."""

    text: str
    line: int = 1


class Spec(Struct, frozen=True, omit_defaults=True):
    """The complete file: agent, prompts, rules and scenarios, with defaults."""

    path: str
    agent: AgentSpec
    name: str = ""
    description: str = ""
    tasks: tuple[Task, ...] = ()
    invariants: tuple[Invariant, ...] = ()
    """The rules of the contract, from both formats."""
    cell_rules: tuple[str, ...] = ()
    """Ids of the invariants with their own trials (isolation: cell)."""
    scenarios: tuple[Scenario, ...] = ()
    tools_on_wire: bool = False
    """This Python agent's tools belong to its framework: faults reach their results in the model traffic."""
    models: dict[str, ModelSpec] = field(default_factory=dict)
    """By the name, or glob, of the model that an agent or a judge requests."""
    world: WorldSpec | None = None
    """What surrounds the agent; None: it runs directly on this machine."""
    params: tuple[dict[str, Any], ...] = ({},)
    replicas: int = 1
    seed: int = 0
    scoring: Scoring = Scoring()
    concurrency: int | None = None
    """Parallel trials; None: by the kind of agent."""
    retries: int = 2
    output: dict[str, str] = field(default_factory=dict)
    variables: tuple[str, ...] = ()
    """Names of all `${VAR}` in the file without a default."""
    settled: dict[str, str] = field(default_factory=dict)
    """By path: values of references in numbers and other non-text fields, resolved when the file was read."""
    unsettled: tuple[str, ...] = ()
    """Names of unset variables that such a value needs: a run is rejected."""
    secrets: tuple[str, ...] = ()
    """Strings with references whose resolved values are masked everywhere."""
    passed_on: tuple[str, ...] = ()
    """Strings with references whose values the agent receives: masked unless they are too short to be secrets."""
    files: tuple[str, ...] = ()
    """Every file that the spec names, relative to its folder."""
    unbuilt: tuple[Unbuilt, ...] = ()
    replays: ReplaySpec | None = None
    """Recorded sessions; None: the file has no such section."""
    hunt_trials: int = 0
    """Trials that `ci` may use to hunt for new causes."""
    part: Part = "contract"
    matrix: bool = True
    """Whether cells are reported: the file has a matrix, or rules with their own trials."""
    digest: str = ""
    """The digest of the file's bytes."""
    declares: tuple[Part, ...] = ()
    """The parts that the file configures."""
    has_golden: bool = False
    """Whether the file has golden prompts, which a contract asks instead of the task."""
    beside: tuple[str, ...] = ()
    """Scenarios that only serve as a comparison and are not part of the score."""
    weights: PartWeights = PartWeights()
    ignored_warnings: tuple[str, ...] = ()
    """Codes of warnings that the user does not want to see."""
    mutations: MutationSpec | None = None
    """For a mutation run: how golden prompts are varied."""
    built: BuiltText | None = None
    """The text of a spec built by Python code, whose file is `path`; None if the spec is that file."""

    @property
    def file(self) -> str | None:
        """The file it was read from; None if Python code built it."""
        return self.path if self.built is None else None

    @property
    def by_cases(self) -> bool:
        """Whether cases decide the part: a task, a mutation or a session with its replicas."""
        return self.part in ("scenario", "mutation", "replay")

    @property
    def has_users(self) -> bool:
        """Whether a simulated user takes part in a conversation."""
        return any(task.user is not UNSET for task in self.tasks)

    def get_aggregation(self, rule: Invariant) -> Aggregation:
        """Return how the verdicts of a rule's replicas combine."""
        how = rule.replica_aggregation or self.scoring.replica_aggregation
        return Aggregation() if how.kind == "mean" else how  # a mean combines composites, not verdicts

    def get_invariant(self, id: str) -> Invariant:
        return next(i for i in self.invariants if i.id == id)

    def get_scenario(self, name: str) -> Scenario:
        return next(s for s in self.scenarios if s.name == name)
