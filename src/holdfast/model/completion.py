"""A model's reply in a form that does not depend on the provider: a sequence of deltas.

A codec reads a provider's reply, plain or streamed, into a Completion and writes it back in the same format. Faults
change the deltas and know no provider.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]


class Text(Struct, frozen=True, tag="text"):
    """Some of the answer's text: a chunk of a stream, or all of it."""

    text: str


class ToolCall(Struct, frozen=True, tag="tool_call"):
    """One complete tool call that the model asks for."""

    id: str
    name: str
    arguments: str
    """The text that the model wrote: JSON, if it is valid."""


class Finish(Struct, frozen=True, tag="finish"):
    """The reason why the model stopped."""

    reason: FinishReason


class Usage(Struct, frozen=True, tag="usage"):
    """The usage that the provider bills."""

    input_tokens: int
    """All input tokens, cached or not."""
    output_tokens: int
    cached_input: int = 0
    """Input tokens read from the provider's cache."""
    cache_written: int = 0
    """Input tokens written to that cache, if they are billed separately."""


class ErrorChunk(Struct, frozen=True, tag="trouble"):
    """An error event inside a reply with status 200. It ends the reply."""

    kind: str
    """The same values as `Failed.kind`."""
    message: str


class EmptyChunk(Struct, frozen=True, tag="hollow"):
    """An empty chunk, such as `choices: []`."""


class Pause(Struct, frozen=True, tag="pause"):
    """A pause in the stream."""

    ms: float


class Cut(Struct, frozen=True, tag="cut"):
    """The connection is lost here: no terminator, no further byte."""


Delta: TypeAlias = Text | ToolCall | Finish | Usage | ErrorChunk | EmptyChunk | Pause | Cut


_PLAIN = (Text, Usage, EmptyChunk, Pause)
_BROKEN = (ErrorChunk, Cut)
_ENDED = ("stop", "tool_calls")


class Completion(Struct, frozen=True, omit_defaults=True):
    """One reply of a model."""

    deltas: tuple[Delta, ...] = ()
    model: str = ""
    """The name of the model in the reply."""
    lacks: Literal["", "choices", "message"] = ""
    """What is missing from the reply: its list of choices, or the message in it (null)."""
    odd: bool = False
    """Sent in pieces split inside a character or a frame, with comments and repeats in between."""
    other_calls: tuple[ToolCall, ...] = ()
    """Calls that faults cannot change but the agent may still make: those of further choices, and of kinds without a
    delta.
    """

    @property
    def text(self) -> str:
        """All its text."""
        return "".join([delta.text for delta in self.deltas if isinstance(delta, Text)])

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple([delta for delta in self.deltas if isinstance(delta, ToolCall)])

    @property
    def finish(self) -> FinishReason | None:
        """Why the model stopped; None if the reply does not say."""
        for delta in self.deltas:
            if isinstance(delta, Finish):
                return delta.reason
        return None

    @property
    def usage(self) -> Usage | None:
        for delta in self.deltas:
            if isinstance(delta, Usage):
                return delta
        return None

    @property
    def display_text(self) -> str:
        """The reply for people: its text, its tool calls, and an unusual ending."""
        if self._is_plain:
            return self.text
        calls, odd_ends = [], []
        for delta in self.deltas:
            if isinstance(delta, ToolCall):
                calls.append(f"{delta.name}({delta.arguments})")
            elif isinstance(delta, _BROKEN):
                odd_ends.append(f"[{delta.message}]" if isinstance(delta, ErrorChunk) else "[cut off]")
        finish = self.finish
        end = [f"[{finish}]"] if finish in ("length", "content_filter") else []
        lacks = [f"[no {self.lacks}]"] if self.lacks else []
        return "\n".join([part for part in (self.text, *calls, *lacks, *odd_ends, *end) if part])

    @property
    def _is_plain(self) -> bool:
        """Whether it is only text with a normal ending, like nearly every reply."""
        if self.lacks:
            return False
        for delta in self.deltas:
            if not isinstance(delta, _PLAIN) and not (isinstance(delta, Finish) and delta.reason in _ENDED):
                return False
        return True

    def with_text(self, text: str) -> Completion:
        """Return the same reply with another text, at the place of the first text or before everything else."""
        places = [at for at, delta in enumerate(self.deltas) if isinstance(delta, Text)]
        first = places[0] if places else 0
        others = [delta for at, delta in enumerate(self.deltas) if at not in places or at < first]
        new = [Text(text)] if text else []
        return replace(self, deltas=(*others[:first], *new, *others[first:]))

    def with_finish(self, reason: FinishReason) -> Completion:
        """Return the same reply with another finish reason."""
        others = [delta for delta in self.deltas if not isinstance(delta, Finish)]
        at = next((i for i, delta in enumerate(self.deltas) if isinstance(delta, Finish)), len(others))
        return replace(self, deltas=(*others[:at], Finish(reason), *others[at:]))
