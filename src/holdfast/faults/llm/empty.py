"""empty: the model's answer is empty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from msgspec import Meta
from msgspec.structs import replace

from holdfast.faults.llm_text import text_of, with_text, without_calls
from holdfast.faults.values import fields, is_rows, put, with_items
from holdfast.model.completion import Completion
from holdfast.protocols.fault import Call, FaultContext, Forward, Reply


@dataclass(frozen=True)
class Empty:
    """Empties the model's reply: no text and tool calls, no choices, or no message.

    A reply that has neither choices nor a message has no text then.
    """

    shape: Annotated[
        Literal["content", "choices", "message"],
        Meta(description="What to empty: text and tool calls, the list of choices, or the message (null)."),
    ] = "content"

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        value = (await forward(call)).value
        if isinstance(value, Completion) and self.shape != "content":
            return Reply(replace(value, lacks=self.shape))
        blank = without_calls(value if text_of(value) is None else with_text(value, ""))
        return Reply(blank if self.shape == "content" else _remove(value, self.shape, blank))


def _remove(value: Any, shape: str, blank: Any) -> Any:
    """The reply without its choices or message, or `blank` if it has none."""
    parts = dict(fields(value))
    choices = parts.get("choices")
    if not is_rows(choices) or not choices:
        return put(value, ("message",), None) if shape == "message" and "message" in parts else blank
    if shape == "choices":
        return put(value, ("choices",), with_items(choices, []))
    return put(value, ("choices", 0, "message"), None) if "message" in dict(fields(choices[0])) else blank
