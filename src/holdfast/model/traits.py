"""What the rest of Holdfast must know of a fault or a check before it acts: the class variable `traits` of its class.

Nothing else tells a built-in plug-in from another: no stage asks for one by its name.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from holdfast.model.delivery import DeliveryPart

Step: TypeAlias = Literal["connect", "tls", "name", "statement", "write", "commit"]
"""Where a connection is met: its name looked up, it is made, TLS begins; of a transaction its first statement, its
first write, and the commit of one that wrote."""
Disturbed: TypeAlias = Literal["clock", "limits", "paths", "disk"]


class Rung(IntEnum):
    """The ladder that a hunt climbs at a call site, from weak to strong."""

    SLOW = 0
    ERROR_ONCE = 1
    ERROR_ALWAYS = 2
    EMPTY = 3
    PARTIAL = 4
    STALE = 5
    WRONG_VALUE = 6
    MALFORMED = 7
    LOST_REPLY = 8
    HANG = 9
    KILLED = 10


class Hunted(Struct, frozen=True, kw_only=True):
    """How a hunt uses a fault."""

    rung: Rung
    settings: dict[str, Any] = {}
    lasting: bool = False
    """From its call on, and not on that call alone."""
    common: bool = False
    """There is good public evidence for it, so it is tried early: the profile `top14`."""
    writes: bool = False
    """It is about calls that change something, and sweeps of write boundaries use it."""


class FaultTraits(Struct, frozen=True, kw_only=True):
    """What planes, worlds and checks must know of a fault."""

    reached: Literal["always", "never", "maybe"] = "always"
    """Whether the other side gets a call that meets it."""
    harmless: bool = False
    """It only changes how a reply comes, or adds to it: the caller still gets what it wanted."""
    on_results: bool = True
    """Of tools: a result on its way to the model can show it, although the tool has run by then."""
    on_calls: bool = True
    on_listings: bool = False
    """Of MCP: whether it is met by calls, and where a server lists its tools."""
    wire_only: bool = False
    """Of models: plain functions cannot meet it."""
    sql_only: bool = False
    """Of services: only databases whose protocol Holdfast reads can meet it."""
    step: Step = "connect"
    """Of services and HTTP: where a connection meets it."""
    delivers: DeliveryPart | None = None
    """Of services and HTTP: what it changes of the delivery of a reply. It is met only if that part was felt."""
    disturbs: Disturbed | None = None
    """Of worlds: what the sandbox must be able to change, or to watch, from the start."""
    needs_running: bool = False
    """Of worlds: at the very start there is nothing that it could act on."""
    hunted: tuple[Hunted, ...] = ()
    """How a hunt uses it; empty: hunts do not."""
    met: str = ""
    """When it counts as met, for the catalogue; empty: as all of its section."""
    see: tuple[str, ...] = ()
    """What else is worth reading, as `section.name`."""
    standards: tuple[str, ...] = ()
    """Entries of public lists that it stands for, by their ids in `model/standards.py`."""


TextRead: TypeAlias = Literal["answer", "evidence", "target", "arguments"]
_TEXTS: dict[str, tuple[TextRead, ...]] = {
    "text": ("answer",),
    "state": ("evidence",),
    "trace": ("target", "arguments"),
}


class ServiceRead(Struct, frozen=True):
    """A service that a check reads."""

    setting: str
    """The setting that names it."""
    name: str
    needs: Literal["database", "recorder"]
    """What the service must be: a database that can be asked, or one that records its requests."""


class CheckTraits(Struct, frozen=True, kw_only=True):
    """What the planner, the world and the judge must know of a check."""

    polarity: Literal["positive", "negative"]
    """Positive asks for something to be there, negative for something not to be there.
    With no text a positive check fails and a negative one is unproven."""
    reads: Literal["text", "ending", "latency", "trace", "state"]
    """What it judges. A check of the trace or the state is asked once a trial, whatever the agent said."""
    texts: tuple[TextRead, ...] | None = None
    """Which texts decide, so that a mask in one hides what was there. None: all of what it reads."""
    deeds: bool | None = None
    """It judges what the agent did: calls, side effects, state. None: if it reads the trace or the state."""
    verbatim: bool = False
    """It reads the answer only as it is, not its other readings."""
    every_turn: bool = False
    """It is about each turn of a conversation, not about its last."""
    compares_words: bool = False
    """Its verdict depends on the likeness of words, unless it asks a model."""
    needs_control: bool = False
    """It compares with a calm run of the same task."""
    asks_model: bool = False
    """It asks a model before it decides, in `consult`."""
    calls_per_vote: int = 1
    """How often it asks the model for one vote."""
    requires_probes: bool = False
    forbids_calls: bool = False
    """It forbids calls of the tools it names, so a tool that is never called is what it asks for."""
    reads_cost: bool = False
    """It reads what model calls used, so they must be seen."""
    needs_world: bool = True
    """Of state: there is nothing to gather without a sandbox."""
    runs_inside: bool = False
    """It runs a program in the sandbox, which may leave traces there: it is gathered last."""
    shell_setting: str = ""
    """The setting that a shell reads."""
    file_setting: str = ""
    """The setting that names a file next to the spec."""
    tools: tuple[tuple[str, str], ...] = ()
    """Each setting that names a tool, as `tool` or `tools[0]`, and the name, glob or URL in it."""
    urls: tuple[str, ...] = ()
    """URL globs of the requests that it reads in the trace."""
    programs: tuple[str, ...] = ()
    """What it runs in the sandbox, by the words that the shell looks it up with."""
    services: tuple[ServiceRead, ...] = ()
    audits: tuple[tuple[str, str], ...] = ()
    """Each setting that needs a part of the audit, and the key of `audit` that must be on."""
    see: tuple[str, ...] = ()
    """What else is worth reading, as `section.name`."""
    standards: tuple[str, ...] = ()
    """Entries of public lists that it stands for, by their ids in `model/standards.py`."""

    @property
    def texts_read(self) -> tuple[TextRead, ...]:
        """Which texts decide."""
        return _TEXTS.get(self.reads, ()) if self.texts is None else self.texts

    @property
    def judges_deeds(self) -> bool:
        """Whether it judges what the agent did, and not only what it said, spent or how it ended."""
        return self.reads in ("trace", "state") if self.deeds is None else self.deeds

    @property
    def reads_state(self) -> bool:
        """It judges what the agent left behind, so the agent needs a world to leave it in."""
        return self.reads == "state" and self.needs_world
