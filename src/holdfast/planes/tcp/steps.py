"""The faults of one trial that wait at the steps of a service's transactions, for one connection."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.planes.tcp.transaction_state import Due
from holdfast.planes.tcp.trial_service import TrialService
from holdfast.planes.tcp.wire_reader import REFUSALS, Sending, StatementRefused
from holdfast.planes.weather import step_plane
from holdfast.protocols import Call, Failed, Reply, Sleep
from holdfast.sqltext.transaction import TransactionStatement


class Steps:
    """Leads a connection's messages through the weather; `n` is the connection's number."""

    def __init__(self, service: TrialService, n: int, sleep: Sleep) -> None:
        self._service = service
        self._n = n
        self._sleep = sleep
        self._met: Due | None = None

    def begin(self) -> int:
        service = self._service
        service.transactions += 1
        if service.transactions > 1:
            service.context.overlapped()
        return service.context.count("transaction", service.name)

    def end(self) -> None:
        self._service.transactions -= 1

    def wrote(self, statement: TransactionStatement) -> None:
        self._service.wrote(statement)

    async def take(self, dues: Sequence[Due], send: Sending) -> None:
        self._met = None
        waited = [due for due in dues if due.step in self._service.steps]
        try:
            await self._take(waited, 0, send, False)
        except Failed as failed:
            met: Due | None = self._met
            if met is None or failed.kind not in REFUSALS:
                raise
            raise StatementRefused(failed.kind, met.statement) from failed

    async def _take(self, dues: Sequence[Due], at: int, send: Sending, answered: bool) -> Reply:
        if at == len(dues):
            return await send(answered=answered)
        due = dues[at]

        async def forward(call: Call) -> Reply:
            return await self._take(dues, at + 1, send, True)

        async def untouched(call: Call) -> Reply:
            return await self._take(dues, at + 1, send, answered)

        call = Call(step_plane(due.step), self._service.name, _arguments(due), due.n)
        try:
            return await self._service.context.through(call, forward, self._sleep, untouched=untouched)
        except Failed:
            self._met = self._met or due
            raise

    async def tls(self) -> None:
        if "tls" in self._service.steps:
            call = Call(step_plane("tls"), self._service.name, {}, self._n)
            await self._service.context.through(call, _begun, self._sleep)

    def unreadable(self, why: str) -> None:
        service = self._service
        if service.reads_along:
            service.context.note(
                f"a connection to {service.name} could not be read: {why}; no transaction of it was seen"
            )


def _arguments(due: Due) -> dict[str, object]:
    """What a schedule's `match` looks at, and what a fault may want to know."""
    said = due.statement
    return {"verb": said.verb, "table": said.table, "statement": said.text, "ends": due.ends}


async def _begun(call: Call) -> Reply:
    return Reply("a TLS handshake")
