"""empty: the model's answer is empty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from msgspec import Meta
from msgspec.structs import replace

from holdfast.faults.llm_text import read_text, remove_calls, replace_text
from holdfast.faults.values import is_rows, list_fields, replace_items, replace_part
from holdfast.model.completion import Completion
from holdfast.protocols.fault import Call, FaultContext, Forward, Reply


@dataclass(frozen=True)
class Empty:
    """Empties the model's reply: no text and tool calls, no choices, or no message.

    A reply that has neither choices nor a message has no text then.
    """

    shape: Annotated[
        Literal["content", "choices", "message"],
        Meta(
            description="What to empty: text and tool calls (`content`), the list of `choices`, or the `message`: null."
        ),
    ] = "content"

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        value = (await forward(call)).value
        if isinstance(value, Completion) and self.shape != "content":
            return Reply(replace(value, lacks=self.shape))
        blank = remove_calls(value if read_text(value) is None else replace_text(value, ""))
        return Reply(blank if self.shape == "content" else _remove_part(value, self.shape, blank))


def _remove_part(value: Any, shape: str, blank: Any) -> Any:
    """Return the reply without its choices or message, or `blank` if it has none."""
    parts = dict(list_fields(value))
    choices = parts.get("choices")
    if not is_rows(choices) or not choices:
        return replace_part(value, ("message",), None) if shape == "message" and "message" in parts else blank
    if shape == "choices":
        return replace_part(value, ("choices",), replace_items(choices, []))
    return replace_part(value, ("choices", 0, "message"), None) if "message" in dict(list_fields(choices[0])) else blank
