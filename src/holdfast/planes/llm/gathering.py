"""A streamed reply being gathered: what every format's reader fills, bounded whatever the other side sends."""

from __future__ import annotations

from typing import Literal

from holdfast.model.completion import Completion, Delta, Finish, FinishReason, Hollow, Text, ToolCall, Trouble, Usage

CHARACTERS_KEPT = 16_000_000
"""Of one reply, text and arguments together: far beyond what a model writes."""
DELTAS_KEPT = 200_000


class _Call:
    """A call whose arguments are still coming."""

    __slots__ = ("arguments", "id", "name", "otherwise")

    def __init__(self, id: str, name: str) -> None:
        self.id = id
        self.name = name
        self.arguments: list[str] = []
        self.otherwise = ""

    def whole(self) -> ToolCall:
        return ToolCall(self.id, self.name, "".join(self.arguments) or self.otherwise)


class Gathering:
    """What has come so far."""

    def __init__(self) -> None:
        self.model = ""
        self.lacks: Literal["", "choices", "message"] = ""
        self._deltas: list[Delta | _Call] = []
        self._calls: dict[int | str, _Call] = {}
        self._finish: FinishReason | None = None
        self._usage: Usage | None = None
        self._trouble: Trouble | None = None
        self._room = CHARACTERS_KEPT

    def text(self, text: str) -> None:
        if text and (kept := self._fitting(text)):
            self._add(Text(kept))

    def call(self, key: int | str, id: str, name: str, arguments: str = "", *, otherwise: str = "") -> None:
        """A piece of a call; `otherwise` are its arguments if no piece of them comes."""
        call = self._calls.get(key)
        if call is None or (id and call.id and id != call.id):  # some servers give every call the same index
            call = self._calls[key] = _Call(id, name)
            self._add(call)
        call.id = call.id or id
        call.name = call.name or name
        call.otherwise = call.otherwise or self._fitting(otherwise)
        if arguments and (kept := self._fitting(arguments)):
            call.arguments.append(kept)

    def more(self, key: int | str, arguments: str) -> None:
        """More arguments of a call that has begun."""
        if key in self._calls:
            self.call(key, "", "", arguments)

    def finish(self, reason: FinishReason) -> None:
        self._finish = reason

    def usage(self, input_tokens: int, output_tokens: int) -> None:
        self._usage = Usage(input_tokens, output_tokens)

    def trouble(self, trouble: Trouble) -> None:
        self._trouble = self._trouble or trouble

    def hollow(self) -> None:
        self._add(Hollow())

    @property
    def empty(self) -> bool:
        """No text and no call has come."""
        return not any(isinstance(delta, (Text, _Call)) for delta in self._deltas)

    @property
    def count(self) -> int:
        """How many parts have come."""
        return len(self._deltas)

    @property
    def calls(self) -> bool:
        """A call has come."""
        return bool(self._calls)

    def completion(self) -> Completion:
        deltas: list[Delta] = [delta.whole() if isinstance(delta, _Call) else delta for delta in self._deltas]
        finish = None if self._finish is None else Finish(self._finish)
        deltas += [delta for delta in (finish, self._usage, self._trouble) if delta is not None]
        return Completion(tuple(deltas), self.model, self.lacks)

    def _add(self, delta: Delta | _Call) -> None:
        if len(self._deltas) < DELTAS_KEPT:
            self._deltas.append(delta)

    def _fitting(self, text: str) -> str:
        kept = text[: self._room] if len(text) > self._room else text
        self._room -= len(kept)
        return kept
