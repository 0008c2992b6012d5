"""The input of an agent turn after turn: only the question, or the list of all messages so far."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import UNSET, UnsetType

from holdfast.model.observation import Turn
from holdfast.model.task import DialogueMessage

AgentMessage: TypeAlias = dict[str, str]
"""A message as agents expect it: its `role` and `content`."""

BEFORE = "the earlier turns were added to the first prompt as text, because this agent does not accept messages"
LEFT_OUT = "the system message of the conversation was left out: this agent takes text, and has its own"

_SPEAKERS = {"user": "User", "assistant": "Assistant", "tool": "Tool"}


class Dialogue:
    """One conversation with an agent that takes messages or that has a context."""

    def __init__(self, before: tuple[DialogueMessage, ...] | UnsetType, *, messages: bool, once: bool = False) -> None:
        """`before` are the earlier turns; `messages` means that the agent takes a list.

        `once` that it remembers them.
        """
        self._once = once
        self._before = () if before is UNSET else before
        self._messages = messages
        self._turns_so_far: list[AgentMessage] = [{"role": one.role, "content": one.content} for one in self._before]
        self._begun = False

    @property
    def note(self) -> str:
        """A note about how the context was passed; empty if there is none."""
        if self._messages or not self._before:
            return ""
        return "; ".join(
            [BEFORE] * bool(self._earlier_turns) + [LEFT_OUT] * (len(self._earlier_turns) < len(self._before))
        )

    @property
    def _earlier_turns(self) -> list[DialogueMessage]:
        """The earlier turns, without the system message, which belongs to the agent and not to the user."""
        return [one for one in self._before if one.role != "system"]

    def build_messages(self, question: str) -> list[AgentMessage]:
        """Return all messages up to this question, in a new list that the agent may change."""
        return [*map(dict, self._turns_so_far), {"role": "user", "content": question}]

    def build_text(self, question: str) -> str:
        """Return the question as text; before the first one it adds the earlier turns."""
        if self._begun or not self._earlier_turns:
            return question
        lines = [f"{_SPEAKERS[one.role]}: {one.content}" for one in self._earlier_turns]
        return "\n".join(["The conversation so far:", *lines, "", f"{_SPEAKERS['user']}: {question}"])

    def build_input(self, question: str) -> str | list[AgentMessage]:
        """Return the agent's input for this question."""
        return self.build_messages(question) if self._messages else self.build_text(question)

    def add_turn(self, turn: Turn) -> None:
        """Add a finished turn to the conversation."""
        self._begun = True
        if self._once:
            self._turns_so_far = []
            return
        question: AgentMessage = {"role": "user", "content": turn.asked}
        self._turns_so_far += [question, {"role": "assistant", "content": turn.text or ""}]


def make_dialogue(
    before: tuple[DialogueMessage, ...] | UnsetType, *, messages: bool, once: bool = False
) -> Dialogue | None:
    """Return the dialogue; None for an agent that gets only the questions, as most do."""
    return Dialogue(before, messages=messages, once=once) if messages or before is not UNSET else None
