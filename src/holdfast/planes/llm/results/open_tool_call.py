"""Which call that a model asked for a tool result answers, if any: an example or an old conversation answers none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from holdfast.model.completion import ToolCall
from holdfast.planes.describe import arguments_digest
from holdfast.planes.llm.results.result_position import ResultPosition
from holdfast.planes.llm.results.settlements import Settled

_BY_ID, _BY_ARGUMENTS, _BY_NAME = range(3)


class OpenToolCall(Struct, frozen=True):
    """A call that the model asked for and whose result has not come."""

    call: ToolCall
    ts: float
    before: bytes
    """As `ResultPosition.before`."""
    first: bytes
    """The first text that the model was answering, and the last, as `ResultPosition.heard` knows them."""
    last: bytes
    sure: bool = True
    """Else it only looks like a call, and nothing is told of it unless a result comes."""

    def fit(self, at: ResultPosition) -> tuple[int, bool, bool] | None:
        """How well a result answers it, the less the better; None if it does not."""
        here = self.before == at.before
        goes_on = here or at.after(self.last)
        if self.call.id and self.call.id in (at.id, at.result.key):
            how = _BY_ID if goes_on or self._elsewhere(at) else None
        else:
            how = self._without_id(at, here, goes_on)
        return None if how is None else (how, not at.fresh, not here)

    def _elsewhere(self, at: ResultPosition) -> bool:
        """Whether a result with its id may be its own in a conversation that was told anew: examples have ids, too."""
        return at.fresh and (at.alone or (at.result.name == self.call.name and self._same_arguments(at)))

    def _without_id(self, at: ResultPosition, here: bool, goes_on: bool) -> int | None:
        """A client that makes up ids keeps the arguments; where there are none, what waits for the model is taken by
        its arguments, whatever was said before."""
        ids_differ = bool(self.call.id and at.id)
        waits = at.last and not ids_differ
        if at.result.name != self.call.name or not (goes_on or waits):
            return None
        if self._same_arguments(at):
            return _BY_ARGUMENTS if at.fresh or here else None
        return _BY_NAME if goes_on and at.fresh and not ids_differ else None

    def _same_arguments(self, at: ResultPosition) -> bool:
        one, other = at.result.arguments, self.call.arguments
        return one == other or arguments_digest(by_name(one)) == arguments_digest(by_name(other))


def answers(
    found: Sequence[ResultPosition], known: Sequence[Settled | None], calls: Iterable[OpenToolCall], *, again: bool
) -> dict[int, OpenToolCall]:
    """The call that each result answers, by the result's place in the list: the best fitting pairs first.

    A result that was settled before is a call anew only if it looks the same in another conversation. One that was
    no call stays none, unless the model has now asked for it right there. In a request that comes `again` nothing
    that was settled is new.
    """
    opened, fits = list(calls), []
    for n, (at, before) in enumerate(zip(found, known, strict=True)):
        if before is not None and (again or not at.fresh):
            continue
        for m, one in enumerate(opened):
            if (fit := one.fit(at)) is not None and _may(fit, before):
                fits.append((before is not None, *fit, n, m))
    pairs: dict[int, OpenToolCall] = {}
    taken: set[int] = set()
    for *_, n, m in sorted(fits):
        if n not in pairs and m not in taken:
            pairs[n] = opened[m]
            taken.add(m)
    return pairs


def _may(fit: tuple[int, bool, bool], before: Settled | None) -> bool:
    how, _, moved = fit
    return before is None or (how != _BY_NAME and (before.asked_for or not moved))


def by_name(text: str) -> dict[str, Any]:
    """The arguments of a call by name."""
    try:
        found = msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return {"arguments": text}
    return found if isinstance(found, dict) else {"arguments": found}
