"""What every call of a proxy client has in common: its failures, and its event in the trace."""

from __future__ import annotations

from collections.abc import Awaitable

from msgspec import Struct

from holdfast.errors import HarnessError
from holdfast.http1.client import UpstreamFailed
from holdfast.http1.relay import ConnectionUpgraded
from holdfast.http1.server import Exchange
from holdfast.model.trace import REFUSED
from holdfast.planes.egress_policy import NotPermitted
from holdfast.planes.http.outgoing_reply import send_failure
from holdfast.planes.http.proxy_rules import ProxyRules
from holdfast.planes.http.request import RequestTarget
from holdfast.planes.http.request_trace import RequestTrace
from holdfast.protocols.fault import Failed
from holdfast.protocols.trial import TrialContext

_TEXT = (("content-type", "text/plain; charset=utf-8"),)


class ProxyCall(Struct, eq=False):
    """A request or a CONNECT, from its arrival to its event in the trace."""

    _rules: ProxyRules
    _exchange: Exchange
    context: TrialContext
    _want: RequestTarget
    _begun: RequestTrace | None = None

    async def run(self) -> None:
        """Answer it, whatever happens, and report it to the trace."""
        try:
            await self._process()
        except ConnectionUpgraded as passed:
            self._trace.status = passed.status
        except Failed as failed:
            await self._send_traced(self._send_failure(failed))
        except NotPermitted as refused:
            self._trace.report_refusal(self._rules, refused)
            await self._reject(403, REFUSED, str(refused))
        except UpstreamFailed as failed:
            self._rules.report_unreachable(self.context, self._want.origin, self._want.url, str(failed))
            await self._reject(504 if failed.kind == "timeout" else 502, "upstream", str(failed))
        except HarnessError as broken:
            self.context.sink.add_error(str(broken), broken.code)
            await self._reject(500, "harness", str(broken))
        except ConnectionError:
            self._record_client_gone()
        finally:
            if self._begun is not None:
                self._begun.report_end()

    async def _process(self) -> None:
        raise NotImplementedError

    @property
    def _trace(self) -> RequestTrace:
        """Its trace, created on first use: a connection whose requests are observed has none of its own."""
        if self._begun is None:
            self._begun = RequestTrace(self.context, self._want, self._exchange.head)
        return self._begun

    async def _send_failure(self, failed: Failed) -> None:
        await send_failure(self._exchange, failed, self._trace)

    async def _reject(self, status: int, trouble: str, why: str) -> None:
        trace, text = self._trace, f"Holdfast: {why}"
        trace.status, trace.trouble, trace.output = status, trouble, text
        if self._exchange.is_answered:
            self._exchange.break_connection()
        else:
            await self._send_traced(self._exchange.respond(status, _TEXT, f"{text}\n".encode(errors="replace")))

    async def _send_traced(self, sending: Awaitable[None]) -> None:
        try:
            await sending
        except ConnectionError:
            self._record_client_gone()

    def _record_client_gone(self) -> None:
        self._trace.trouble = "client_gone"
        if not self._exchange.is_answered:
            self._trace.mark_undelivered()
