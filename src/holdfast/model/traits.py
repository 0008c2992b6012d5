"""The traits of faults and checks that the rest of Holdfast uses: the class variable `traits` of each class.

Nothing else distinguishes a built-in plug-in from an external one: no stage asks for a plug-in by name.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from holdfast.model.delivery import DeliveryPart

Step: TypeAlias = Literal["connect", "tls", "name", "statement", "write", "commit"]
"""The step of a connection that a fault acts on: name lookup, connect, TLS; in a transaction the first statement, the
first write, and the commit after a write.
"""
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


class HuntUse(Struct, frozen=True, kw_only=True):
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
    """The traits of a fault that planes, worlds and checks use."""

    reached: Literal["always", "never", "maybe"] = "always"
    """Whether a call with this fault still reaches the other side."""
    harmless: bool = False
    """It only changes how a reply arrives, or adds to it: the caller still gets what it wanted."""
    on_results: bool = True
    """For tools: it can also change a result on its way to the model, after the tool has run."""
    on_calls: bool = True
    on_listings: bool = False
    """For MCP: whether it acts on calls, and whether it acts on the server's list of tools."""
    wire_only: bool = False
    """For models: plain functions cannot meet it."""
    sql_only: bool = False
    """For services: only databases whose protocol Holdfast reads can meet it."""
    step: Step = "connect"
    """For services and HTTP: the step of a connection it acts on."""
    delivers: DeliveryPart | None = None
    """For services and HTTP: the part of a reply's delivery that it changes. It is met only if the caller observed that
    part.
    """
    disturbs: Disturbed | None = None
    """For worlds: what the sandbox must be able to change, or to watch, from the start."""
    needs_running: bool = False
    """For worlds: before the agent runs there is nothing that it could act on."""
    hunted: tuple[HuntUse, ...] = ()
    """How a hunt uses it; empty: hunts do not."""
    met: str = ""
    """When it counts as met, for the catalogue; empty: the same as its section."""
    see: tuple[str, ...] = ()
    """Related entries, as `section.name`."""
    standards: tuple[str, ...] = ()
    """Related entries of public lists, by their ids in `model/standards.py`."""


TextRead: TypeAlias = Literal["answer", "evidence", "target", "arguments"]
_TEXTS: dict[str, tuple[TextRead, ...]] = {
    "text": ("answer",),
    "state": ("evidence",),
    "trace": ("target", "arguments"),
}


class ServiceRead(Struct, frozen=True):
    """A service that a check reads."""

    setting: str
    """The setting that names the service."""
    name: str
    needs: Literal["database", "recorder"]
    """The service must be a database that can be queried, or one that records its requests."""


class CheckTraits(Struct, frozen=True, kw_only=True):
    """The traits of a check that the planner, the world and the judge use."""

    polarity: Literal["positive", "negative"]
    """A positive check requires something, a negative one forbids it. Without text a positive check fails and a
    negative one is unproven.
    """
    reads: Literal["text", "ending", "latency", "trace", "state"]
    """What it judges. A check of the trace or the state runs once per trial, whatever the agent said."""
    texts: tuple[TextRead, ...] | None = None
    """Which texts decide: a masked secret in one of them hides what was there. None: everything it reads."""
    deeds: bool | None = None
    """Whether it judges what the agent did: calls, side effects, state. None: true if it reads the trace or the state.
    """
    verbatim: bool = False
    """It reads only the literal answer, not its other readings."""
    every_turn: bool = False
    """It judges each turn of a conversation, not only the last."""
    compares_words: bool = False
    """Its verdict depends on the similarity of words, unless it asks a model."""
    needs_control: bool = False
    """It compares with a calm run of the same task."""
    asks_model: bool = False
    """It asks a model before it decides, in `consult`."""
    calls_per_vote: int = 1
    """Model calls for one vote."""
    requires_probes: bool = False
    forbids_calls: bool = False
    """It forbids calls of the tools it names, so a tool that is never called satisfies it."""
    reads_cost: bool = False
    """It reads what model calls used, so Holdfast must see them."""
    needs_world: bool = True
    """For checks of state: there is nothing to gather without a sandbox, whatever the settings."""
    runs_inside: bool = False
    """It runs a program in the sandbox, which may leave traces there, so its evidence is gathered last."""
    shell_setting: str = ""
    """The setting that is a shell command."""
    file_setting: str = ""
    """The setting that names a file next to the spec."""
    tools: tuple[tuple[str, str], ...] = ()
    """Each setting that names a tool, such as `tool` or `tools[0]`, with the name, glob or URL in it."""
    urls: tuple[str, ...] = ()
    """URL globs of the requests that it reads in the trace."""
    programs: tuple[str, ...] = ()
    """The programs it runs in the sandbox, by the words that the shell looks up."""
    services: tuple[ServiceRead, ...] = ()
    audits: tuple[tuple[str, str], ...] = ()
    """Each setting that needs a part of the audit, and the key of `audit` that must be on."""
    when_negated: tuple[tuple[str, str], ...] = ()
    """Settings that have another default in a rule with `negate`."""
    see: tuple[str, ...] = ()
    """Related entries, as `section.name`."""
    standards: tuple[str, ...] = ()
    """Related entries of public lists, by their ids in `model/standards.py`."""

    @property
    def texts_read(self) -> tuple[TextRead, ...]:
        """Which texts decide."""
        return _TEXTS.get(self.reads, ()) if self.texts is None else self.texts

    @property
    def judges_deeds(self) -> bool:
        """Whether it judges what the agent did, and not only its answer, cost or ending."""
        return self.reads in ("trace", "state") if self.deeds is None else self.deeds

    @property
    def reads_state(self) -> bool:
        """Whether it judges what the agent left behind, which requires a world."""
        return self.reads == "state" and self.needs_world
