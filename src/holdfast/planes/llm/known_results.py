"""Finds tool results in conversations: their position, their call, and the text that the model must read instead.

An agent sends the complete conversation with every request, and may shorten it, reorder it or change ids. A fault must
act once on each result, and the model must then read the same changed text in every later request. So Holdfast
recognises a result by several marks, the most reliable first: its position in the conversation, its key, its id, and
its call and text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from holdfast.model.completion import ToolCall
from holdfast.planes.describe import digest_arguments
from holdfast.planes.llm.codecs.request import ChatMessage, ToolResult

MARKS_KEPT = 200_000
"""More than any conversation needs; the oldest are dropped."""

_BY_PLACE = 2
"""The first marks of a result, which include its position: these are certain."""
_BY_KEY = 3
"""The next mark includes its key, and is also enough for a result that the model has not read yet."""
_BY_ID = 5
"""The next marks include its id, if it has one."""


ChangedCall: TypeAlias = tuple[str, int]
"""A call whose result a fault changed: its tool, and its number."""


class KnownResult(Struct, frozen=True):
    """A result as the model must read it; None: as the tool returned it."""

    text: str | None = None
    failed: bool = False
    is_requested: bool = True
    """Whether it is a call of this trial."""
    text_marks: tuple[bytes, ...] = ()
    """Texts of the conversation that contained the call, in the form of `ResultPosition.text_marks`."""
    call: ChangedCall | None = None
    """The call, if a fault changed its result."""


UNREQUESTED = KnownResult(is_requested=False)
"""A result that no model requested."""


class KnownResults:
    """The decisions for the results of one trial."""

    def __init__(self) -> None:
        self._by_mark: dict[bytes, KnownResult] = {}

    def keep(self, position: ResultPosition, decision: KnownResult) -> None:
        """Remember a decision. A result without a call is recognised only by its position."""
        if decision.is_requested:
            self._by_mark |= dict.fromkeys(_compute_marks(position), decision)
        else:
            for mark in _compute_marks(position)[:_BY_PLACE]:
                self._by_mark.setdefault(mark, decision)
        while len(self._by_mark) > MARKS_KEPT:
            del self._by_mark[next(iter(self._by_mark))]

    def recall(self, positions: Sequence[ResultPosition], *, is_own: bool = False) -> list[KnownResult | None]:
        """Return the decisions for the results of a request, even if the agent has shortened the conversation.

        `is_own`: the request is known to continue a conversation of this trial.
        """
        marks = [_compute_marks(position) for position in positions]
        known: list[KnownResult | None] = [None] * len(positions)
        used: set[int] = set()
        # Level by level, so that the surest marks of all results are used before any weaker mark: a weak mark of one
        # result must not take what belongs to another. Each call has one result, so nothing is given out twice.
        for level in range(max(map(len, marks), default=0)):
            for n, position in enumerate(positions):
                if known[n] is not None or (position.is_pending and level >= _BY_KEY) or level >= len(marks[n]):
                    continue
                decision = self._by_mark.get(marks[n][level])
                if decision is None or id(decision) in used or not _is_trusted(decision, position, level, is_own):
                    continue
                known[n] = decision
                if decision.is_requested:
                    used.add(id(decision))
        return known


def _is_trusted(decision: KnownResult, position: ResultPosition, level: int, is_own: bool) -> bool:
    """Return whether a mark is sufficient. A mark without position or id requires that the conversation is the call's
    own, or that the result waits for the model, which an example never does."""
    is_certain = level < (_BY_ID if position.id else _BY_KEY if position.last or is_own else _BY_PLACE)
    return is_certain or position.is_after(*decision.text_marks)


def _compute_marks(position: ResultPosition) -> tuple[bytes, ...]:
    """Return the marks of a result, most reliable first: position and text, position, key; id and text, id; text,
    call.
    """
    # The order is the order of trust, and `_BY_PLACE`, `_BY_KEY` and `_BY_ID` are positions in it: a result without an
    # id has fewer marks, but the first three levels always mean the same.
    result = position.result
    call = _hash_parts("call", result.name, result.arguments)
    text = _hash_parts("text", result.text)
    place = _hash_parts("place", result.key, call, position.before)
    by_id = (_hash_parts("id", position.id, call, text), _hash_parts("id", position.id, call)) if position.id else ()
    return (
        _hash_parts(place, text),
        place,
        _hash_parts("key", result.key, call),
        *by_id,
        _hash_parts(call, text),
        call,
    )


def _hash_parts(*parts: str | bytes) -> bytes:
    hasher = blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        hasher.update(b"%d:" % len(data))
        hasher.update(data)
    return hasher.digest()


_SIZE = 12
_NUMBER = re.compile(r"[#+]\d+$")


class ResultPosition(Struct, frozen=True):
    """A result in a conversation."""

    result: ToolResult
    before: bytes
    """Digest of everything before the model requested the call. It excludes results, because agents cut them."""
    is_pending: bool
    """Whether the model has not answered since."""
    last: bool
    """Whether neither the model nor the user has written anything since."""
    lacks_call: bool
    """Whether its call is missing from the conversation: a server keeps it, or the agent has dropped it."""
    is_duplicate: bool
    """Whether its call already has a result in the conversation."""
    position: int
    """Number of messages before it."""
    text_marks: Mapping[bytes, int]
    """By `mark_text` of each text sent to the model: the number of messages before its first occurrence."""

    @property
    def id(self) -> str:
        """The call's id on the wire, without the number that distinguishes repetitions; empty if it has none."""
        stem = _NUMBER.sub("", self.result.key)
        return "" if stem == self.result.name and stem != self.result.key else stem

    def is_after(self, *marks: bytes) -> bool:
        """Return whether one of these texts occurs before it."""
        return any(self.text_marks.get(mark, self.position) < self.position for mark in marks)


def locate_results(messages: Sequence[ChatMessage]) -> list[ResultPosition]:
    """Return every result of a conversation, in order."""
    if not any(message.results for message in messages):
        return []
    # One pass with a running digest: `before` is the digest at the model's last message, so a result's position is
    # described by what came before the model requested the call, not by what agents may later cut or reorder.
    hasher = blake2b(digest_size=_SIZE)
    before = hasher.digest()
    results: list[tuple[ToolResult, bytes, int]] = []
    last_answer = last_text = -1
    for position, message in enumerate(messages):
        if message.role == "assistant":
            before, last_answer = hasher.digest(), position
        last_text = last_text if message.role == "tool" else position
        results += [(result, before, position) for result in message.results]
        _update_digest(hasher, message)
    call_ids = {call.id for message in messages for call in message.tool_calls}
    keys = {result.key for result, _, _ in results}
    text_marks = _index_texts(messages)
    return [
        ResultPosition(
            r,
            before,
            position > last_answer,
            position > last_text,
            r.key not in call_ids,
            r.key.rpartition("+")[0] in keys,
            position,
            text_marks,
        )
        for r, before, position in results
    ]


def digest_conversation(messages: Iterable[ChatMessage]) -> bytes:
    """Return the digest of a complete conversation: the `before` of the calls that the model requests next."""
    hasher = blake2b(digest_size=_SIZE)
    for message in messages:
        _update_digest(hasher, message)
    return hasher.digest()


def mark_first_and_last(messages: Sequence[ChatMessage]) -> tuple[bytes, bytes]:
    """Return the first and the last text that the model was answering, in the form of `text_marks`."""
    texts = [m.text for m in messages if m.role == "user" and m.text]
    texts = texts or [m.text for m in messages if m.role == "system" and m.text]
    return (mark_text(texts[0]), mark_text(texts[-1])) if texts else (b"", b"")


def mark_text(text: str) -> bytes:
    """Return the mark of a text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_SIZE).digest()


def _index_texts(messages: Sequence[ChatMessage]) -> dict[bytes, int]:
    text_marks: dict[bytes, int] = {}
    for position, message in enumerate(messages):
        if message.text and message.role in ("user", "system"):
            text_marks.setdefault(mark_text(message.text), position)
    return text_marks


def _update_digest(hasher: blake2b, message: ChatMessage) -> None:
    if message.role == "tool":
        return
    hasher.update(f"\0{message.role}\0{message.text}".encode("utf-8", "surrogatepass"))
    for call in message.tool_calls:
        hasher.update(f"\1{call.id}\1{call.name}\1{call.arguments}".encode("utf-8", "surrogatepass"))


_SAME_ID, _SAME_ARGUMENTS, _SAME_NAME = range(3)


class OpenToolCall(Struct, frozen=True):
    """A call that the model requested and that has no result yet."""

    call: ToolCall
    ts: float
    before: bytes
    """Like `ResultPosition.before`."""
    first: bytes
    """The first and the last text that the model was answering, in the form of `ResultPosition.text_marks`."""
    last: bytes
    certain: bool = True
    """Whether it is certainly a call. If not, it is reported only if a result arrives."""

    def rate_fit(self, position: ResultPosition) -> tuple[int, bool, bool] | None:
        """Return how well a result matches the call, lower is better; None if it does not match."""
        is_at_call = self.before == position.before
        continues = is_at_call or position.is_after(self.last)
        if self.call.id and self.call.id in (position.id, position.result.key):
            rank = _SAME_ID if continues or self._may_be_moved(position) else None
        else:
            rank = self._rate_without_id(position, is_at_call, continues)
        return None if rank is None else (rank, not position.is_pending, not is_at_call)

    def _may_be_moved(self, position: ResultPosition) -> bool:
        """Return whether a result with its id may belong to it in a rewritten conversation: examples have ids, too."""
        return position.is_pending and (
            position.lacks_call or (position.result.name == self.call.name and self._has_same_arguments(position))
        )

    def _rate_without_id(self, position: ResultPosition, is_at_call: bool, continues: bool) -> int | None:
        """Return how well a result without the call's id matches the call. A client that invents ids keeps the
        arguments. If the result has none, one that waits for the model matches by its arguments in any
        conversation."""
        # Frameworks rename ids, and examples in a prompt look like calls. Without a common id a result is accepted only
        # if something else ties it to this conversation: the text that was answered, or that it waits for the model
        # now.
        ids_differ = bool(self.call.id and position.id)
        waits = position.last and not ids_differ
        if position.result.name != self.call.name or not (continues or waits):
            return None
        if self._has_same_arguments(position):
            return _SAME_ARGUMENTS if position.is_pending or is_at_call else None
        return _SAME_NAME if continues and position.is_pending and not ids_differ else None

    def _has_same_arguments(self, position: ResultPosition) -> bool:
        sent, requested = position.result.arguments, self.call.arguments
        if sent == requested:
            return True
        return digest_arguments(read_arguments(sent)) == digest_arguments(read_arguments(requested))


def match_results(
    positions: Sequence[ResultPosition],
    known: Sequence[KnownResult | None],
    calls: Iterable[OpenToolCall],
    *,
    is_retry: bool,
) -> dict[int, OpenToolCall]:
    """Return the call that each result answers, by the result's index: best matching pairs first.

    A known result answers another call only if it looks the same in another conversation. A result that answered no
    call still answers none, unless the model has now requested it at that position. In a retry
    every known result stays as it is.
    """
    # A greedy assignment: all fitting pairs, best fit first, each call and each result used once. The key ends with the
    # two indices, so that equal fits are assigned in the order of the conversation.
    opened, fits = list(calls), []
    for n, (position, before) in enumerate(zip(positions, known, strict=True)):
        if before is not None and (is_retry or not position.is_pending):
            continue
        for m, call in enumerate(opened):
            if (fit := call.rate_fit(position)) is not None and _is_allowed(fit, before):
                fits.append((before is not None, *fit, n, m))
    pairs: dict[int, OpenToolCall] = {}
    used: set[int] = set()
    for *_, n, m in sorted(fits):
        if n not in pairs and m not in used:
            pairs[n] = opened[m]
            used.add(m)
    return pairs


def _is_allowed(fit: tuple[int, bool, bool], before: KnownResult | None) -> bool:
    rank, _, is_moved = fit
    return before is None or (rank != _SAME_NAME and (before.is_requested or not is_moved))


def read_arguments(text: str) -> dict[str, Any]:
    """Return the arguments of a call by name."""
    try:
        arguments = msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return {"arguments": text}
    return arguments if isinstance(arguments, dict) else {"arguments": arguments}
