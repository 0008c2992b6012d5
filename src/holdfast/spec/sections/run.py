"""The sections of a run, apart from the contract: model, mutations, replays, scoring, output, advanced."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Struct, field

from holdfast.model.model_spec import ModelSpec
from holdfast.model.mutation import DEFAULT_MUTATIONS, MutationType
from holdfast.model.spec import Aggregation, PartWeight, PartWeights
from holdfast.model.task import DialogueMessage, RecordedFiring
from holdfast.reading.fields import Schema, ValueForm, about, convert
from holdfast.reading.node import Node, build_absent
from holdfast.reading.reader import BAD, Reader
from holdfast.spec.catalogue.schema import build_section_schema
from holdfast.spec.rules.matrix import MatrixEntry
from holdfast.spec.sections.forms import Aggregate, Code, Format

DATE_RANGE = "last_7_days"
_RANGE = r"last_(\d{1,6})_(minute|hour|day|week)s?"
_TEXT = Annotated[str, about("", min_length=1)]


def parse_range(text: str) -> int | None:
    """Return how many seconds back `last_7_days` goes; None for `all`. Raise ValueError if it is neither."""
    if text == "all":
        return None
    match = re.fullmatch(_RANGE, text)
    if match is None:
        raise ValueError(f"expected last_7_days, last_24_hours or all, found {text[:60]!r}")
    return int(match[1]) * {"minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}[match[2]]


def _read_messages(reader: Reader, node: Node) -> Any:
    """Read a list of messages; plain texts are messages of the user."""
    if node.kind != "list":
        return reader.report_type(node, "a list", hint="a list of {role, content}, or of texts that the user wrote")
    read = [_read_message(reader, item) for index, item in enumerate(node.items)]
    return BAD if any(message is BAD for message in read) else tuple(read)


def _read_message(reader: Reader, node: Node) -> Any:
    if node.kind != "map":
        text = reader.read(_TEXT, node)
        return BAD if text is BAD else DialogueMessage("user", text)
    return reader.read_section(DialogueMessage, node)


def _read_input(reader: Reader, node: Node) -> Any:
    if node.kind != "list":
        text = reader.read(_TEXT, node)
        return BAD if text is BAD else (DialogueMessage("user", text),)
    messages = _read_messages(reader, node)
    if messages is BAD:
        return BAD
    if not messages or messages[-1].role != "user":
        hint = "the last message must be the user's question; put earlier answers into context"
        return reader.report(node, "ends without a message of the user", hint=hint, code="bad-value")
    return messages


def _read_date_range(reader: Reader, node: Node) -> Any:
    text = reader.read(str, node)
    if text is BAD:
        return BAD
    try:
        parse_range(text)
    except ValueError as wrong:
        return reader.report(node, str(wrong), code="bad-value")
    return text


def _build_messages_schema() -> Schema:
    message = build_section_schema(DialogueMessage)
    return {"type": "array", "items": {"anyOf": [{"type": "string"}, message]}}


PriorTurns: TypeAlias = Annotated[
    tuple[Any, ...], ValueForm(_read_messages, _build_messages_schema, "a list of texts and {role, content}")
]
SessionInput: TypeAlias = Annotated[
    tuple[Any, ...],
    ValueForm(
        _read_input,
        lambda: {"anyOf": [{"type": "string"}, _build_messages_schema()]},
        "text, or a list of texts and messages",
    ),
]
DateRange: TypeAlias = Annotated[
    str, ValueForm(_read_date_range, lambda: {"type": "string", "pattern": f"^(all|{_RANGE})$"}, "text")
]


SEED = about("The random seed.", ge=0, le=2**63 - 1)


DEFAULT_MODEL = "qwen3:8b"
"""The meaning of an Ollama `model:` without a name in files of this format."""


class ModelSection(Struct, frozen=True, kw_only=True):
    """A model that Holdfast itself calls."""

    at: Node
    provider: Annotated[Literal["ollama", "openai", "anthropic", "google"], about("The API that it uses.")] = "ollama"
    name: Annotated[
        str, about(f"The model's name at the provider; default with ollama: {DEFAULT_MODEL}.", min_length=1)
    ] = ""
    api_key: Annotated[str | None, about("The key, only as ${VAR}.")] = None
    base_url: Annotated[str | None, about("Another address of the API.", min_length=1)] = None
    temperature: Annotated[float, about("Sent with each request.", ge=0, le=2)] = 0.8


class ModelEntry(Struct, frozen=True, kw_only=True):
    """Which model answers for a name: another model, another server or a script."""

    at: Node
    provider: Annotated[
        Literal["ollama", "openai", "anthropic", "google"] | None,
        about("The API that it uses; default: openai with a base_url, otherwise ollama."),
    ] = None
    name: Annotated[str, about("The model's name at the provider; default: the requested name.", min_length=1)] = ""
    api_key: Annotated[str | None, about("The key, only as ${VAR}.")] = None
    base_url: Annotated[str | None, about("The address of a server with this API.", min_length=1)] = None
    script: Annotated[str | None, about("A scripted model: a file next to the spec.", min_length=1)] = None
    temperature: Annotated[float | None, about("Used by judges that set none; default: 0.", ge=0, le=2)] = None
    input_usd: Annotated[float | None, about("Price of a million input tokens.", ge=0)] = None
    output_usd: Annotated[float | None, about("Price of a million output tokens.", ge=0)] = None

    @property
    def spec(self) -> ModelSpec:
        provider = "script" if self.script else self.provider or ("openai" if self.base_url else "ollama")
        return convert(ModelSpec, self, provider=provider)


class MutationsSection(Struct, frozen=True, kw_only=True):
    """How `run` mutates golden prompts."""

    at: Node = field(default_factory=build_absent)
    count: Annotated[int, about("Mutations per prompt.", ge=1, le=10_000)] = 10
    types: Annotated[tuple[MutationType, ...], about("The types of mutation.", min_length=1)] = DEFAULT_MUTATIONS
    weights: Annotated[dict[MutationType, Annotated[float, about("", ge=0)]], about("The weight of each type.")] = {}
    custom_templates: Annotated[dict[str, str], about("Templates by name; each text contains {prompt}.")] = {}


class ToolResponse(Struct, frozen=True, kw_only=True):
    """The response of a tool in a recorded session."""

    tool: Annotated[str, about("The tool's name, a URL or a glob of it, or `server/tool` of MCP.", min_length=1)]
    response: Annotated[Any, about("The response.")] = None
    status: Annotated[int, about("Its status; 0 is a connection error.", ge=0, le=599)] = 200
    latency_ms: Annotated[float, about("How long it took.", ge=0)] = 0.0
    raises: Annotated[Code | None, about("The exception class that a Python tool raised.")] = None
    arguments: Annotated[
        dict[str, Any] | None, about("The arguments of the call; the response goes to the most similar call.")
    ] = None
    python: Annotated[bool, about("The response contains Python values, written as {$python: ...}.")] = False


class ReplaySession(Struct, frozen=True, kw_only=True):
    """A recorded session: a file, or an id with its input."""

    at: Node
    file: Annotated[str | None, about("The session's file.", min_length=1)] = None
    id: Annotated[str | None, about("Its id.", min_length=1)] = None
    input: Annotated[SessionInput, about("The question.")] = ()
    name: Annotated[str, about("A display name.")] = ""
    source: Annotated[str, about("Where it comes from.")] = "manual"
    captured_at: Annotated[str | None, about("When it was recorded.")] = None
    context: Annotated[PriorTurns, about("The earlier turns.")] = ()
    tool_responses: Annotated[tuple[ToolResponse, ...], about("The responses of its tools.")] = ()
    expected_failure: Annotated[str | None, about("What went wrong when it was recorded.")] = None
    failed_rules: Annotated[
        tuple[str, ...], about("The rules that failed when it was recorded; each must judge the session.")
    ] = ()
    contract: Annotated[str | None, about("The contract to apply: its name in this file, or a path.")] = None
    scenario: Annotated[MatrixEntry | None, about("The faults that act on it, as in a chaos matrix.")] = None
    seed: Annotated[int | None, about("The random seed of its faults.", ge=0, le=2**63 - 1)] = None
    fired: Annotated[
        tuple[RecordedFiring, ...] | None,
        about("The calls on which faults with a probability fired."),
    ] = None


class ReplayFilter(Struct, frozen=True, kw_only=True):
    """Which traces of a project to import."""

    status: Annotated[Literal["error", "warning", "all"], about("The result of the trace.")] = "error"
    date_range: Annotated[DateRange, about("A period such as last_7_days, last_24_hours or all.")] = DATE_RANGE
    min_latency_ms: Annotated[float | None, about("Only traces that took at least this long.", ge=0)] = None


class ReplaySource(Struct, frozen=True, kw_only=True):
    """Where sessions are imported from."""

    at: Node
    type: Annotated[Literal["langsmith", "langsmith_run"], about("A project, or one run.")]
    project: Annotated[str | None, about("The project's name.", min_length=1)] = None
    run_id: Annotated[str | None, about("The run's id.", min_length=1)] = None
    filter: Annotated[ReplayFilter | None, about("Which traces to import.")] = None
    auto_import: Annotated[bool, about("Import at each run.")] = False


class ReplaysSection(Struct, frozen=True, kw_only=True):
    """Recorded sessions that `replay run` and `ci` repeat."""

    at: Node
    sessions: Annotated[tuple[ReplaySession, ...], about("Sessions of this file.")] = ()
    sources: Annotated[tuple[ReplaySource, ...], about("Where to import more from.")] = ()


class ScoringSection(Struct, frozen=True, kw_only=True):
    """How verdicts become numbers."""

    at: Node = field(default_factory=build_absent)
    min_score: Annotated[
        float | None, about("The resilience (0-100) from which non-critical failures are tolerated.", ge=0, le=100)
    ] = None
    replica_aggregation: Annotated[Aggregate, about("How replicas of a prompt are combined.")] = Aggregation()
    pass_threshold: Annotated[float | None, about("The lowest composite that passes.", ge=0, le=1)] = None
    gate_on: Annotated[Literal["score", "passed"], about("Whether a gate needs a score of 1.0 or a pass.")] = "score"
    weights: Annotated[PartWeights | None, about("The weights of the parts.")] = None
    mutation: PartWeight = 0.20
    chaos: PartWeight = 0.35
    contract: PartWeight = 0.35
    replay: PartWeight = 0.10


FILENAME_PARTS = ("{run}", "{date}", "{time}", "{timestamp}")
"""The placeholders in the name of a report."""
_FILENAME = f"The file's name, without a folder; {', '.join(FILENAME_PARTS)} are replaced."


class OutputSection(Struct, frozen=True, kw_only=True):
    """The report file of a run."""

    at: Node = field(default_factory=build_absent)
    format: Annotated[Format, about("The format.")] = "html"
    path: Annotated[str, about("The folder.", min_length=1)] = "./reports"
    filename_template: Annotated[str | None, about(_FILENAME, min_length=1, pattern=r"^[^/\\]+$")] = None


_CONCURRENCY = "Trials in parallel. Default: 10 for an HTTP agent that is already running, else one per core."


class AdvancedSection(Struct, frozen=True, kw_only=True):
    """Settings that are rarely needed."""

    at: Node = field(default_factory=build_absent)
    concurrency: Annotated[int | None, about(_CONCURRENCY, ge=1, le=10_000)] = None
    retries: Annotated[int, about("Retries after a harness error.", ge=0, le=100)] = 2
    seed: Annotated[int | None, SEED] = None


class HuntSection(Struct, frozen=True, kw_only=True):
    """What `ci` spends on new causes."""

    at: Node
    trials: Annotated[int, about("Trials that ci may use to hunt for new causes.", ge=1)]


class WarningsSection(Struct, frozen=True, kw_only=True):
    """Which warnings are shown."""

    at: Node = field(default_factory=build_absent)
    ignore: Annotated[
        tuple[str, ...],
        about("Codes of warnings to hide.", examples=[["stateful", "lint-no-calm"]]),
    ] = ()


class ParallelismSection(Struct, frozen=True, kw_only=True):
    """Repeats and parameters of a scenario."""

    at: Node = field(default_factory=build_absent)
    replicas: Annotated[int | None, about("Trials per prompt.", ge=1, le=100_000)] = None
    matrix: Annotated[
        dict[str, Annotated[tuple[Any, ...], about("", min_length=1)]], about("The parameters and their values.")
    ] = {}
