"""Records one proxied request in the trace. Header values are left out, except an idempotency key."""

from __future__ import annotations

from collections.abc import AsyncIterator
from hashlib import blake2b

from holdfast.http1.heads import RequestHead
from holdfast.model.canary import CanaryReader, find_echoes
from holdfast.model.codec import make_encodable
from holdfast.model.shorten import shorten
from holdfast.model.trace import TEXT_KEPT, TraceEvent
from holdfast.planes.call_report import CallReport
from holdfast.planes.describe import describe
from holdfast.planes.egress_policy import NotPermitted
from holdfast.planes.http.proxy_rules import ProxyRules, find_side_kind
from holdfast.planes.http.request import RequestTarget, decode_body, decompress
from holdfast.planes.recorded_value import REPLY_KEPT, write_lost, write_reply
from holdfast.protocols.trial import TrialContext

INPUT_LIMIT = 16_384
"""Bytes of a request's body that are examined for the trace."""


class RequestTrace(CallReport):
    """Reads a request and its reply as they pass, and reports the request once."""

    def __init__(self, context: TrialContext, target: RequestTarget, head: RequestHead) -> None:
        super().__init__(context, "http", target.url, context.injector.count("http", target.url))
        self._target = target
        self._head = head
        self.output: str | None = None
        """The reply that the client received, if it was not read as it passed."""
        self._digest = blake2b(f"{target.method}\n{target.url}\n".encode(errors="replace"), digest_size=6)
        self._input = bytearray()
        encoding = (head.get("content-encoding") or "identity").strip().lower()
        self._canary_reader = CanaryReader(packed=encoding != "identity")
        self._armed = context.trial.task.attack or context.injector.has_faults
        """Whether the request may contain a canary."""
        self._reply = bytearray()
        self.encoding: str | None = None
        """The content encoding of the reply that is passing."""

    async def watch_body(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Read the request's body as it passes."""
        async for chunk in chunks:
            self._digest.update(chunk)
            if self._armed:
                self._canary_reader.feed(chunk)
            if len(self._input) < INPUT_LIMIT:
                self._input += chunk[: INPUT_LIMIT - len(self._input)]
            yield chunk

    def tap(self, data: bytes) -> None:
        """Read a part of the reply as it passes."""
        if len(self._reply) < REPLY_KEPT:
            self._reply += data[: REPLY_KEPT - len(self._reply)]

    def report_unfinished(self) -> None:
        """Report a request that the end of the trial interrupts as unfinished, unless a fault had already ended it."""
        unfinished = not self.error_type
        self.error_type = self.error_type or "client_gone"
        self.report_end(unfinished=unfinished)

    def report_refusal(self, rules: ProxyRules, why: NotPermitted) -> None:
        """Report a request that the policy denies: as a side call if it is not the agent's work, else as a call."""
        target = self._target
        # Programs call home for telemetry and updates. A refused one is no work of the agent, unless it carries what an
        # attack planted: then it may be how data leaves, and the report must show it.
        kind = find_side_kind(target.origin.host)
        sends = self._canary_reader.canaries or find_echoes(f"{target.url} {target.origin.host}")
        if kind and not sends and not rules.is_declared(target.url):
            self._is_reported = True
            self._context.sink.count_side_call(target.origin.host, kind)
        else:
            rules.report_refusal(self._context, target.origin, why)

    def report_end(self, *, unfinished: bool = False) -> None:
        """Record the request in the trace, once."""
        begun = self.status is not None or bool(self.error_type)
        target = self._target
        output, reply = self._build_output()
        self.report(
            TraceEvent(
                self.began,
                "http_call",
                tool=make_encodable(f"{target.method} {target.url}"),
                plane="http",
                phase="done" if begun and not unfinished else "unfinished",
                input=_format_body(bytes(self._input)),
                output=output,
                write=target.is_write,
                digest=self._digest.hexdigest(),
                idempotency=self._find_idempotency_key(),
                canaries=self._canary_reader.canaries,
                unread=not self._canary_reader.is_legible,
                reply=reply,
                to_service=(target.origin.host, target.origin.port) in self._context.services,
            )
        )

    def _build_output(self) -> tuple[str, str]:
        """Return the shortened text that the client received, and the complete text if it was shortened."""
        if self.output is not None:
            short = make_encodable(shorten(self.output, TEXT_KEPT))
            return short, "" if short == self.output else write_reply(self.output)
        encoding, body = self.encoding, bytes(self._reply)
        plain = decompress(encoding, body, REPLY_KEPT)
        if plain is None:
            return f"({encoding})", write_lost("packed")
        short = _format_body(plain)
        if REPLY_KEPT in (len(body), len(plain)):
            return short, write_lost("too-long")
        try:
            text = plain.decode()
        except UnicodeDecodeError:
            return short, write_lost("not-text")
        return short, "" if short == text else write_reply(text)

    def _find_idempotency_key(self) -> str:
        value = self._head.get("idempotency-key")
        if value is None and self._input:
            body = decode_body(self._head.get("content-type"), bytes(self._input))
            key = body.get("idempotency_key") if isinstance(body, dict) else None
            value = None if key is None else describe(key)
        return make_encodable(shorten(value or ""))


def _format_body(body: bytes) -> str:
    text = body.decode("utf-8", "replace")
    if text.count("\ufffd") > len(text) // 8:
        return f"(binary, {len(body)} bytes or more)"
    return make_encodable(shorten(text, TEXT_KEPT))
