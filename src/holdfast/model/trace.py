"""A trace event: one call of the agent's on any plane, as it was seen there."""

from typing import Literal

from msgspec import Struct

EventType = Literal["llm_call", "tool_call", "mcp_call", "http_call"]

TEXT_KEPT = 4_000
"""Characters of an input or output that an event keeps: enough to see what happened."""
EVENTS_KEPT = 2_000
"""Events of one trial that are kept: an agent that never stops calling does not fill the disk."""


REFUSED = "refused"
"""The error of a call that egress rules did not let out."""


class Cost(Struct, frozen=True, omit_defaults=True, gc=False):
    """What a model call used."""

    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    estimated_usd: float | None = None
    """None where the model's price is not known."""
    billed: bool = True
    """A provider was asked. Else a script or a recording answered: the money is what it would have cost."""
    cached_input_tokens: int = 0
    """Of the input: read from the provider's cache."""


class TraceEvent(Struct, frozen=True, omit_defaults=True, gc=False):
    """One call, written when it ended."""

    ts: float
    """When it began, in seconds since the trial began."""
    event_type: EventType
    tool: str = ""
    """The tool; of a model call the model's name; of an HTTP call `METHOD URL`."""
    plane: str = ""
    """Where it was seen: tool, llm, tool_result, http, mcp."""
    n: int = 0
    """Which call at the target it was, from 1: attempts count."""
    retry: int = 0
    """Which repetition of the same request by a client library it is; 0 is the agent's own call."""
    phase: Literal["done", "declared", "unfinished"] = "done"
    """`declared`: a call that may have been made: a model asked for it and its making was not seen, or its result was
    seen, and no reply that was read asked for it."""
    duration_ms: float = 0.0
    status: int | None = None
    error_type: str = ""
    """Empty if it went well, as the agent saw it."""
    span_id: str = ""
    parent_span_id: str = ""
    input: str = ""
    """Arguments as JSON; of a model call the last message; of an HTTP call the body. Shortened."""
    output: str = ""
    """What the agent got, shortened."""
    write: bool = False
    """The call changes something: an HTTP method other than GET, HEAD, OPTIONS; any tool call."""
    digest: str = ""
    """Of all that makes two calls the same: tool and arguments, or method, URL and body. Empty where `tool` and
    `input` say all of it."""
    idempotency: str = ""
    """The value of its `Idempotency-Key` header, or of such a field of its arguments or body."""
    cost: Cost | None = None
    fault: str = ""
    """The modes of the faults that it met, joined by `+`."""
    canaries: tuple[str, ...] = ()
    """Canaries, in small letters, in what was sent: those that `tool` and `input`, being shortened, may not show."""
    unread: bool = False
    """Some of what was sent cannot be read: packed in an unknown way, not text, or an object that shows no fields."""
    waited_ms: float = 0.0
    """Of a model call that the agent left: how long nothing had come from upstream by then."""
    unsent: bool = False
    """A fault answered it, or held it back until the agent left: it never reached the other side."""
    times: int = 1
    """How often it came: a call that egress refused is told once, whatever the agent does."""
    offers_tools: bool = False
    """A model call that offers the model tools, or may: not every request can be read."""
    raised: str = ""
    """`module:Class` of what a function of the agent's own raised by itself."""
    reply: str = ""
    """What the tool gave, as `planes/recorded_value.py` writes it, where `output` does not have all of it."""
    in_process: bool = False
    """A model function of the agent's own: the request that it makes may be seen on the wire, too."""
    script: str = ""
    """Of a scripted model's reply: the script's file and the line of its rule, as `model.yaml:7`."""
    to_service: bool = False
    """A request to a service of the trial's own world."""

    @property
    def identity(self) -> str:
        """The same for two calls that ask for the same."""
        return self.digest or f"{self.tool}:{self.input}"

    @property
    def tokens(self) -> int:
        """What a model used; a script uses none, whatever its reply says."""
        return 0 if self.cost is None or self.script else self.cost.input_tokens + self.cost.output_tokens

    @property
    def failed(self) -> bool:
        """It went wrong, as the agent saw it."""
        return bool(self.error_type) or (self.status is not None and self.status >= 400)
