"""Probes of HTTP, HTTPS and the model APIs by real clients that have the environment variables of an agent."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from holdfast.doctor.probe_site import MODEL_REPLY, SERVER_REPLY, Absent, ProbeSite, Unmet, read_output
from holdfast.execute.context import LiveContext
from holdfast.http1.client import Upstreams
from holdfast.model.completion import Completion
from holdfast.model.scenario import Injection, Schedule
from holdfast.planes.http.trust import TRUST_VARIABLES
from holdfast.planes.llm.codecs.formats import find_route

STATUS = 503

_REQUESTS = """
import sys, urllib.error, urllib.request
for url in sys.argv[1:]:
    try:
        with urllib.request.urlopen(url, timeout=10) as reply:
            print(reply.status, reply.read().decode())
    except urllib.error.HTTPError as refused:
        print(refused.code)
    except OSError as broken:
        print(broken)
"""
_PYTHON = [sys.executable, "-I", "-c", _REQUESTS]

_NODE = """
const http = require('http'), https = require('https'), tls = require('tls')
const [way, text] = process.argv.slice(1), url = new URL(text), proxy = new URL(process.env.HTTPS_PROXY)
const password = Buffer.from(proxy.username + ':' + proxy.password).toString('base64')
const agent = () => new Promise((resolve, reject) => http.request({host: proxy.hostname, port: proxy.port,
  method: 'CONNECT', path: url.host, headers: {'proxy-authorization': 'Basic ' + password}}).on('error', reject)
  .on('connect', (_, socket) => https.get(url, {createConnection: () => tls.connect({socket, servername: url.hostname})
  }, resolve).on('error', reject)).end())
const report = words => { console.log(words + '\\n' + process.version); process.exit() }
const fail = broken => report(broken.cause ? broken.cause.code || String(broken.cause) : broken.code || broken.message)
const request = way === 'fetch' ? fetch(url) : agent()
request.then(reply => report(reply.statusCode || reply.status), fail)
"""
"""Sends a request with `fetch`, or like a proxy agent: its own CONNECT, then TLS."""

_NO_PROXY = "the program must use HTTPS_PROXY or HTTP_PROXY, which Holdfast sets"
_NO_TRUST = "the program must trust the certificate file in one of these variables, which Holdfast sets: " + ", ".join(
    TRUST_VARIABLES
)
_OLD_NODE = (
    "use Node 18 or newer, which uses HTTPS_PROXY because Holdfast sets NODE_OPTIONS, or use a proxy agent; calls to "
    "the base URL of its model are seen with any version"
)


async def try_http(probe_site: ProbeSite) -> str:
    """Send one request that must pass to a local server and one that must meet its fault."""
    passing, failing = f"{probe_site.plain}passed", f"{probe_site.plain}met"
    context, out, err = await _send_requests(probe_site, "http", failing, [*_PYTHON, passing, failing])
    passed, _, refused = out.strip().partition("\n")
    _check(context, failing, refused, err, _NO_PROXY)
    if passed != f"200 {SERVER_REPLY}":
        raise Unmet(f"an untouched request did not reach a local server: {passed or err.strip()[:300]}", _NO_PROXY)
    return "python's urllib: one call passed, one met its fault"


async def try_python(probe_site: ProbeSite) -> str:
    """HTTPS with the interpreter that runs Holdfast."""
    return await _try(probe_site, "python", _PYTHON, "python's urllib")


async def try_curl(probe_site: ProbeSite) -> str:
    """HTTPS with curl, if it is installed."""
    curl = _find_program(probe_site, "curl")
    words = [curl, "-sS", "--max-time", "10", "-o", "/dev/null", "-w", "%{http_code}"]
    return await _try(probe_site, "curl", words, curl)


async def try_node(probe_site: ProbeSite, way: str) -> str:
    """HTTPS with Node: `fetch`, or an `agent` that opens the tunnel itself."""
    node, url = _find_program(probe_site, "node"), f"{probe_site.secure}{way}"
    context, out, err = await _send_requests(probe_site, f"node {way}", url, [node, "-e", _NODE, way, url])
    status, _, version = out.strip().partition("\n")
    _check(context, url, status, err, _OLD_NODE if way == "fetch" else _NO_PROXY, f"node {version}: ")
    return f"node {version}: a fault met inside TLS"


async def _try(probe_site: ProbeSite, name: str, argv: list[str], client: str) -> str:
    url = f"{probe_site.secure}{name}"
    context, out, err = await _send_requests(probe_site, f"https {name}", url, [*argv, url])
    _check(context, url, out, err, _NO_PROXY, f"{client}: ")
    return f"{client}: a fault met inside TLS"


async def _send_requests(
    probe_site: ProbeSite, name: str, failing: str, argv: Sequence[str]
) -> tuple[LiveContext, str, str]:
    """Run a client in a trial with an error at the URL `failing`; return its context, stdout and stderr."""
    fault = Injection("tool", "*", "error", {"error_code": STATUS}, match_url=failing)
    async with probe_site.open_trial(name, fault) as (environ, context):
        return context, *await read_output(argv, environ)


def _find_program(probe_site: ProbeSite, name: str) -> str:
    program = shutil.which(name, path=probe_site.environ.get("PATH"))
    if program is None:
        raise Absent(f"{name} is not installed")
    return program


def _check(context: LiveContext, url: str, out: str, err: str, fix: str, who: str = "") -> None:
    """Raise Unmet unless the program received the fault's status and the ledger has the fault."""
    met = any(one.target == url and one.effect == "met" for one in context.injector.ledger)
    if met and out.split()[:1] == [str(STATUS)]:
        return
    words = out.strip() or err.strip()[-300:]
    if any(event.error_type == "certificate_refused" for event in context.sink.trace) and not met:
        raise Unmet(f"{who}it rejected Holdfast's certificate: {words}", _NO_TRUST, code="certificate-refused")
    if met:
        raise Unmet(f"{who}the fault fired, but the program did not receive it: {words}", fix)
    raise Unmet(f"{who}its call bypassed the proxy: {words}", fix, code="proxy-bypassed")


# -- formats ---------------------------------------------------------------------------------------
FIX = "allow programs to connect to 127.0.0.1; a firewall, a sandbox or a container rule may forbid it"

_MESSAGES = [{"role": "user", "content": "Count."}]
_CUT = "one two"
_FAULT = Injection("llm", "*", "truncated_response", {"max_tokens": 2}, Schedule(every=2))


class ApiFormat(Struct, frozen=True):
    """How to call one model API."""

    name: str
    variable: str
    """The environment variable with the API's base URL."""
    path: str
    body: dict[str, Any]
    stream_path: str = ""
    """The path for streams, if the API has one; otherwise the body asks for a stream."""

    def request(self, base: str, stream: bool) -> tuple[str, bytes]:
        """Return the URL and the body of a request."""
        if self.stream_path:
            return base + (self.stream_path if stream else self.path), msgspec.json.encode(self.body)
        return base + self.path, msgspec.json.encode({**self.body, "stream": stream})


_MODEL = "/v1beta/models/doctor"
FORMATS = (
    ApiFormat("openai chat", "OPENAI_BASE_URL", "/chat/completions", {"model": "doctor", "messages": _MESSAGES}),
    ApiFormat("openai responses", "OPENAI_BASE_URL", "/responses", {"model": "doctor", "input": "Count."}),
    ApiFormat(
        "anthropic messages",
        "ANTHROPIC_BASE_URL",
        "/v1/messages",
        {"model": "doctor", "max_tokens": 50, "messages": _MESSAGES},
    ),
    ApiFormat(
        "gemini",
        "GOOGLE_GEMINI_BASE_URL",
        f"{_MODEL}:generateContent",
        {"contents": [{"role": "user", "parts": [{"text": "Count."}]}]},
        f"{_MODEL}:streamGenerateContent?alt=sse",
    ),
    ApiFormat("ollama", "OLLAMA_HOST", "/api/chat", {"model": "doctor", "messages": _MESSAGES}),
)


async def try_format(probe_site: ProbeSite, kind: ApiFormat) -> str:
    """Make every second call meet a fault, and check the responses and the ledger."""
    client = Upstreams()
    try:
        async with probe_site.open_trial(kind.name, _FAULT) as (environ, context):
            for stream in (False, True):
                request = kind.request(environ[kind.variable], stream)
                whole, cut = await _send(client, *request, stream), await _send(client, *request, stream)
                _compare("streamed" if stream else "plain", whole, cut)
    finally:
        await client.close()
    if len([met for met in context.injector.ledger if met.effect == "met"]) != 2:
        raise Unmet(f"the ledger has {len(context.injector.ledger)} faults, not 2", FIX)
    return "plain and streamed: a fault met on each"


def _compare(how: str, whole: Completion, cut: Completion) -> None:
    if whole.text != MODEL_REPLY:
        raise Unmet(f"{how}: an untouched reply arrived as {whole.display_text!r}", FIX)
    if cut.text.strip() != _CUT or cut.finish != "length":
        raise Unmet(f"{how}: instead of the fault, {cut.display_text!r} arrived", FIX)


async def _send(client: Upstreams, url: str, body: bytes, stream: bool) -> Completion:
    reply = await client.send("POST", url, (("content-type", "application/json"),), body)
    data = await reply.read(1_000_000)
    route = find_route("POST", urlsplit(url).path + "?" + urlsplit(url).query)
    if reply.status != 200 or route is None or route.codec is None:
        raise Unmet(f"status {reply.status}: {data[:200].decode('utf-8', 'replace')}", FIX)
    if not stream:
        return route.codec.read_reply(msgspec.json.decode(data))
    return route.codec.read_stream(data).build_completion()
