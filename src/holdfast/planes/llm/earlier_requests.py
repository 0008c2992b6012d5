"""The earlier model calls of a trial: which of them failed, and which tool calls they requested.

The libraries of OpenAI and Anthropic retry by themselves and send the retry count; Google's retries a lost connection
once and does not say so. Any other repeated request is a decision of the agent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from holdfast.model.completion import ToolCall
from holdfast.planes.llm.codecs.request import ChatMessage, ModelRequest, ToolResult

Get: TypeAlias = Callable[[str], str | None]
"""Returns a request's header by name."""

FAILED_LIMIT = 10_000
"""Number of failed requests that are remembered."""

_COUNT = "x-stainless-retry-count"
"""The header in which the OpenAI and Anthropic libraries send their retry count."""
_STAINLESS = "x-stainless-lang"
"""A header of all their versions; early ones do not send a count."""


class Attempts:
    """The failed requests of one trial that may be retried."""

    def __init__(self) -> None:
        self._failed: dict[str, tuple[int, bool]] = {}
        """By request: how often it failed in a row since the agent's own call, and whether the last reply was lost."""

    def find_retry_number(self, header: Get, key: str) -> int:
        """Return the retry number of a request: 0 is a call by the agent itself. Retries share the `key`.

        A header cannot claim more retries than there were failures.
        """
        failures, is_lost = self._failed.get(key, (0, False))
        if not failures:
            return 0
        # Three libraries, three kinds of evidence. A header counts the retries; versions without that header retry
        # blindly, so any repetition after a failure is theirs; Google's library repeats once, and only if no reply
        # arrived at all.
        count = header(_COUNT)
        if count is not None and count.isdecimal():
            return min(int(count[:9]), failures)
        if count is None and header(_STAINLESS) is not None:
            return failures
        return int(is_lost and failures == 1 and "google-genai-sdk" in (header("x-goog-api-client") or ""))

    def has_failed(self, key: str) -> bool:
        """Return whether the same request was made before and failed."""
        return key in self._failed

    def record_end(self, key: str, retry: int, *, failed: bool, lost: bool) -> None:
        """Record how the client saw the attempt; `lost`: no reply arrived at all."""
        # A success ends the series: the same request made later is a new decision of the agent. Only failures in a row
        # are kept.
        if not failed:
            self._failed.pop(key, None)
            return
        self._failed[key] = (retry + 1, lost)
        if len(self._failed) > FAILED_LIMIT:
            del self._failed[next(iter(self._failed))]


CALLS_LIMIT = 200
CHARACTERS_LIMIT = 100_000
"""Limit for one conversation; for a longer one only the calls are remembered."""


class _KnownCall(Struct, frozen=True):
    """A call that a model requested, and the conversation up to it."""

    call: ToolCall
    messages: tuple[ChatMessage, ...]


class EarlierCalls:
    """The latest calls of one trial."""

    def __init__(self) -> None:
        self._known: dict[str, _KnownCall] = {}

    def keep(self, calls: tuple[ToolCall, ...], text: str, request: ModelRequest) -> None:
        """Remember the calls, and the text next to them, with which the model answered a request."""
        if not calls:
            return
        before = request.messages if _measure(request.messages) <= CHARACTERS_LIMIT else ()
        messages = (*before, ChatMessage("assistant", text[:CHARACTERS_LIMIT], calls))
        for call in [call for call in calls if call.id]:
            self._known.pop(call.id, None)
            self._known[call.id] = _KnownCall(call, messages)
        while len(self._known) > CALLS_LIMIT:
            del self._known[next(iter(self._known))]

    def add_conversation(self, request: ModelRequest) -> ModelRequest:
        """Return the request with its preceding conversation, if it continues with the results of known calls."""
        if not request.continues:
            return request
        known = next((self._known[r.key] for r in request.results if r.key in self._known), None)
        if known is None:
            return request
        system = [message for message in request.messages if message.role == "system"]
        before = [message for message in known.messages if not system or message.role != "system"]
        own = [
            replace(message, results=tuple(map(self._name_result, message.results)))
            for message in request.messages
            if message.role != "system"
        ]
        return replace(request, messages=(*system, *before, *own))

    def _name_result(self, result: ToolResult) -> ToolResult:
        known = self._known.get(result.key)
        if known is None:
            return result
        return replace(result, name=result.name or known.call.name, arguments=known.call.arguments)


def _measure(messages: Iterable[ChatMessage]) -> int:
    return sum(
        len(message.text)
        + sum(len(result.text) for result in message.results)
        + sum(len(call.arguments) for call in message.tool_calls)
        for message in messages
    )
