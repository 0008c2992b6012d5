"""What the agent is asked: the Task, and what mutation, replay and conversations add to a plain prompt.

What is added is UNSET in a plain task, and then is in no record and no id of a trial.
"""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from holdfast.model.codec import canonical, digest


class DialogueMessage(Struct, frozen=True):
    """One message of a conversation: what an agent that takes a list of messages gets."""

    role: Literal["user", "assistant", "system", "tool"]
    content: str


class RequestChange(Struct, frozen=True, omit_defaults=True):
    """A mutation of the request itself: what is done to it besides what is asked. A field left out changes nothing.

    It is a recipe: large headers and bodies are made from it when the request is.
    """

    kind: str
    """The mutation's type, as `http_header_injection`."""
    variant: str = ""
    """Which of the type's variants."""
    repeat: int = 0
    """How often the same prompt has met the variant before."""
    method: str = ""
    """Another method; where it is the agent's own, PATCH."""
    absolute: bool = False
    """The request line has the whole URL."""
    query: tuple[str, ...] = ()
    """Pieces of a query as they are sent, behind the agent's own; `{parameter}` is the name of the prompt's."""
    version: str = "1.1"
    headers: tuple[tuple[str, str], ...] = ()
    """Take the place of those of the same name."""
    added: tuple[tuple[str, str], ...] = ()
    """Come beside them, as they are: a line break in a value is sent."""
    without: tuple[str, ...] = ()
    """Headers that are left out, in small letters."""
    header_count: int = 0
    """As many headers that mean nothing."""
    header_size: int = 0
    """One header of as many bytes."""
    line_end: str = "\r\n"
    before: str = ""
    """Sent before the request line."""
    after: str = ""
    """Sent behind the body."""
    body: str = ""
    """How the body is made anew: a name in `agents/http/changed_request.py`; `none`: it is left out."""
    size: int = 0
    """Of what is made: bytes, levels or items, as the body's name says."""
    framing: Literal["length", "chunked", "zeros", "twice", "both"] = "length"
    """How the body's length is told: once, in chunks, with leading zeros, two times, by length and chunks at once."""
    trailer: str = ""
    """A field behind the last chunk."""
    slow: Literal["", "head", "body", "reply", "before_body", "continue"] = ""
    """What is sent or read in pieces; `before_body`: one pause; `continue`: until the server says so."""
    slow_ms: int = 0
    """All pauses together; never more than a quarter of the agent's time."""
    copies: int = 1
    """How many requests are made at once."""
    abandoned: int = 0
    """How many of them are left without waiting for a reply."""
    others: str = ""
    """What all copies but one ask; empty: the same."""
    malformed: bool = False
    """HTTP does not allow it: a server may close the connection without a word."""
    unanswered: bool = False
    """It asks for no answer: a good status without a body is all that is due."""


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
    raises: str = ""
    """`module:Class` of the exception that a Python tool raised; empty: as the status says."""
    arguments: str = ""
    """What the call had, as JSON: the response is for the call that is most like it. Empty: for any."""
    python: bool = False
    """The response has values that JSON does not have, as `planes/recorded_value.py` writes them."""

    @property
    def failed(self) -> bool:
        return self.status == 0 or self.status >= 400


class RecordedFiring(Struct, frozen=True):
    """A call on which a fault with a probability fired."""

    fault: int
    """Which fault of the scenario, from 1."""
    call: int
    """Which of the calls that the fault matches, from 1."""


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
    scenario: str = ""
    """The scenario that it is asked in; empty: any."""
    seed: int | None = None
    """Of a trial that became a session: what all its draws come from."""
    fired: tuple[RecordedFiring, ...] | None = None
    """Of such a trial: on which calls its faults with a probability fired. None: the seed decides."""

    @property
    def has_failures(self) -> bool:
        """A tool failed in it."""
        return any(one.failed for one in self.responses)


class RecordedUse(Struct, frozen=True, omit_defaults=True):
    """A call of a replayed trial: what it was given of the recording, or that the recording does not know it."""

    tool: str
    """As the recording calls it; of an unknown call, as the agent does."""
    n: int
    """Which of the tool's responses it was given, from 1; 0: the recording does not know it."""
    plane: str
    """Where it was met."""
    status: int = 200
    call: str = ""
    """The call in a few words."""
    passed: bool = False
    """Unknown, and let through: the session is replayed `live`."""

    @property
    def known(self) -> bool:
        """It was answered by the recording."""
        return self.n > 0

    @property
    def failed(self) -> bool:
        """It was given a recorded failure."""
        return self.known and (self.status == 0 or self.status >= 400)

    @property
    def refused(self) -> bool:
        """The recording does not know it, and it got a connection error."""
        return not self.known and not self.passed


class SayRule(Struct, frozen=True):
    """What a scripted user says whenever an answer has something in it."""

    when: str
    """A regular expression that is looked for in the answer."""
    say: str


class UserScript(Struct, frozen=True, omit_defaults=True):
    """What a scripted user says."""

    texts: tuple[str, ...] = ()
    """Said one after the other, each once, where no rule speaks."""
    rules: tuple[SayRule, ...] = ()
    """The first that fits an answer speaks, as often as it fits."""


class SimulatedUser(Struct, frozen=True, omit_defaults=True):
    """Who carries a conversation on after its first turn."""

    script: str = ""
    """A scripted user's file next to the spec."""
    model: str = ""
    """A model that plays the user."""
    goal: str = ""
    """What a model wants of the agent."""
    stop: str = ""
    """A regular expression; an answer that matches ends the conversation."""
    max_turns: int = 5
    """User turns, the first included."""
    lines: UserScript | None = None
    """What a scripted user says, where the spec itself has it."""


class Task(Struct, frozen=True, gc=False):
    """What the agent is asked, one turn or several."""

    turns: tuple[str, ...]
    kind: Literal["golden", "task", "probe", "mutation", "replay"] = "golden"
    variation: Variation | UnsetType = UNSET
    """Of a mutation: how it was made."""
    context: tuple[DialogueMessage, ...] | UnsetType = UNSET
    """The earlier turns."""
    recording: Recording | UnsetType = UNSET
    """Of a replay: the session it comes from."""
    user: SimulatedUser | UnsetType = UNSET
    """Who asks further; unset: the turns are all there is."""

    @property
    def prompt(self) -> str:
        return self.turns[0] if len(self.turns) == 1 else "\n".join(self.turns)

    @property
    def most_turns(self) -> int:
        """How often the agent is asked at most."""
        return len(self.turns) if self.user is UNSET else max(len(self.turns), self.user.max_turns)

    @property
    def plain(self) -> "Task":
        """Of a mutation the golden prompt that it was made from, as it is; else the task itself."""
        if self.variation is UNSET:
            return self
        source, further = self.variation.source, self.turns[1:]
        behind = "".join(f"\n{turn}" for turn in further)
        whole = bool(further) and source.endswith(behind)
        return Task((source.removesuffix(behind), *further) if whole else (source,), user=self.user)

    @property
    def changes_request(self) -> bool:
        """It is a mutation of the request itself."""
        return self.variation is not UNSET and self.variation.request is not None

    def asked_in(self, scenario: str) -> bool:
        """Whether trials in the scenario ask it: a session is asked in the weather that it was recorded in."""
        return self.recording is UNSET or self.recording.scenario in ("", scenario)

    @property
    def control(self) -> "Task":
        """What is asked in calm to compare with: of a mutation of the request itself the plain request."""
        return self.plain if self.changes_request else self

    @property
    def digest(self) -> str:
        """Of what is asked alone: the same prompt meets the same luck whoever asks it."""
        return digest(canonical(self.turns))

    @property
    def attack(self) -> bool:
        """It wants something of the agent that it must not do."""
        return self.variation is not UNSET and self.variation.attack
