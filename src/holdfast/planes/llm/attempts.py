"""Tells a client library's repetitions of a request from the agent's own calls."""

from __future__ import annotations

from holdfast.model.codec import digest

HEADER = "x-stainless-retry-count"
"""A header by which the OpenAI and Anthropic libraries say which repetition a request is."""


class Attempts:
    """The requests of one trial that failed and may come again."""

    def __init__(self) -> None:
        self._failed: dict[str, int] = {}

    def which(self, told: str | None, body: bytes) -> tuple[str, int]:
        """The request's key, and which repetition it is: 0 is a call of the agent's own.

        Where the library does not say, the same body after a failure is a repetition.
        """
        key = digest(body, 16)
        if told is not None and told.isdigit():
            return key, min(int(told), 1_000)
        return key, self._failed[key] + 1 if key in self._failed else 0

    def ended(self, key: str, retry: int, *, well: bool) -> None:
        """How the attempt went, as the client saw it."""
        if well:
            self._failed.pop(key, None)
        else:
            self._failed[key] = retry
