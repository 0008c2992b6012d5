"""The requests of one connection to a service and their replies, so that a map can show what feeds what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from secrets import token_bytes
from typing import Any
from urllib.parse import unquote_plus

from msgspec.structs import replace

from holdfast.model.fingerprint import fingerprint, fingerprints, followed_values
from holdfast.model.observation import ServiceExchange
from holdfast.model.world import Wire
from holdfast.planes.tcp.carried_text import read_received_text, read_sent_text
from holdfast.protocols.trial import TraceSink

BYTES_READ = 16_384
"""Bytes of a request, or of a reply, that are read."""
ROUNDS_KEPT = 500
"""Requests to services stored per trial."""


@dataclass
class _Round:
    """The bytes sent to a service, and the bytes that came back before more was sent."""

    began: float
    transaction: int
    sent: bytearray = field(default_factory=bytearray)
    received: bytearray = field(default_factory=bytearray)
    tables: list[str] = field(default_factory=list)
    ended: float = 0.0


class ConnectionExchanges:
    """Notes the rounds of one connection while it lasts. Their values are read when the trial has ended."""

    def __init__(self, service: str, wire: Wire, n: int, sink: TraceSink) -> None:
        self._service = service
        self._wire = wire
        self._n = n
        self._sink = sink
        self._round: _Round | None = None
        self._transaction = 0
        """The number of the transaction that is open; 0 if there is none."""

    def record_sent(self, data: bytes) -> None:
        if self._round is None or self._round.received:
            self._round = _Round(self._sink.now(), self._transaction)
            if len(self._sink.exchanges) < ROUNDS_KEPT:
                self._sink.exchanges.append(partial(self._read, self._round))
        self._round.sent += data[: BYTES_READ - len(self._round.sent)]

    def record_received(self, data: bytes) -> None:
        if self._round is not None:  # otherwise a greeting
            self._round.received += data[: BYTES_READ - len(self._round.received)]
            self._round.ended = self._sink.now()

    def begin(self, transaction: int) -> None:
        """Assign everything sent from now on to this transaction."""
        self._transaction = transaction
        if self._round is not None:
            self._round.transaction = transaction

    def end(self) -> None:
        self._transaction = 0

    def record_write(self, table: str) -> None:
        if self._round is not None and table:
            self._round.tables.append(table)

    def _read(self, one: _Round) -> ServiceExchange:
        return ServiceExchange(
            round(one.began, 6),
            round(one.ended or one.began, 6),
            "transaction" if one.transaction else "service",
            self._service,
            one.transaction or self._n,
            fingerprints(followed_values(read_sent_text(self._wire, bytes(one.sent)))),
            fingerprints(followed_values(read_received_text(self._wire, bytes(one.received)))),
            tuple(dict.fromkeys(one.tables)),
        )


def hide_private_values(exchanges: Iterable[ServiceExchange], stored: Any) -> tuple[ServiceExchange, ...]:
    """Replace the digests of values that are in none of the texts which are stored of the trial.

    A short value can be guessed from its digest by trying all. What is stored in plain text anyway keeps its digest, so
    that a map can follow it from a service to a tool or the answer. The digests of the rest are keyed with a secret
    that is never stored: equal values stay equal within the trial, and nothing else can be learnt.
    """
    forms = (form for text in _list_texts(stored) for form in (text, unquote_plus(text).replace("&", " ")))
    shown = {fingerprint(value) for form in forms for value in followed_values(form)}
    secret = token_bytes(16)

    def hide(digests: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(one if one in shown else fingerprint(one, secret) for one in digests))

    return tuple(replace(one, sent=hide(one.sent), received=hide(one.received)) for one in exchanges)


def _list_texts(stored: Any) -> Iterator[str]:
    if isinstance(stored, str):
        yield stored
    elif isinstance(stored, dict | list | tuple):
        for part in stored.values() if isinstance(stored, dict) else stored:
            yield from _list_texts(part)
