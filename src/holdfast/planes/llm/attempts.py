"""Tells a client library's repetitions of a request from the agent's own calls.

The libraries of OpenAI and Anthropic repeat by themselves and count aloud; Google's repeats a lost connection once and
says nothing. A request that comes again from anything else is the agent's own doing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

Get: TypeAlias = Callable[[str], str | None]
"""A request's header by its name."""

KEPT = 10_000
"""Failed requests that are remembered."""

_COUNT = "x-stainless-retry-count"
"""A header by which the OpenAI and Anthropic libraries say which repetition a request is."""
_STAINLESS = "x-stainless-lang"
"""A header of all their versions; early ones do not count."""


class _Failures(Struct, frozen=True):
    """Of one request: how often in a row, since the agent's own call; and whether the last reply never came."""

    count: int
    lost: bool


class Attempts:
    """The requests of one trial that failed and may come again."""

    def __init__(self) -> None:
        self._failed: dict[str, _Failures] = {}

    def which(self, header: Get, key: str) -> int:
        """Which repetition a request is: 0 is a call of the agent's own. Repetitions have the `key` in common."""
        before = self._failed.get(key)
        return 0 if before is None else _repetition(header, before)

    def failed(self, key: str) -> bool:
        """Whether the same request was made before, and failed."""
        return key in self._failed

    def ended(self, key: str, retry: int, *, well: bool, lost: bool) -> None:
        """How the attempt went, as the client saw it; `lost`: no reply came at all."""
        if well:
            self._failed.pop(key, None)
            return
        self._failed[key] = _Failures(retry + 1, lost)
        if len(self._failed) > KEPT:
            del self._failed[next(iter(self._failed))]


def _repetition(header: Get, before: _Failures) -> int:
    """Which repetition it can be, after these failures. A header claims no more of them than were seen."""
    told = header(_COUNT)
    if told is not None and told.isdecimal():
        return min(int(told[:9]), before.count)
    if told is None and header(_STAINLESS) is not None:
        return before.count
    once = before.lost and before.count == 1
    return 1 if once and "google-genai-sdk" in (header("x-goog-api-client") or "") else 0
