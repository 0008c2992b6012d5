"""The transactions of a trial's connections to one service: their state, and the faults that wait at their steps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from holdfast.model.world import Wire
from holdfast.planes.injection.active_injection import name_step_plane
from holdfast.planes.tcp.exchanges import ConnectionExchanges
from holdfast.planes.tcp.sinks import sleep_ms
from holdfast.protocols.fault import Call, Dropped, Failed, Reply, Step
from holdfast.protocols.trial import TrialContext
from holdfast.sqltext.transaction import TransactionStatement
from holdfast.streams.connection_end import ConnectionEnd, dial


class TransactionStep(NamedTuple):
    """A step of a message at which faults may wait."""

    step: Step
    n: int
    """The number of the transaction, from 1."""
    statement: TransactionStatement
    ends: bool
    """Whether the transaction ends with this message, if nothing fails."""


class TransactionState:
    """The transactions of one connection. `begin` counts a new one, `end` is called when it is over."""

    def __init__(self, begin: Callable[[], int], end: Callable[[], None]) -> None:
        self.open = False
        """Whether a block is open: writes are not yet committed."""
        self.failed = False
        """Whether the block can only be rolled back."""
        self.autocommit = True
        self.n = 0
        """The current transaction; 0: none."""
        self._begin = begin
        self._end = end
        self._passed_steps: set[Step] = set()
        self._wrote: TransactionStatement | None = None

    def add_statements(
        self, statements: Sequence[TransactionStatement], *, commits: bool = True
    ) -> list[TransactionStep]:
        """Return the steps of a message with these statements, each at most once per transaction.

        Without `commits`, a write outside a block is committed later, by the message of `add_sync`.
        """
        steps: dict[Step, TransactionStep] = {}
        for statement in statements:
            for due in self._find_steps(statement, commits):
                steps.setdefault(due.step, due)
        # Only after the last statement is it known whether the message ends its transaction, so the steps get it
        # afterwards.
        ends = not self.open
        return [due._replace(ends=ends) for due in steps.values()]

    def add_sync(self) -> list[TransactionStep]:
        """Return the steps of a message that commits everything written outside a block."""
        if self.open or self._wrote is None:
            return []
        return [due._replace(ends=True) for due in self._take_step("commit", self._wrote)]

    def mark_sent(self) -> None:
        """Record that the message was sent; a statement outside a block was a transaction of its own."""
        if not self.open:
            self._end_transaction()

    def fail(self, *, rolled_back: bool) -> None:
        """Record that a statement was rejected."""
        if rolled_back or not self.open:
            self._end_transaction()
        else:
            self.failed = True

    def set_server_state(self, *, open: bool, failed: bool = False) -> None:
        """Take over the server's state after all questions are answered."""
        if open:
            self.open, self.failed = True, failed
        # The server's word wins, but only once every question is answered: before that it describes a state in which
        # messages that are already counted here have not been read.
        elif self.n or self.open:
            self._end_transaction()

    def reset(self) -> None:
        """Reset the state, because the client starts over."""
        self.set_server_state(open=False)
        self.autocommit = True

    # -- inside ---------------------------------------------------------------------------------
    def _find_steps(self, statement: TransactionStatement, commits: bool) -> Iterator[TransactionStep]:
        if statement.autocommit is not None:
            self.autocommit = statement.autocommit
        match statement.kind:
            case "begin":
                self._start()
                self.open = True
            case "commit":
                if self._wrote is not None:
                    yield from self._take_step("commit", statement)
                self._end_transaction()
            case "rollback":
                self._end_transaction()
            case "read" | "write":
                yield from self._start_work(statement, commits)

    def _start_work(self, statement: TransactionStatement, commits: bool) -> Iterator[TransactionStep]:
        self._start()
        self.open = (self.open or not self.autocommit) and not statement.ends
        yield from self._take_step("statement", statement)
        if statement.kind == "write":
            self._wrote = statement
            yield from self._take_step("write", statement)
            if commits and not self.open:
                yield from self._take_step("commit", statement)

    def _take_step(self, step: Step, statement: TransactionStatement) -> Iterator[TransactionStep]:
        if not self.failed and step not in self._passed_steps:
            self._passed_steps.add(step)
            yield TransactionStep(step, self.n, statement, False)

    def _start(self) -> None:
        if not self.n:
            self.n = self._begin()

    def _end_transaction(self) -> None:
        if self.n:
            self._end()
        self.n = 0
        self.open = self.failed = False
        self._wrote = None
        self._passed_steps = set()


_STEPS: tuple[Step, ...] = ("tls", "statement", "write", "commit")


class TrialService:
    """The address of a service, the faults that may act on its connections, and the connections' activity."""

    def __init__(
        self,
        upstream: tuple[str, int] | str,
        name: str,
        wire: Wire,
        context: TrialContext,
        *,
        latency_ms: float = 0,
        wrote: Callable[[TransactionStatement], None] | None = None,
    ) -> None:
        """`wire` is the protocol, from the traits of the service's kind; data from the service is delayed."""
        self.name = name
        self.wire = wire
        self.context = context
        self.latency_ms = latency_ms
        self.transactions = 0
        """Number of transactions in progress."""
        self.has_connection_faults = context.injector.can_affect("service", name)
        self.steps = frozenset(step for step in _STEPS if context.injector.can_affect(name_step_plane(step), name))
        self.reads_messages = bool(wire) and (bool(self.steps) or wrote is not None)
        self.wrote = wrote
        """Called with each statement that writes."""
        self._upstream = upstream
        self._reached = False
        self._connecting = 0

    def stop_faults(self) -> None:
        """Faults no longer act on its connections: the agent has ended."""
        self.has_connection_faults = False
        self.steps = frozenset()
        self.reads_messages = False
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


REFUSALS = ("serialization_failure", "lock_timeout", "read_only")
"""Kinds of failure that a database reports to its client; any other closes the connection."""


class StatementRefused(Exception):
    """A fault makes the database reject a statement."""

    def __init__(self, kind: str, statement: TransactionStatement) -> None:
        super().__init__(kind)
        self.kind = kind
        self.statement = statement
        """The first one that a fault acted on, of several in a message."""


Send: TypeAlias = Callable[[bool], Awaitable[Reply]]
"""Sends a message to the server; with True it waits for the answer, which is held back."""


class ConnectionFaults(Struct, eq=False):
    """Sends a connection's messages through the weather; `n` is the connection's number."""

    _service: TrialService
    _n: int
    _exchanges: ConnectionExchanges
    _refused_step: TransactionStep | None = None

    def begin(self) -> int:
        """Begin a transaction and return its number, from 1."""
        service = self._service
        service.transactions += 1
        if service.transactions > 1:
            service.context.injector.mark_concurrent()
        n = service.context.injector.count("transaction", service.name)
        self._exchanges.begin(n)
        return n

    def end(self) -> None:
        self._exchanges.end()
        self._service.transactions -= 1

    def record_write(self, statement: TransactionStatement) -> None:
        self._exchanges.record_write(statement.table)
        if self._service.wrote is not None:
            self._service.wrote(statement)

    async def send_through(self, steps: Sequence[TransactionStep], send: Send) -> None:
        """Send a message through the faults that wait at its steps.

        Raises StatementRefused if a fault makes the database reject it, Failed if one breaks the connection.
        """
        self._refused_step = None
        # The steps of one message nest like faults of one call: the innermost one sends it. Only a step that a fault
        # waits for costs a call; and only if one was passed does the message wait for its answer, which a later fault
        # may drop.
        waiting = [due for due in steps if due.step in self._service.steps]
        try:
            await self._send_step(waiting, 0, send, False)
        except Failed as failed:
            refused_step = self._refused_step
            if refused_step is None or failed.kind not in REFUSALS:
                raise
            raise StatementRefused(failed.kind, refused_step.statement) from failed

    async def _send_step(self, steps: Sequence[TransactionStep], at: int, send: Send, answered: bool) -> Reply:
        if at == len(steps):
            return await send(answered)
        due = steps[at]

        async def forward(call: Call) -> Reply:
            return await self._send_step(steps, at + 1, send, True)

        async def forward_untouched(call: Call) -> Reply:
            return await self._send_step(steps, at + 1, send, answered)

        verb, table, text = due.statement.verb, due.statement.table, due.statement.text
        arguments = {"verb": verb, "table": table, "statement": text, "ends": due.ends}
        call = Call(name_step_plane(due.step), self._service.name, arguments, due.n)
        try:
            return await self._service.context.injector.inject(call, forward, sleep_ms, untouched=forward_untouched)
        except Failed:
            self._refused_step = self._refused_step or due
            raise

    async def request_tls(self) -> None:
        """Apply faults when the client requests TLS; raise Failed if a fault breaks the handshake."""
        if "tls" in self._service.steps:
            call = Call(name_step_plane("tls"), self._service.name, {}, self._n)
            await self._service.context.injector.inject(call, _confirm_handshake, sleep_ms)

    def note_unreadable(self, why: str) -> None:
        """Note that the rest of the connection cannot be read, so faults cannot act on its transactions."""
        service = self._service
        if service.reads_messages:
            service.context.sink.note(
                f"a connection to {service.name} could not be read: {why}; its transactions were not observed"
            )


async def _confirm_handshake(call: Call) -> Reply:
    return Reply("a TLS handshake")
