"""The requests of one connection to a service and their replies, as the values in them: a map shows what feeds what."""

from __future__ import annotations

import re
import struct
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
    """Records the rounds of one connection while it lasts. Their values are read when the trial has ended."""

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

    def _read(self, exchange: _Round) -> ServiceExchange:
        return ServiceExchange(
            round(exchange.began, 6),
            round(exchange.ended or exchange.began, 6),
            "transaction" if exchange.transaction else "service",
            self._service,
            exchange.transaction or self._n,
            fingerprints(followed_values(read_sent_text(self._wire, bytes(exchange.sent)))),
            fingerprints(followed_values(read_received_text(self._wire, bytes(exchange.received)))),
            tuple(dict.fromkeys(exchange.tables)),
        )


def hide_private_values(exchanges: Iterable[ServiceExchange], stored: Any) -> tuple[ServiceExchange, ...]:
    """Replace the digests of values that are in none of the texts which are stored of the trial.

    A short value can be guessed from its digest by trying all. What is stored in plain text anyway keeps its digest, so
    that a map can follow it from a service to a tool or the answer. The digests of the rest are keyed with a secret
    that is never stored: equal values stay equal within the trial, and nothing else can be learnt.
    """
    forms = (form for text in _list_texts(stored) for form in (text, unquote_plus(text).replace("&", " ")))
    stored_values = {fingerprint(value) for form in forms for value in followed_values(form)}
    secret = token_bytes(16)

    def hide(digests: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(digest if digest in stored_values else fingerprint(digest, secret) for digest in digests))

    return tuple(
        replace(exchange, sent=hide(exchange.sent), received=hide(exchange.received)) for exchange in exchanges
    )


def _list_texts(stored: Any) -> Iterator[str]:
    if isinstance(stored, str):
        yield stored
    elif isinstance(stored, dict | list | tuple):
        for part in stored.values() if isinstance(stored, dict) else stored:
            yield from _list_texts(part)


_PRINTED = re.compile(r"[^\x00-\x1f\x7f-\x9f\ufffd]{3,}")
_LITERAL = re.compile(r"'(?:[^'\\]|''|\\.)*'|\b\d[\w.-]*")
"""Of a statement only literals are values: tables and columns are in every statement."""
_RESP_SIZE = re.compile(r"(?m)^[*$]\d+\r$")
_REDIS_LOGIN = re.compile(rb"(?im)^(?:\$\d+\r\n)?(?:auth|hello|acl)\b|requirepass")
_PASSWORD = re.compile(rb"(?i)\bpassword\b|\bidentified\s+(?:by|with)\b")
"""Requests that carry a password: their values are not followed."""
_QUERY, _EXECUTE = 3, 23  # MySQL's COM_QUERY and COM_STMT_EXECUTE


def read_sent_text(wire: Wire, data: bytes) -> str:
    """Return the text that a client sent, without the words of SQL and without its login."""
    if wire == "postgres":
        return "\n".join(_read_postgres_sent(data))
    if wire == "mysql":
        packets = (packet for packet in _split_mysql(data) if packet[:1] in (bytes((_QUERY,)), bytes((_EXECUTE,))))
        return "\n".join(
            _find_literals(packet[1:]) if packet[0] == _QUERY else _find_printable(packet[1:]) for packet in packets
        )
    return _find_printable(data)


def read_received_text(wire: Wire, data: bytes) -> str:
    """Return the text of the service's reply."""
    if wire == "postgres":
        return "\n".join(
            value for kind, body in _split_postgres(data) if kind == b"D" for value in _read_postgres_values(body)
        )
    if wire == "mysql":
        return "\n".join(value for packet in _split_mysql(data) for value in _read_mysql_row(packet))
    return _find_printable(data)


def _find_printable(data: bytes) -> str:
    if _REDIS_LOGIN.search(data):
        return ""
    return "\n".join(_PRINTED.findall(_RESP_SIZE.sub("", data.decode("utf-8", "replace"))))


def _find_literals(sql: bytes) -> str:
    if _PASSWORD.search(sql):
        return ""
    return "\n".join(_LITERAL.findall(sql.decode("utf-8", "replace")))


def _split_postgres(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 0
    while at + 5 <= len(data) and data[at : at + 1].isalnum():
        size = int.from_bytes(data[at + 1 : at + 5])
        yield data[at : at + 1], data[at + 5 : at + 1 + size]
        at += 1 + max(size, 4)


def _read_postgres_sent(data: bytes) -> Iterator[str]:
    for kind, body in _split_postgres(data):
        if kind == b"Q":
            yield _find_literals(body)
        elif kind == b"P":
            yield _find_literals(body.partition(b"\0")[2].partition(b"\0")[0])
        elif kind == b"B":
            parameters = body.partition(b"\0")[2].partition(b"\0")[2]
            formats = 2 + 2 * int.from_bytes(parameters[:2])
            yield from _read_postgres_values(parameters[formats:])
        elif kind == b"d":  # rows of a COPY
            yield _find_printable(body)


def _read_postgres_values(body: bytes) -> Iterator[str]:
    """Yield the columns of a row, or the parameters of a statement: a count, then each with its size."""
    at = 2
    for _ in range(int.from_bytes(body[:2])):
        size = int.from_bytes(body[at : at + 4], signed=True)
        value = body[at + 4 : at + 4 + max(size, 0)]
        at += 4 + max(size, 0)
        yield from _read_value(value)


def _read_value(value: bytes) -> Iterator[str]:
    """Yield a text, or a number in binary: which of the two kinds of number is unknown, so it is read as both."""
    text = value.decode("utf-8", "replace")
    if text.isprintable() or len(value) not in (2, 4, 8):
        yield text
        return
    yield str(int.from_bytes(value, signed=True))
    if len(value) != 2:
        (number,) = struct.unpack(">d" if len(value) == 8 else ">f", value)
        if 1e-6 < abs(number) < 1e15:
            yield repr(round(number, 9))


def _split_mysql(data: bytes) -> Iterator[bytes]:
    at = 0
    while at + 4 < len(data):
        size = int.from_bytes(data[at : at + 3], "little")
        yield data[at + 4 : at + 4 + size]
        at += 4 + size


def _read_mysql_row(packet: bytes) -> Iterator[str]:
    """Yield the columns of a row of texts; of another packet what can be printed."""
    columns, at = [], 0
    while at < len(packet):
        size, at = packet[at], at + 1
        if size in (0xFC, 0xFD):
            width = size - 0xFA
            size, at = int.from_bytes(packet[at : at + width], "little"), at + width
        elif size == 0xFB:  # NULL
            continue
        if size > 0xFD or at + size > len(packet):
            return
        columns.append(packet[at : at + size].decode("utf-8", "replace"))
        at += size
    # The definition of a column begins with the catalogue, which is always called def.
    if columns[:1] != ["def"]:
        yield from columns
