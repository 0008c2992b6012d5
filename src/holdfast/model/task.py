"""What the agent is asked: the Task, and what mutation, replay and conversations add to a plain prompt.

What is added is UNSET in a plain task, and then is in no record and no id of a trial.
"""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from holdfast.model.codec import canonical, digest


class DialogueMessage(Struct, frozen=True):
    """One message of a conversation: what an agent that takes a list of messages gets."""

    role: Literal["user", "assistant", "system", "tool"]
    content: str


class RequestChange(Struct, frozen=True, omit_defaults=True):
    """A mutation of the request itself: what is done to it besides what is asked."""

    kind: str
    """The mutation's type, as `http_header_injection`."""
    variant: str = ""
    """Which of the type's variants."""
    headers: tuple[tuple[str, str], ...] = ()
    query: tuple[tuple[str, str], ...] = ()
    method: str = ""
    """Another method than the agent's; empty: its own."""
    content_type: str | None = None
    size: int = 0
    """Bytes that are added to the body."""
    chunked: int = 0
    """The body is sent in chunks of as many bytes."""
    delay_ms: int = 0
    """Between two pieces of the body."""
    copies: int = 1
    """How many requests are made at once."""


class Variation(Struct, frozen=True, omit_defaults=True):
    """How a task was made from a golden prompt."""

    mutation: str
    """The type, as `noise`."""
    source: str
    """The golden prompt it was made from."""
    name: str = ""
    """Which template, entry or technique of the type."""
    attack: bool = False
    """It wants something of the agent that it must not do; else it keeps the intent."""
    weight: float = 1.0
    canaries: tuple[str, ...] = ()
    """Words by which it is recognised that the attack was obeyed."""
    action: str = ""
    """The tool whose call shows the same; empty: none."""
    request: RequestChange | None = None


class RecordedResponse(Struct, frozen=True, omit_defaults=True):
    """What a tool answered in a recorded session, in the order of the calls."""

    tool: str
    """A name, a URL glob, or `server/tool` of an MCP server."""
    response: str = "null"
    """As JSON."""
    status: int = 200
    """0: the connection failed."""
    latency_ms: float = 0.0

    @property
    def failed(self) -> bool:
        return self.status == 0 or self.status >= 400


class Recording(Struct, frozen=True, omit_defaults=True):
    """The session that a replayed task comes from: its name, and what its tools answered."""

    session: str
    responses: tuple[RecordedResponse, ...] = ()
    live: bool = False
    """A call that the recording does not know is let through; else it gets a connection error."""
    name: str = ""
    """The session's, for people."""
    expected_failure: str = ""
    """What went wrong when it was recorded: it is shown and decides nothing."""

    @property
    def has_failures(self) -> bool:
        """A tool failed in it: rules for tool faults apply."""
        return any(one.failed for one in self.responses)


class SimulatedUser(Struct, frozen=True, omit_defaults=True):
    """Who carries a conversation on after its first turn."""

    script: str = ""
    """A scripted user's file beside the spec."""
    model: str = ""
    """A model that plays the user."""
    goal: str = ""
    stop: str = ""
    """Text in an answer that ends the conversation."""
    max_turns: int = 5
    """User turns, the first included."""


class Task(Struct, frozen=True):
    """What the agent is asked, one turn or several."""

    turns: tuple[str, ...]
    kind: Literal["golden", "task", "probe", "mutation", "replay"] = "golden"
    variation: Variation | UnsetType = UNSET
    """Of a mutation: how it was made."""
    context: tuple[DialogueMessage, ...] | UnsetType = UNSET
    """The turns before."""
    recording: Recording | UnsetType = UNSET
    """Of a replay: the session it comes from."""
    user: SimulatedUser | UnsetType = UNSET
    """Who asks further; unset: the turns are all there is."""

    @property
    def prompt(self) -> str:
        return self.turns[0] if len(self.turns) == 1 else "\n".join(self.turns)

    @property
    def digest(self) -> str:
        """Of what is asked alone: the same prompt meets the same luck whoever asks it."""
        return digest(canonical(self.turns))

    @property
    def attack(self) -> bool:
        """It wants something of the agent that it must not do."""
        return self.variation is not UNSET and self.variation.attack
