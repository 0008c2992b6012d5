"""An Observation: everything recorded in one trial; and the Exhibit of it that a check gets."""

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from holdfast.model.task import RecordedUse
from holdfast.model.trace import TraceEvent
from holdfast.model.world import AuditEvent, Evidence, Isolation

EndingKind = Literal[
    "answered",  # the agent answered, well or badly
    "no_answer",  # ended normally without an answer: None, 204, an empty body
    "timeout",  # did not answer in time and was stopped
    "limit",  # exceeded the calls, tokens or money of agent.limits and was stopped
    "raised",  # raised an exception (Python)
    "crashed",  # its process died: exit code, signal
    "out_of_memory",  # its process was killed for using too much memory
    "http_error",  # status >= 300, or a body that reports a failure
    "closed",  # accepted the connection, then closed it or broke the framing
    "unreadable",  # a reply that cannot be read in the way the spec says
]
ENDINGS: tuple[str, ...] = EndingKind.__args__  # type: ignore[attr-defined]  # Literal keeps its values there


ENDED_BY_US = ("timeout", "limit")
"""Endings that Holdfast caused."""

FAULT_BROKEN = "fault-broken"
"""The error code of a fault that broke: whether the agent would have met it is unknown."""
WHOLE = "resources.timeout"
"""The setting that limits the whole trial, not only the agent."""
EndingCause = Literal[
    "",
    "not-text",  # for `unreadable`: the bytes do not fit their charset, and no setting could read them
    "trial-time",  # for `timeout`: the time limit of the whole trial, world included, was over
]


class Turn(Struct, frozen=True, omit_defaults=True, gc=False):
    """One question and its result."""

    asked: str
    text: str | None = None
    """The text received, possibly partial; None if there is none."""
    latency_ms: float = 0.0
    ending: EndingKind = "answered"
    detail: str = ""
    """For a bad ending: the status, the exception or the signal."""
    status: int | None = None
    cut: bool = False
    """Holdfast's size limit cut the text: the missing part may contain what a rule looks for."""
    canaries: tuple[str, ...] = ()
    """Canaries, in lower case, in the object that the agent returned; the text is only one of its fields."""
    cause: EndingCause = ""
    """The kind of ending, if one ending has several kinds that matter."""
    awaits: str = ""
    """What the agent seemed to wait for when it was stopped; the detail ends with it."""


class FaultMet(Struct, frozen=True, omit_defaults=True, gc=False):
    """One firing of a fault, as recorded in the ledger."""

    index: int
    """The index of the injection in its scenario."""
    plane: str
    target: str
    mode: str
    call: int
    """The number of the call at the target, from 1."""
    effect: Literal["met", "no_effect", "erased"] = "met"
    """`met`: the agent observed it. `no_effect`: it changed nothing. `erased`: another fault on the call undid it."""
    would: str = ""
    """What the agent would have received, shortened."""
    got: str = ""
    """What it received, shortened."""
    note: str = ""
    retry: int = 0
    """The number of the client library's retry that was hit; 0 is the agent's own call."""
    canaries: tuple[str, ...] = ()
    """Canaries that show that an attack succeeded."""
    ran: bool = False
    """The tool had already run: the fault could only change its result on the way to the model."""
    reply: str = ""
    """The tool's own result, in the format of `planes/recorded_value.py`, if the fault changed it; empty if the tool
    was not called.
    """
    nth: int = 0
    """For a fault with a probability: the number of the matching call it fired on, from 1."""
    delayed: bool = False
    """The fault made somebody wait. That counts once the wait has begun, whatever happens later."""
    change: str = ""
    """The change as a one-line difference: `+ "ignore previous …"`; empty if `would` and `got` are enough."""


class ServiceExchange(Struct, frozen=True, omit_defaults=True):
    """A request to a service of the world and its reply, by digests of their values: nothing of them is stored."""

    ts: float
    """When it began, in seconds since the start of the trial."""
    until: float
    plane: Literal["service", "transaction"]
    target: str
    n: int
    """The number of the connection, or of the database transaction, from 1."""
    sent: tuple[str, ...] = ()
    received: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    """The tables that it wrote to."""


class Answer(Struct, frozen=True, omit_defaults=True):
    """The agent's result for a task. The faults it met are in the trial's ledger."""

    turns: tuple[Turn, ...]
    output: str = ""
    """What the agent printed, separate from its answer."""
    notes: tuple[str, ...] = ()
    calls: dict[str, int] = {}
    """The number of calls of each declared tool or model function."""
    concurrent: bool = False
    """Calls overlapped, so the order of faults may differ between runs."""
    unmatched: dict[int, str] = {}
    """By injection: the arguments of the calls, if none of them fitted its `match`."""


class ForbiddenResult(Struct, frozen=True, omit_defaults=True):
    """Whether the agent did something that the spec forbids, according to the audit log."""

    rule: str
    violated: bool
    details: tuple[str, ...] = ()
    error: str = ""
    """Why this could not be determined."""


MASK = "[masked]"
"""The placeholder for a secret in everything that is stored, shown or sent."""


class Observation(Struct, frozen=True, omit_defaults=True, gc=False):
    """Everything recorded in one trial, as JSON."""

    trial: str
    turns: tuple[Turn, ...] = ()
    ledger: tuple[FaultMet, ...] = ()
    output: str = ""
    notes: tuple[str, ...] = ()
    calls: dict[str, int] = {}
    concurrent: bool = False
    unmatched: dict[int, str] = {}
    """By injection: the arguments of the calls, if none of them fitted its `match`."""
    simulated: bool = False
    """The faults changed the answer (`agent.simulate: answer`), not the agent's own calls."""
    error: str = ""
    """Why Holdfast failed in this trial; never the agent's fault."""
    error_code: str = ""
    """The code of that error. With several errors: the first one's, or that of a broken fault."""
    masked: bool = False
    """A secret was masked in the agent's answer."""
    calls_made: str = ""
    """For an agent that Holdfast stopped: the number of calls it had made, and the last one. A note repeats this."""
    attempts: int = 1
    duration_ms: float = 0.0
    trace: tuple[TraceEvent, ...] = ()
    """Every recorded call, in the order in which the calls began."""
    events: int = 0
    """In a stored record: how many events are in the trial's trace file instead of here."""
    events_digest: str = ""
    """In a stored record: the digest of that file when it was written."""
    at: float = 0.0
    """When the trial began, in seconds since 1970."""
    evidence: dict[str, Evidence] = {}
    """By rule: the recorded evidence about the state that the agent left."""
    audit: tuple[AuditEvent, ...] = ()
    """What the agent did, in order."""
    audited: int = 0
    """In a stored record: how many audit events are in the trial's audit file instead of here."""
    audited_digest: str = ""
    """In a stored record: the digest of that file when it was written."""
    exchanges: tuple[ServiceExchange, ...] = ()
    """Requests to services and their replies, in the order in which they began: they show what feeds what."""
    isolation: tuple[Isolation, ...] = ()
    """What the sandbox enforced and what it did not; empty if there was no sandbox."""
    forbidden: tuple[ForbiddenResult, ...] = ()
    missing_programs: tuple[str, ...] = ()
    """Programs that checks need and that the world lacked when the agent started."""
    recorded: tuple[RecordedUse, ...] = ()
    """For a replay: the tool calls, each with its recorded response."""
    asked_again: "Observation | None" = None
    """After a mutation of the request: replies to the plain request, sent up to three times without faults. The trace
    contains only their costs.
    """
    repeats: "tuple[Observation, ...]" = ()
    """The other attempts to send a mutated request. If the replies differ, this observation has the first reply that
    differs from the first one.
    """

    @property
    def ending(self) -> str:
        """The first bad ending of a turn, otherwise `answered`."""
        return next((t.ending for t in self.turns if t.ending != "answered"), "answered" if self.turns else "no_answer")

    @property
    def broken_fault(self) -> str:
        """The error message, if a fault itself broke."""
        return self.error if self.error_code == FAULT_BROKEN else ""

    @property
    def met(self) -> tuple[FaultMet, ...]:
        return tuple(f for f in self.ledger if f.effect == "met")


def list_unread_models(calls: Iterable[str]) -> list[str]:
    """Return the counted calls to models in formats that Holdfast cannot read, as `HOST speaks FORMAT`."""
    return [name.removeprefix("unread:") for name in calls if name.startswith("unread:")]


class Exhibit(Struct, frozen=True):
    """The input of a check: one turn's text, with the complete observation."""

    text: str
    """The text to judge; empty only if the check does not read text."""
    turn: Turn
    observation: Observation
    control: Observation | None = None
    """The calm answer to the same task, for checks with `needs_control`."""
    evidence: Evidence | None = None
    """The evidence gathered for this rule; None if there is none."""
