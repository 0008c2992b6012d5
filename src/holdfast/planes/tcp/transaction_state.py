"""TransactionState: a connection's position in its transactions, from its client's statements and its server's
answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from holdfast.protocols.fault import Step
from holdfast.sqltext.transaction import TransactionStatement


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
        self._taken: set[Step] = set()
        self._wrote: TransactionStatement | None = None

    def add_statements(
        self, statements: Sequence[TransactionStatement], *, commits: bool = True
    ) -> list[TransactionStep]:
        """Return the steps of a message with these statements, each at most once per transaction.

        Does not include `commits`: a write outside a block is committed later, by `sync`.
        """
        dues: dict[Step, TransactionStep] = {}
        for statement in statements:
            for due in self._find_steps(statement, commits):
                dues.setdefault(due.step, due)
        ends = not self.open
        return [due._replace(ends=ends) for due in dues.values()]

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
        if not self.failed and step not in self._taken:
            self._taken.add(step)
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
        self._taken = set()
