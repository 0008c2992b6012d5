"""A TrialService: one service for the connections of one trial, and the state that they share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from holdfast.model.world import Wire
from holdfast.planes.injection.active_injection import name_step_plane
from holdfast.protocols.fault import Dropped, Step
from holdfast.protocols.trial import TrialContext
from holdfast.sqltext.transaction import TransactionStatement
from holdfast.streams.connection_end import ConnectionEnd, dial

_STEPS: tuple[Step, ...] = ("tls", "statement", "write", "commit")


class TrialService:
    """The address of a service, the faults that may act on its connections, and the connections' activity."""

    def __init__(
        self,
        upstream: tuple[str, int] | str,
        name: str,
        wire: Wire,
        context: TrialContext,
        latency_ms: float,
        wrote: Callable[[TransactionStatement], None] | None,
    ) -> None:
        self.name = name
        self.wire = wire
        self.context = context
        self.latency_ms = latency_ms
        self.transactions = 0
        """Number of connections in progress."""
        self.faced = context.injector.can_affect("service", name)
        self.steps = frozenset(step for step in _STEPS if context.injector.can_affect(name_step_plane(step), name))
        self.reads_along = bool(wire) and (bool(self.steps) or wrote is not None)
        self._wrote = wrote
        self._upstream = upstream
        self._reached = False
        self._connecting = 0

    def stop_faults(self) -> None:
        """Faults no longer act on its connections: the agent has ended."""
        self.faced = False
        self.steps = frozenset()
        self.reads_along = False
        self.latency_ms = 0

    @contextmanager
    def guard_connecting(self) -> Iterator[None]:
        """Mark the trial as concurrent if another connection is being opened: the order in which faults act is then
        random.
        """
        self._connecting += 1
        if self._connecting > 1:
            self.context.injector.mark_concurrent()
        try:
            yield
        finally:
            self._connecting -= 1

    async def connect(self) -> ConnectionEnd:
        """Connect to the service. If it never worked, that is a harness error; later it may be the agent's doing."""
        try:
            end = await dial(self._upstream)
        except OSError as failed:
            why = f"the service {self.name} accepts no connection, and no fault caused it: {failed or 'timeout'}"
            if self._reached:
                self.context.sink.note(why)
            else:
                self.context.sink.add_error(why, "service-failed")
            raise Dropped(why, kind="closed") from failed
        self._reached = True
        return end

    def record_write(self, statement: TransactionStatement) -> None:
        """Record a write to the database."""
        if self._wrote is not None:
            self._wrote(statement)
