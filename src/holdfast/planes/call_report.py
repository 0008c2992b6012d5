"""One call on a plane, from its arrival to its event in the trace."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from holdfast.model.delivery import DeliveryPart
from holdfast.model.trace import TraceEvent
from holdfast.protocols.trial import TrialContext


class CallReport:
    """Measures a call and reports it once, with the faults that it met. A plane adds what it knows of the call."""

    def __init__(self, context: TrialContext, plane: str, target: str, n: int) -> None:
        self._context = context
        self._key = (plane, target, n)
        self.n = n
        """The number of the call at its target."""
        self.status: int | None = None
        self.error_type = ""
        self.since: float | None = None
        """When the wait for upstream's next bytes began; None if Holdfast is not waiting."""
        self.began = context.sink.now()
        self._is_reported = False

    @property
    def age_ms(self) -> float:
        """Time since the call arrived."""
        return (self._context.sink.now() - self.began) * 1000

    def start_wait(self) -> None:
        """Start the wait for upstream."""
        self.since = self._context.sink.now()

    def mark_undelivered(
        self,
        why: str = "the client had disconnected",
        *,
        parts: Collection[DeliveryPart] = (),
        waits: bool = False,
        read: str | None = None,
    ) -> None:
        """Record that the client did not receive what faults made of the reply: `Injector.mark_undelivered`."""
        self._context.injector.mark_undelivered(*self._key, why, parts=parts, waits=waits, read=read)

    def report(self, event: TraceEvent) -> None:
        """Record the call, once: an answer that arrives after its trial changes nothing."""
        if self._is_reported:
            return
        self._is_reported = True
        # Upstream's silence matters only if the client gave up during it.
        silent_since = self.since if self.error_type == "client_gone" else None
        now = self._context.sink.now()
        self._context.sink.add(
            replace(
                event,
                n=self.n,
                duration_ms=(now - self.began) * 1000,
                status=self.status,
                error_type=self.error_type or (f"http_{self.status}" if (self.status or 0) >= 400 else ""),
                fault=self._context.injector.join_modes_met(*self._key),
                waited_ms=0.0 if silent_since is None else (now - silent_since) * 1000,
            )
        )
