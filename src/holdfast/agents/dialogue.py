"""What an agent is given turn after turn: the question alone, or the list of all messages so far."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import UNSET, UnsetType

from holdfast.model.observation import Turn
from holdfast.model.task import DialogueMessage

GivenMessage: TypeAlias = dict[str, str]
"""A message as agents know it: its `role` and its `content`."""

BEFORE = "the turns before were put before the first prompt as text: this agent takes no list of messages"
LEFT_OUT = "the system message of the conversation was left out: this agent takes text, and has its own"

_SPEAKERS = {"user": "User", "assistant": "Assistant", "tool": "Tool"}


class Dialogue:
    """One conversation with an agent that takes messages, or that has a context."""

    def __init__(self, before: tuple[DialogueMessage, ...] | UnsetType, *, messages: bool, once: bool = False) -> None:
        """`before`: the turns before the first; `messages`: the agent takes a list; `once`: it keeps what it got."""
        self._once = once
        self._before = () if before is UNSET else before
        self._messages = messages
        self._said: list[GivenMessage] = [{"role": one.role, "content": one.content} for one in self._before]
        self._begun = False

    @property
    def note(self) -> str:
        """What the reader should know of how the context was given; empty if nothing."""
        if self._messages or not self._before:
            return ""
        return "; ".join([BEFORE] * bool(self._spoken) + [LEFT_OUT] * (len(self._spoken) < len(self._before)))

    @property
    def _spoken(self) -> list[DialogueMessage]:
        """What was said before. A system message is not something that the user says: it belongs to the agent."""
        return [one for one in self._before if one.role != "system"]

    def messages(self, asked: str) -> list[GivenMessage]:
        """All messages up to this question; a new list of new maps, since the agent may change it."""
        return [*map(dict, self._said), {"role": "user", "content": asked}]

    def text(self, asked: str) -> str:
        """The question, after the turns before where it is the first."""
        if self._begun or not self._spoken:
            return asked
        told = [f"{_SPEAKERS[one.role]}: {one.content}" for one in self._spoken]
        return "\n".join(["The conversation so far:", *told, "", f"{_SPEAKERS['user']}: {asked}"])

    def given(self, asked: str) -> str | list[GivenMessage]:
        """What the agent gets for this question."""
        return self.messages(asked) if self._messages else self.text(asked)

    def heard(self, turn: Turn) -> None:
        """The turn has ended: what was asked and answered is part of the conversation."""
        self._begun = True
        if self._once:
            self._said = []
            return
        self._said += [{"role": "user", "content": turn.asked}, {"role": "assistant", "content": turn.text or ""}]


def dialogue_of(
    before: tuple[DialogueMessage, ...] | UnsetType, *, messages: bool, once: bool = False
) -> Dialogue | None:
    """The dialogue, where the agent gets more than each question; most get just that."""
    return Dialogue(before, messages=messages, once=once) if messages or before is not UNSET else None
