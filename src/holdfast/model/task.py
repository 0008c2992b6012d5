"""The Task: what the agent is asked, and what mutations, replays and conversations add to a plain prompt.

Additions are UNSET in a plain task, so they appear in no record and in no trial id.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.model.codec import digest, encode_canonical


class DialogueMessage(Struct, frozen=True):
    """One message of a conversation."""

    role: Annotated[Literal["user", "assistant", "system", "tool"], Meta(description="Who said it.")]
    content: Annotated[str, Meta(description="What was said.")]


class RequestChange(Struct, frozen=True, omit_defaults=True):
    """A mutation of the request itself. A field left out changes nothing.

    It is a recipe: large headers and bodies are generated when the request is sent.
    """

    kind: str
    """The mutation's type, such as `http_header_injection`."""
    variant: str = ""
    """The number of the type's variant."""
    repeat: int = 0
    """How often the same prompt was already combined with the variant."""
    method: str = ""
    """Another method; PATCH if the agent already uses that method."""
    absolute: bool = False
    """The request line contains the full URL."""
    query: tuple[str, ...] = ()
    """Raw pieces of a query, after the agent's own; `{parameter}` is the name of the prompt's parameter."""
    version: str = "1.1"
    headers: tuple[tuple[str, str], ...] = ()
    """Replace headers of the same name."""
    added: tuple[tuple[str, str], ...] = ()
    """Added to the other headers without escaping: a line break in a value is sent."""
    without: tuple[str, ...] = ()
    """Headers to leave out, in lower case."""
    header_count: int = 0
    """The number of meaningless headers to add."""
    header_size: int = 0
    """The size in bytes of one large header."""
    line_end: str = "\r\n"
    before: str = ""
    """Sent before the request line."""
    after: str = ""
    """Sent after the body."""
    body: str = ""
    """How to generate the body: a name in `agents/http/changed_request.py`; `none` leaves it out."""
    size: int = 0
    """The size of the generated body: bytes, levels or items, depending on `body`."""
    framing: Literal["length", "chunked", "zeros", "twice", "both"] = "length"
    """How the body's length is declared: once, chunked, with leading zeros, twice, or by length and chunks together."""
    trailer: str = ""
    """A field after the last chunk."""
    slow: Literal["", "head", "body", "reply", "before_body", "continue"] = ""
    """What is sent or read slowly; `before_body`: one pause; `continue`: until the server asks for the body."""
    slow_ms: int = 0
    """The sum of all pauses; at most a quarter of the agent's time limit."""
    copies: int = 1
    """The number of concurrent requests."""
    abandoned: int = 0
    """How many of them are abandoned without waiting for a reply."""
    others: str = ""
    """The prompt of all copies but one; empty: the same."""
    malformed: bool = False
    """HTTP does not allow it: a server may close the connection without a reply."""
    unanswered: bool = False
    """It asks for no answer: a successful status without a body is enough."""


class Variation(Struct, frozen=True, omit_defaults=True):
    """The way in which a task was made from a golden prompt."""

    mutation: str
    """The type, such as `noise`."""
    source: str
    """The golden prompt it was made from."""
    name: str = ""
    """The template, entry or technique of the type."""
    attack: bool = False
    """Whether it asks for something the agent must not do; otherwise it keeps the intent."""
    weight: float = 1.0
    canaries: tuple[str, ...] = ()
    """Canaries that show that the agent obeyed the attack."""
    action: str = ""
    """The tool whose call shows the same; empty if there is none."""
    request: RequestChange | None = None


class RecordedResponse(Struct, frozen=True, omit_defaults=True):
    """A tool's answer in a recorded session, in the order of the calls."""

    tool: str
    """A name, a URL glob, or `server/tool` of an MCP server."""
    response: str = "null"
    """As JSON."""
    status: int = 200
    """0: the connection failed."""
    latency_ms: float = 0.0
    raises: str = ""
    """`module:Class` of the exception that a Python tool raised; empty: the status decides."""
    arguments: str = ""
    """The call's arguments as JSON: the response goes to the most similar call. Empty: any call."""
    python: bool = False
    """The response has values that JSON lacks, in the format of `planes/recorded_value.py`."""

    @property
    def failed(self) -> bool:
        return self.status == 0 or self.status >= 400


class RecordedFiring(Struct, frozen=True):
    """A call on which a fault with a probability fired."""

    fault: Annotated[int, Meta(description="Which fault of the scenario, from 1.", ge=1)]
    call: Annotated[int, Meta(description="Which of the calls that the fault matches, from 1.", ge=1)]


class Recording(Struct, frozen=True, omit_defaults=True):
    """The session of a replayed task: its name, and its tools' answers."""

    session: str
    responses: tuple[RecordedResponse, ...] = ()
    live: bool = False
    """Whether a call that the recording lacks is passed on; otherwise it gets a connection error."""
    name: str = ""
    """The session's name for people."""
    expected_failure: str = ""
    """What went wrong when it was recorded: it is shown and decides nothing."""
    scenario: str = ""
    """The scenario that it runs in; empty: any."""
    seed: int | None = None
    """For a trial that became a session: the seed of all its random draws."""
    fired: tuple[RecordedFiring, ...] | None = None
    """For such a trial: the calls on which its faults with a probability fired. None: the seed decides."""

    @property
    def has_failures(self) -> bool:
        """Whether a tool failed in it."""
        return any(one.failed for one in self.responses)


class RecordedUse(Struct, frozen=True, omit_defaults=True):
    """A call of a replayed trial, and the recorded response it received, if any."""

    tool: str
    """The recording's name for the tool; for an unknown call, the agent's."""
    n: int
    """The number of the tool's recorded response, from 1; 0: the recording does not have the call."""
    plane: str
    """The plane that intercepted it."""
    status: int = 200
    call: str = ""
    """The call in a few words."""
    passed: bool = False
    """Unknown, and passed on: the session is replayed `live`."""

    @property
    def is_known(self) -> bool:
        """Whether the recording answered it."""
        return self.n > 0

    @property
    def failed(self) -> bool:
        """Whether it received a recorded failure."""
        return self.is_known and (self.status == 0 or self.status >= 400)

    @property
    def refused(self) -> bool:
        """Whether it was unknown and got a connection error."""
        return not self.is_known and not self.passed


class SayRule(Struct, frozen=True):
    """A scripted user's reply to a matching answer."""

    when: Annotated[str, Meta(description="A regular expression that is looked for in the answer.", min_length=1)]
    say: Annotated[str, Meta(description="What the user then says.", min_length=1)]


class UserScript(Struct, frozen=True, omit_defaults=True):
    """The lines of a scripted user."""

    texts: tuple[str, ...] = ()
    """Said one after the other, each once, when no rule matches."""
    rules: tuple[SayRule, ...] = ()
    """The first rule that matches an answer replies, as often as it matches."""


class SimulatedUser(Struct, frozen=True, omit_defaults=True):
    """Continues a conversation after its first turn."""

    script: str = ""
    """A scripted user's file next to the spec."""
    model: str = ""
    """A model that plays the user."""
    goal: str = ""
    """What the model wants from the agent."""
    stop: str = ""
    """A regular expression; an answer that matches ends the conversation."""
    max_turns: int = 5
    """User turns, including the first."""
    lines: UserScript | None = None
    """A scripted user's lines, if the spec itself contains them."""


class Task(Struct, frozen=True, gc=False):
    """The agent's task, in one turn or several."""

    turns: tuple[str, ...]
    kind: Literal["golden", "task", "probe", "mutation", "replay"] = "golden"
    variation: Variation | UnsetType = UNSET
    """For a mutation: how it was made."""
    context: tuple[DialogueMessage, ...] | UnsetType = UNSET
    """The earlier turns."""
    recording: Recording | UnsetType = UNSET
    """For a replay: the session it comes from."""
    user: SimulatedUser | UnsetType = UNSET
    """Who asks further questions; unset: the turns are everything."""

    @property
    def prompt(self) -> str:
        return self.turns[0] if len(self.turns) == 1 else "\n".join(self.turns)

    @property
    def max_turns(self) -> int:
        """How often the agent is asked at most."""
        return len(self.turns) if self.user is UNSET else max(len(self.turns), self.user.max_turns)

    @property
    def plain(self) -> "Task":
        """The golden prompt behind a mutation; for other tasks the task itself."""
        if self.variation is UNSET:
            return self
        source, further = self.variation.source, self.turns[1:]
        suffix = "".join(f"\n{turn}" for turn in further)
        has_suffix = bool(further) and source.endswith(suffix)
        return Task((source.removesuffix(suffix), *further) if has_suffix else (source,), user=self.user)

    @property
    def changes_request(self) -> bool:
        """Whether it is a mutation of the request itself."""
        return self.variation is not UNSET and self.variation.request is not None

    def is_asked_in(self, scenario: str) -> bool:
        """Return whether trials in the scenario ask it: a session runs only in its own scenario."""
        return self.recording is UNSET or self.recording.scenario in ("", scenario)

    @property
    def control(self) -> "Task":
        """The calm task to compare with: for a mutation of the request, the plain request."""
        return self.plain if self.changes_request else self

    @property
    def digest(self) -> str:
        """Digest only the question: the same prompt gets the same random draws in every task."""
        return digest(encode_canonical(self.turns))

    @property
    def attack(self) -> bool:
        """Whether it asks for something the agent must not do."""
        return self.variation is not UNSET and self.variation.attack
