"""What the user wrote, validated and with its defaults: the Spec and the nouns it holds.

A Spec holds references (`${VAR}`, `{{ secrets.X }}`), never the values behind them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import UNSET, Struct, field
from msgspec.structs import replace

from holdfast.model.model_spec import ModelSpec
from holdfast.model.mutation import MutationSpec
from holdfast.model.scenario import Position, Scenario
from holdfast.model.session import ReplaySpec
from holdfast.model.task import Task
from holdfast.model.world import WorldSpec

Severity = Literal["critical", "high", "medium", "low"]
When = Literal["always", "tool_faults_active", "llm_faults_active", "any_chaos_active", "no_chaos"]
AgentIsolation = Literal["fresh", "worker", "inline"]
Part = Literal["contract", "scenario", "mutation", "chaos", "replay", "hunt"]
"""What of a file is run: its contract (`contract run`), its task, mutated prompts, prompts in chaos, sessions, a hunt
for faults that break its rules."""

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
"""A part by its name, what `holdfast run` runs of the file, all of it, or only the agent and its first prompt."""


def run_command(part: PartAsked) -> str:
    """The command that runs a part."""
    if part == "run" or part == "ci" or part == "verify":
        return f"holdfast {part}"
    return PART_COMMANDS[part]


SEVERITY_WEIGHTS: Mapping[str, float] = {"critical": 3.0, "high": 2.0, "medium": 1.0, "low": 1.0}


class Aggregation(Struct, frozen=True, omit_defaults=True):
    """How replicas of one prompt combine."""

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
    """Of a session's own contract: the sessions that it is for; empty: every task."""
    recorded_when: When = "always"
    """Of a replay: the rule's own `when`, which its sessions meet."""
    asked_only: tuple[str, ...] = ()
    """The probes that it is judged on, and nothing else, where they are tasks like the others."""

    def on_tasks(self) -> Invariant:
        """The rule where probes are tasks like the others: judged on them alone."""
        return replace(self, probes=(), asked_only=self.probes) if self.probes else self

    @property
    def selective(self) -> bool:
        """It judges some tasks and not others."""
        return self.attacks_only or bool(self.sessions or self.asked_only)

    def concerns(self, task: Task) -> bool:
        """Whether the task is one that the rule judges."""
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
    """A callable of the agent: `module:attribute`, and the name faults know it by."""

    path: str
    name: str | None = None


class UsageLimits(Struct, frozen=True, omit_defaults=True):
    """What one trial of the agent may use; more ends it. None: as much as it likes."""

    calls: int | None = None
    cost: float | None = None
    """US dollars."""
    tokens: int | None = None


class TerminalStep(Struct, frozen=True):
    """What is expected on the agent's terminal, and what is typed then; Enter follows."""

    expect: str
    type: str = ""


class AgentSpec(Struct, frozen=True, omit_defaults=True):
    """The `agent:` section, defaults filled in; strings keep their references."""

    type: Literal["http", "python", "langchain", "command", "snapshot", "paragon"] = "http"
    endpoint: str = ""
    method: str = "POST"
    request_template: str | None = None
    response_path: str | None = None
    query_params: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    parse_structured_input: bool = True
    keep_alive: bool | None = None
    """Connections to an HTTP agent are kept between requests; None: unless it has a reset."""
    timeout_ms: int = 30_000
    reset_endpoint: str | None = None
    reset_function: str | None = None
    isolation: AgentIsolation = "fresh"
    input: str | None = None
    """How a LangChain runnable gets the prompt: messages, input, text or a key; None: as its input schema says."""
    tools: tuple[ToolRef, ...] = ()
    tool_registry: str | None = None
    llm: tuple[ToolRef, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    simulate: Literal["answer"] | None = None
    command: str | None = None
    """Run by `sh -c`."""
    binary: str | None = None
    """Executed as it is, with `args`."""
    args: tuple[str, ...] = ()
    prompt: Literal["stdin", "arg", "env", "file", "messages"] = "stdin"
    answer_file: str | None = None
    """Where a command leaves its answer, if not on stdout; relative to its working folder."""
    ready: str | None = None
    spares: int | None = None
    """Instances of a started HTTP agent that are kept ready; None: as many as there are slots."""
    gateway: bool = False
    mcp_config: str | dict[str, Any] | None = None
    """A file beside the spec, or its content."""
    limits: UsageLimits | None = None
    dir: str | None = None
    """A folder beside the spec that a sandboxed agent sees as /agent."""
    dialogue: tuple[TerminalStep, ...] = ()
    """A command that has these is given a terminal."""
    nested_sandbox: bool = False
    """It may make a sandbox of its own in ours."""
    programs: tuple[str, ...] = ()
    """Programs of this machine that a sandbox shows, by name or path."""
    position: Position | None = None

    @property
    def has_reset(self) -> bool:
        return bool(self.reset_endpoint or self.reset_function)

    @property
    def launched(self) -> bool:
        """Holdfast starts it as a program."""
        return self.command is not None or self.binary is not None

    @property
    def in_python(self) -> bool:
        return self.type in ("python", "langchain")

    @property
    def web_in_reach(self) -> bool:
        """Its HTTP can be led through our proxy."""
        return self.launched or self.gateway or (self.in_python and self.isolation != "inline")


class Scoring(Struct, frozen=True, omit_defaults=True):
    """The `scoring:` section as the contract part reads it."""

    min_score: float | None = None
    replica_aggregation: Aggregation = Aggregation()
    pass_threshold: float | None = None
    """A composite from here on passes; None: every rule must."""
    gate_on: Literal["score", "passed"] = "score"


class PartWeights(Struct, frozen=True, omit_defaults=True):
    """The shares of the parts in the overall score; they sum to 1."""

    mutation: float = 0.20
    chaos: float = 0.35
    contract: float = 0.35
    replay: float = 0.10

    def of(self, part: Literal["mutation", "chaos", "contract", "replay"]) -> float:
        """The share of a part."""
        return {"mutation": self.mutation, "chaos": self.chaos, "contract": self.contract, "replay": self.replay}[part]


class Problem(Struct, frozen=True, omit_defaults=True):
    """One error or warning about a file: where, what was found, what was expected, what to do."""

    message: str
    path: str = ""
    """The key, as `contract.invariants[1].severty`."""
    line: int = 0
    column: int = 0
    length: int = 1
    """How many characters of the line to point at."""
    hint: str = ""
    severity: Literal["error", "warning"] = "error"
    code: str = ""
    """A stable word for tests and `--json`: unknown-key, bad-value, lint-escaped-regex, ..."""
    suggestion: str = ""
    """The known name that was probably meant; the hint says it, too."""
    ignored: bool = False
    """A warning whose code `warnings.ignore` names."""
    values: tuple[str, ...] = ()
    """What the message names: of `left-out-scenario` the scenario and why, of `unset-variable` the variable."""


class Unbuilt(Struct, frozen=True):
    """A section of the file whose engine is not in this release."""

    section: str
    why: str
    position: Position
    hint: str = ""
    mistake: bool = False
    """No release will have it: a name that nobody knows."""


class BuiltText(Struct, frozen=True):
    """A spec that Python code built: as YAML, and the line of that code. All of it stands on this line."""

    text: str
    line: int = 1


class Spec(Struct, frozen=True, omit_defaults=True):
    """The whole file: agent, prompts, rules and scenarios, with defaults filled in."""

    path: str
    agent: AgentSpec
    name: str = ""
    description: str = ""
    tasks: tuple[Task, ...] = ()
    invariants: tuple[Invariant, ...] = ()
    """The rules of the contract, from both spellings."""
    cell_rules: tuple[str, ...] = ()
    """Ids of the invariants that have trials of their own (isolation: cell)."""
    scenarios: tuple[Scenario, ...] = ()
    tools_on_wire: bool = False
    """The tools of this Python agent are its framework's: faults meet their results in the model traffic."""
    models: dict[str, ModelSpec] = field(default_factory=dict)
    """By the name, or glob, of the model that an agent or a judge asks for."""
    world: WorldSpec | None = None
    """What surrounds the agent; None: it runs on this machine as it is."""
    params: tuple[dict[str, Any], ...] = ({},)
    replicas: int = 1
    seed: int = 0
    scoring: Scoring = Scoring()
    concurrency: int = 10
    retries: int = 2
    output: dict[str, str] = field(default_factory=dict)
    variables: tuple[str, ...] = ()
    """Names of all `${VAR}` the file refers to without a default."""
    settled: dict[str, str] = field(default_factory=dict)
    """By path: what references gave where no text stands, such as numbers; settled when the file was read."""
    unsettled: tuple[str, ...] = ()
    """Names of unset variables that such a value needs: a run is refused."""
    secrets: tuple[str, ...] = ()
    """Strings with references whose resolved values are masked everywhere."""
    passed_on: tuple[str, ...] = ()
    """Strings with references whose values the agent gets: masked unless they are too short to be secrets."""
    files: tuple[str, ...] = ()
    """Every file that the spec names, relative to its own folder."""
    unbuilt: tuple[Unbuilt, ...] = ()
    replays: ReplaySpec | None = None
    """Recorded sessions; None: the file has no such section."""
    part: Part = "contract"
    matrix: bool = True
    """The cells are reported: the file has a matrix, or rules with trials of their own."""
    digest: str = ""
    """Of the file's bytes."""
    declares: tuple[Part, ...] = ()
    """The parts that the file configures."""
    has_golden: bool = False
    """The file has golden prompts, which a contract asks instead of the task."""
    beside: tuple[str, ...] = ()
    """Scenarios that are run to be compared with, and are no part of the score."""
    weights: PartWeights = PartWeights()
    ignored_warnings: tuple[str, ...] = ()
    """Codes of warnings that the user knows and does not want to see."""
    mutations: MutationSpec | None = None
    """How golden prompts are varied; of a mutation run."""
    built: BuiltText | None = None
    """Of a spec that Python code built, whose file is `path`; None: the spec is that file."""

    @property
    def file(self) -> str | None:
        """The file that it was read from; None: Python code built it."""
        return self.path if self.built is None else None

    @property
    def by_cases(self) -> bool:
        """Cases decide the part: a task, a mutation or a session with its replicas."""
        return self.part in ("scenario", "mutation", "replay")

    @property
    def has_users(self) -> bool:
        """Whether a simulated user carries one of its conversations."""
        return any(task.user is not UNSET for task in self.tasks)

    def aggregation(self, rule: Invariant) -> Aggregation:
        """How the verdicts of a rule's replicas combine."""
        how = rule.replica_aggregation or self.scoring.replica_aggregation
        return Aggregation() if how.kind == "mean" else how  # a mean is of composites, not of verdicts

    def invariant(self, id: str) -> Invariant:
        return next(i for i in self.invariants if i.id == id)

    def scenario(self, name: str) -> Scenario:
        return next(s for s in self.scenarios if s.name == name)
