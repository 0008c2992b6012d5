"""A proxy with one trial behind it, and servers to reach through it; all on loopback, all in threads."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest import mock

import requests

from holdfast.http1.client import Upstreams
from holdfast.http1.server import Exchange, serve
from holdfast.model.scenario import Injection
from holdfast.planes.egress_policy import Policy
from holdfast.planes.http import trust
from holdfast.planes.http.authority import Authority
from holdfast.planes.http.proxy import Proxy
from holdfast.planes.http.proxy_rules import Connector, ProxyRules
from planes_kit import ASKED, FakeContext

ROWS = {"rows": [{"id": 1, "price": 189.3, "name": "first one"}, {"id": 2, "price": 250.0, "name": "second one"}]}


class Shop(BaseHTTPRequestHandler):
    """The upstream: JSON, text, bytes, and a count of what arrived."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        self.server.seen.append((self.command, self.path, b"", dict(self.headers)))
        path = self.path.partition("?")[0]
        if path == "/text":
            self._answer(b"plain words of some length\n" * 100, "text/plain")
        elif path == "/big":
            self._answer(b"0123456789" * 1_200_000, "application/octet-stream")
        elif path == "/gzip":
            import gzip

            self._answer(gzip.compress(json.dumps(ROWS).encode()), "application/json", ("content-encoding", "gzip"))
        elif path in ("/nothing", "/unchanged"):
            self.send_response(204 if path == "/nothing" else 304)
            self.end_headers()
        elif path == "/late":
            time.sleep(0.4)
            self._answer(b"late", "text/plain")
        elif path == "/missing":
            self._answer(b'{"error": "no such thing"}', "application/json", status=404)
        else:
            self._answer(json.dumps(ROWS).encode(), "application/json", ("x-own", "kept"), ("etag", '"1"'))

    do_HEAD = do_GET

    def do_POST(self) -> None:
        body = b"".join(self._chunks()) or self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.seen.append((self.command, self.path, body, dict(self.headers)))
        self._answer(json.dumps({"done": True, "bytes": len(body)}).encode(), "application/json")

    def _chunks(self) -> Iterator[bytes]:
        while self.headers.get("transfer-encoding") == "chunked":
            size = int(self.rfile.readline(), 16)
            yield self.rfile.read(size)
            self.rfile.readline()
            if not size:
                return

    def _answer(self, body: bytes, kind: str, *more: tuple[str, str], status: int = 200) -> None:
        self.send_response(status)
        for name, value in (("content-type", kind), ("content-length", str(len(body))), *more):
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    """An upstream on a port of its own."""

    daemon_threads = True

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Shop)
        self.seen: list[tuple[str, str, bytes, dict[str, str]]] = []
        scheme = "http"
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
            scheme = "https"
        self.url = f"{scheme}://localhost:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # clients of these tests leave in the middle


@contextlib.contextmanager
def served(context: ssl.SSLContext | None = None) -> Iterator[Server]:
    server = Server(context)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Bench:
    """A proxy at work for one trial."""

    def __init__(self, folder: Path, trust_file: str) -> None:
        self.authority = Authority(folder)
        self._trust_file = trust_file
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()
        self._upstreams = self.run(self._opened())

    async def _opened(self) -> Upstreams:
        return Upstreams()

    def run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(20)

    @contextlib.contextmanager
    def trial(
        self,
        injections: Sequence[Injection] = (),
        *,
        intercepted: Sequence[str] | None = None,
        declared: Sequence[str] = (),
        **more: Any,
    ) -> Iterator[Trial]:
        task = more.pop("task", ASKED)
        context = FakeContext(injections, task=task)
        named = [i.target if i.plane == "http" else i.match_url for i in injections]
        globs = [url for url in named if url] if intercepted is None else intercepted
        policy = more.pop("policy", None) or Policy([*declared, *globs])
        rules = ProxyRules(
            Connector(self._upstreams, policy, more.pop("services", {})),
            self.authority,
            policy,
            intercepted=globs,
            is_model=more.pop("is_model", lambda host: False),
            asks_model=more.pop("asks_model", lambda method, path, body: False),
            own=more.pop("own", None),
            environ=more.pop("environ", {}),
        )
        proxy = Proxy(rules, more.pop("model", None), more.pop("own_handler", None))
        assert not more, more

        async def handler(exchange: Exchange) -> None:
            await proxy.serve(exchange, context)

        with mock.patch.dict(os.environ, SSL_CERT_FILE=self._trust_file):  # as a user trusts servers of their own
            yield from self._served(handler, proxy, context)

    def _served(self, handler: Any, proxy: Proxy, context: FakeContext) -> Iterator[Trial]:
        listener = self.run(serve(handler))
        errors: list[Exception] = []
        listener.on_error = lambda exchange, error: errors.append(error)
        try:
            yield Trial(self, context, listener, proxy)
        finally:
            self.run(listener.close())
        assert not errors, errors

    def close(self) -> None:
        self.run(self._upstreams.close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class Trial:
    """What a client in a test needs."""

    def __init__(self, bench: Bench, context: FakeContext, listener: Any, plane: Proxy) -> None:
        self.context = context
        self.plane = plane
        self.run = bench.run
        self.listener = listener
        self.port = listener.port
        self.proxy = f"http://holdfast:token@127.0.0.1:{listener.port}"
        self.ca_file = bench.authority.ca_file
        self.environ = {
            **{name: value for name, value in os.environ.items() if "proxy" not in name.lower()},
            **trust.build_proxy_variables(self.proxy, True),
            **trust.build_trust_variables(bench.authority.ca_file, bench.authority.own_file, {}),
        }

    def session(self) -> requests.Session:
        session = requests.Session()
        session.trust_env = False
        session.proxies = {"http": self.proxy, "https": self.proxy}
        session.verify = self.ca_file
        return session

    def ask(self, method: str, url: str, **more: Any) -> requests.Response:
        with self.session() as session:
            return session.request(method, url, timeout=more.pop("timeout", 10), **more)

    def get(self, url: str, **more: Any) -> requests.Response:
        return self.ask("GET", url, **more)

    @property
    def met(self) -> list[tuple[str, str, str]]:
        return [(entry.plane, entry.mode, entry.effect) for entry in self.context.ledger]

    def events(self, count: int = 1) -> list[Any]:
        """The trace, once so many events are in it: an event is written when its call has ended."""
        wait_for(lambda: len(self.context.trace) >= count)
        return self.context.trace


def wait_for(true: Callable[[], bool], seconds: float = 5.0) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.005)
