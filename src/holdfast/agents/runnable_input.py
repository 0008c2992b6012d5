"""The prompt as a LangChain runnable wants it: as messages, under a key, or as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.agents.dialogue import GivenMessage
from holdfast.agents.runnable_places import Takes
from holdfast.agents.runnable_schema import WantedInput, wanted
from holdfast.errors import UserError


@dataclass(frozen=True)
class InputForm:
    """Where in an input the prompt stands, and how."""

    key: str = ""
    """Of the mapping; empty: the prompt is the input."""
    messages: bool = False
    dicts: bool = False

    def __call__(self, given: str | list[GivenMessage]) -> Any:
        """The input with this prompt, or these messages, in it."""
        if not self.key:
            return given
        if not self.messages:
            return {self.key: given}
        listed = [{"role": "user", "content": given}] if isinstance(given, str) else given
        return {self.key: [self._message(one) for one in listed]}

    def _message(self, one: GivenMessage) -> GivenMessage | tuple[str, str]:
        role, content = one["role"], one["content"]
        if role == "tool":  # a tool's message needs the id of a call, and there is none
            role, content = "assistant", f"Tool result: {content}"
        return {"role": role, "content": content} if self.dicts else (role, content)


TEXT, INPUT, MESSAGES = InputForm(), InputForm("input"), InputForm("messages", messages=True)


def input_form(endpoint: str, target: Any, by_hand: str | None) -> InputForm:
    """How this runnable gets a prompt; UserError if that cannot be told, or cannot be as `agent.input` says."""
    asks = wanted(target)
    if by_hand is not None:
        return _by_hand(endpoint, asks, by_hand)
    if asks is None:  # an object of the user's own
        return INPUT
    found = _by_schema(asks)
    if found is None:
        raise _unplaced(endpoint, f"asks for {asks.told}, and that does not say where the prompt belongs")
    missing = sorted(asks.needed - {found.key}) if asks.checked else []
    if missing:
        raise _unplaced(endpoint, f"asks for {asks.told}: nothing is known to give for {', '.join(missing)}")
    return found


def _by_schema(asks: WantedInput) -> InputForm | None:
    """`messages`, `input`, the one key there is or the one that is needed; text if that will do."""
    if not asks.keys:
        return TEXT if asks.is_text else None
    if asks.keys.get("messages", Takes()).messages:
        return _at("messages", asks, messages=True)
    if asks.keys.get("input", Takes()).text:
        return INPUT
    only = [*(asks.needed or asks.keys)]
    takes = asks.keys[only[0]]
    if len(only) > 1 or not (takes.text or takes.messages):
        return None
    return _at(only[0], asks, messages=not takes.text)


def _by_hand(endpoint: str, asks: WantedInput | None, said: str) -> InputForm:
    if asks is not None and asks.is_graph and asks.keys and said not in asks.keys:
        # A graph drops a key that it does not know, and answers all the same: the model would never be asked.
        raise UserError(
            f"agent.input is {said}, but the input of agent.endpoint {endpoint!r} is {asks.told}",
            hint=f"set agent.input to the key for the prompt: {', '.join(asks.keys)}",
            key="agent.input",
        )
    if said == "text":
        return TEXT
    takes = asks.keys.get(said, Takes(text=True)) if asks is not None else Takes(text=True)
    return _at(said, asks, messages=said == "messages" or not takes.text)


def _at(key: str, asks: WantedInput | None, *, messages: bool) -> InputForm:
    takes = asks.keys.get(key, Takes()) if asks is not None else Takes()
    return InputForm(key, messages, takes.dicts)


def _unplaced(endpoint: str, why: str) -> UserError:
    return UserError(
        f"the prompt cannot be placed: the input schema of agent.endpoint {endpoint!r} {why}",
        hint="set type: langchain and agent.input to messages, input, text, or the key for the prompt; "
        "or name a function that takes the prompt and invokes it",
        key="agent.input",
    )
