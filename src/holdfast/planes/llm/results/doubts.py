"""Results that wait for the model though no known reply asked for them: what asked for them may have passed unread."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from holdfast.planes.llm.codecs.request import ToolDeclared
from holdfast.planes.llm.results.result_position import ResultPosition

KEPT = 1_000
"""More than any agent has; the oldest are told of early."""


class Doubt(Struct, frozen=True):
    """A call that may have been made."""

    name: str
    arguments: str
    ts: float


class Doubts:
    """Those of one trial. They are told of at its end: a reply that is known later may end them."""

    def __init__(self, tell: Callable[[Doubt], None]) -> None:
        self._tell = tell
        self._kept: dict[tuple[bytes, str, str], Doubt] = {}
        self.missed = False
        """A reply passed unread: any result that the model has not read may be of a call in it."""

    def take(self, at: ResultPosition, tools: Sequence[ToolDeclared], ts: float) -> None:
        """A result that answers no known call. One before a new prompt is an example's, or of a conversation that was
        kept; one that names no tool may be of any of the request's `tools`."""
        if at.again or not (at.last or (at.fresh and self.missed)):
            return
        names = [at.result.name] if at.result.name else [tool.name for tool in tools] or [""]
        for name in names:
            self._kept[at.before, at.result.key, name] = Doubt(name, at.result.arguments, ts)
            if len(self._kept) > KEPT:
                self._tell(self._kept.pop(next(iter(self._kept))))

    def drop(self, at: ResultPosition) -> None:
        """The result is known to answer a call."""
        self._kept.pop((at.before, at.result.key, at.result.name), None)

    def close(self) -> None:
        """The trial is over."""
        for doubt in self._kept.values():
            self._tell(doubt)
        self._kept.clear()
