"""An Observation: everything that was seen in one trial."""

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from holdfast.model.task import RecordedUse
from holdfast.model.trace import TraceEvent
from holdfast.model.world import AuditEvent, Evidence, Isolation

EndingKind = Literal[
    "answered",  # an answer came, good or bad
    "no_answer",  # ended by itself without an answer: None, 204, an empty body
    "timeout",  # did not answer in time and was ended
    "limit",  # made more calls, or used more tokens or money, than agent.limits allow, and was ended
    "raised",  # raised an exception (Python)
    "crashed",  # its process died: exit code, signal
    "out_of_memory",  # its process was ended for using more memory than it may
    "http_error",  # status >= 300, or a body that says it failed
    "closed",  # accepted the connection, then closed it or broke its framing
    "unreadable",  # a reply that cannot be read as the spec says
]
ENDINGS: tuple[str, ...] = EndingKind.__args__  # type: ignore[attr-defined]  # Literal keeps its values there


ENDED_BY_US = ("timeout", "limit")
"""Endings that we brought about."""

FAULT_BROKEN = "fault-broken"
"""The code of an error of a fault itself: whether the agent would have met it is not known."""
WHOLE = "resources.timeout"
"""The setting that limits the whole trial, and not the agent alone."""
EndingCause = Literal[
    "",
    "not-text",  # of `unreadable`: the bytes are not in their charset, and no setting could read them
    "trial-time",  # of `timeout`: the time of the whole trial was over, its world included
]


class Turn(Struct, frozen=True, omit_defaults=True, gc=False):
    """One question and what came of it."""

    asked: str
    text: str | None = None
    """Whatever text there is, partial output included; None if there is none."""
    latency_ms: float = 0.0
    ending: EndingKind = "answered"
    detail: str = ""
    """For a bad ending: the status, the exception, the signal."""
    status: int | None = None
    cut: bool = False
    """Our limit cut the text: what a rule looks for, or forbids, may stand in the rest."""
    canaries: tuple[str, ...] = ()
    """In small letters: those in a dict that the agent returned, of which the text is one field."""
    cause: EndingCause = ""
    """Which of several kinds of one ending it is, where that matters."""
    awaits: str = ""
    """What the agent seemed to wait for when it was ended, in words; the detail ends with it."""


class FaultMet(Struct, frozen=True, omit_defaults=True, gc=False):
    """One firing of a fault, as the ledger has it."""

    index: int
    """Of the injection in its scenario."""
    plane: str
    target: str
    mode: str
    call: int
    """Which call at the target it was, from 1."""
    effect: Literal["met", "no_effect", "erased"] = "met"
    """`met`: the agent felt it. `no_effect`: it changed nothing. `erased`: another fault on the call undid it."""
    would: str = ""
    """What the agent would have got, shortened."""
    got: str = ""
    """What it got, shortened."""
    note: str = ""
    retry: int = 0
    """Which repetition of the same request by a client library met it; 0 is the agent's own call."""
    canaries: tuple[str, ...] = ()
    """Words by which it is recognised that an attack succeeded."""
    ran: bool = False
    """The tool had already run: the fault could only change its result on the way to the model."""
    reply: str = ""
    """What the tool itself gave, as `planes/recorded_value.py` writes it, where the fault changed it; empty if the tool
    was not called."""
    nth: int = 0
    """Of a fault with a probability: which of the calls that it waits for it fired on, from 1."""
    delayed: bool = False
    """It made somebody wait. That counts once it has begun, whatever came afterwards."""
    change: str = ""
    """What it changed, as a difference on one line: `+ "ignore previous …"`; empty where `would` and `got` say it."""


class Answer(Struct, frozen=True, omit_defaults=True):
    """What an agent gave for a task. The faults it met are in its trial's ledger."""

    turns: tuple[Turn, ...]
    output: str = ""
    """What the agent printed, kept apart from its answer."""
    notes: tuple[str, ...] = ()
    calls: dict[str, int] = {}
    """How often each declared tool or model function was called."""
    concurrent: bool = False
    """Calls overlapped, so the order of faults may differ between runs."""
    unmatched: dict[int, str] = {}
    """By injection: what the calls had where its `match` asks for something else, if no call fitted."""


class ForbiddenResult(Struct, frozen=True, omit_defaults=True):
    """Whether the agent did what the spec forbids, read from the audit log."""

    rule: str
    violated: bool
    details: tuple[str, ...] = ()
    error: str = ""
    """It cannot be told, and why."""


MASK = "[masked]"
"""What stands for a secret in everything that is stored, shown or sent."""


class Observation(Struct, frozen=True, omit_defaults=True, gc=False):
    """Everything seen in one trial, as JSON."""

    trial: str
    turns: tuple[Turn, ...] = ()
    ledger: tuple[FaultMet, ...] = ()
    output: str = ""
    notes: tuple[str, ...] = ()
    calls: dict[str, int] = {}
    concurrent: bool = False
    unmatched: dict[int, str] = {}
    """By injection: what the calls had where its `match` asks for something else, if no call fitted."""
    simulated: bool = False
    """The faults damaged the answer (`agent.simulate: answer`), not the agent's own calls."""
    error: str = ""
    """Why Holdfast failed in this trial; never the agent's doing."""
    error_code: str = ""
    """The code of that error. With several errors: of the first, or that of a broken fault."""
    masked: bool = False
    """A secret was masked in what the agent said."""
    calls_made: str = ""
    """Of an agent that Holdfast ended: how many calls it had made, and the last one, in words. A note says it, too."""
    attempts: int = 1
    duration_ms: float = 0.0
    trace: tuple[TraceEvent, ...] = ()
    """Every call that was seen, in the order in which they began."""
    events: int = 0
    """In a stored record: how many of them are in the trial's trace file, and not here."""
    events_digest: str = ""
    """In a stored record: of that file, as it was written."""
    at: float = 0.0
    """When it began, in seconds since 1970."""
    evidence: dict[str, Evidence] = {}
    """By rule: what was recorded of the state the agent left."""
    audit: tuple[AuditEvent, ...] = ()
    """What the agent did, in order."""
    audited: int = 0
    """In a stored record: how many of those are in the trial's audit file, and not here."""
    audited_digest: str = ""
    """In a stored record: of that file, as it was written."""
    isolation: tuple[Isolation, ...] = ()
    """What the sandbox enforced and what it did not; empty: there was none."""
    forbidden: tuple[ForbiddenResult, ...] = ()
    missing_programs: tuple[str, ...] = ()
    """Programs of its checks that the world did not have when the agent started."""
    recorded: tuple[RecordedUse, ...] = ()
    """Of a replay: the calls of tools, each with what the recording gave it."""
    asked_again: "Observation | None" = None
    """After a mutation of the request: the plain request, sent in calm up to three times.
    Its trace has only the costs."""
    repeats: "tuple[Observation, ...]" = ()
    """The other times that a mutation of the request was sent. If the agent did not always reply alike, the observation
    itself is of the first reply that was unlike the first."""

    @property
    def ending(self) -> str:
        """The first bad ending of the turns, else `answered`."""
        return next((t.ending for t in self.turns if t.ending != "answered"), "answered" if self.turns else "no_answer")

    @property
    def broken_fault(self) -> str:
        """The error, if a fault itself broke."""
        return self.error if self.error_code == FAULT_BROKEN else ""

    @property
    def met(self) -> tuple[FaultMet, ...]:
        return tuple(f for f in self.ledger if f.effect == "met")


def unread_models(calls: Iterable[str]) -> list[str]:
    """Of the calls that were counted: where models were asked in formats that nothing reads, `HOST speaks FORMAT`."""
    return [name.removeprefix("unread:") for name in calls if name.startswith("unread:")]
