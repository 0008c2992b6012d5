"""A trace event: one call of the agent on any plane."""

from typing import Literal

from msgspec import Struct

EventType = Literal["llm_call", "tool_call", "mcp_call", "http_call"]

TEXT_KEPT = 4_000
"""Characters of an input or output that an event stores: enough to see what happened."""
EVENTS_KEPT = 2_000
"""Events stored per trial: an agent that never stops calling does not fill the disk."""


READ_METHODS = ("GET", "HEAD", "OPTIONS", "TRACE", "CONNECT")
"""HTTP methods that change nothing."""
REFUSED = "refused"
"""The error of a call that egress rules blocked."""


class Cost(Struct, frozen=True, omit_defaults=True, gc=False):
    """The usage of a model call."""

    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    estimated_usd: float | None = None
    """None if the model's price is unknown."""
    billed: bool = True
    """Whether a provider was called. If a script or a recording answered, the money is what it would have cost."""
    cached_input_tokens: int = 0
    """Input tokens read from the provider's cache."""


class TraceEvent(Struct, frozen=True, omit_defaults=True, gc=False):
    """One call, written when it ended."""

    ts: float
    """When it began, in seconds since the start of the trial."""
    event_type: EventType
    tool: str = ""
    """The tool; for a model call the model's name; for an HTTP call `METHOD URL`."""
    plane: str = ""
    """The plane: tool, llm, tool_result, http, mcp."""
    n: int = 0
    """The number of the call at the target, from 1; retries count."""
    retry: int = 0
    """The number of the client library's retry; 0 is the agent's own call."""
    phase: Literal["done", "declared", "unfinished"] = "done"
    """`declared`: the call may have happened. A model requested it and Holdfast did not see it made, or its result
    appeared without a known request.
    """
    duration_ms: float = 0.0
    status: int | None = None
    error_type: str = ""
    """Empty if it succeeded for the agent."""
    span_id: str = ""
    parent_span_id: str = ""
    input: str = ""
    """The arguments as JSON; for a model call the last message; for an HTTP call the body. Shortened."""
    output: str = ""
    """What the agent received, shortened."""
    write: bool = False
    """Whether the call changes something: any tool call, or an HTTP method that is not a reading one."""
    digest: str = ""
    """A digest of what identifies a call: tool and arguments, or method, URL and body. Empty if `tool` and `input` are
    complete.
    """
    idempotency: str = ""
    """The value of its `Idempotency-Key` header, or of such a field in its arguments or body."""
    cost: Cost | None = None
    fault: str = ""
    """The modes of the faults that it met, joined by `+`."""
    canaries: tuple[str, ...] = ()
    """Canaries, in lower case, in what was sent: `tool` and `input` are shortened and may not contain them."""
    unread: bool = False
    """Part of what was sent cannot be read: an unknown compression, not text, or an object without visible fields."""
    waited_ms: float = 0.0
    """For a model call that the agent gave up: how long it had waited for upstream."""
    unsent: bool = False
    """A fault answered it or held it back, so it never reached the other side."""
    times: int = 1
    """How often it happened: a call that egress rules block is recorded once, with a count."""
    offers_tools: bool = False
    """A model call that offers tools to the model, or may do so: not every request can be read."""
    raised: str = ""
    """`module:Class` of the exception that the agent's own function raised."""
    reply: str = ""
    """The tool's result, in the format of `planes/recorded_value.py`, if `output` is incomplete."""
    in_process: bool = False
    """A model function of the agent: its request may also be recorded on the wire."""
    script: str = ""
    """For a scripted model's reply: the script's file and the line of its rule, such as `model.yaml:7`."""
    to_service: bool = False
    """A request to a service of the trial's own world."""

    @property
    def identity(self) -> str:
        """Equal for two calls that ask for the same thing."""
        return self.digest or f"{self.tool}:{self.input}"

    @property
    def tokens(self) -> int:
        """The tokens that a model used; a script uses none, whatever its reply says."""
        return 0 if self.cost is None or self.script else self.cost.input_tokens + self.cost.output_tokens

    @property
    def failed(self) -> bool:
        """Whether it failed for the agent."""
        return bool(self.error_type) or (self.status is not None and self.status >= 400)
