"""Model calls in every format, plain and streamed: each as it is, and each with a fault on it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from holdfast.doctor.probe_site import SAID, ProbeSite, Unmet
from holdfast.http1.client import Upstreams
from holdfast.model.completion import Completion
from holdfast.model.spec import Injection, Schedule
from holdfast.planes.llm.codecs.formats import find

FIX = "let programs on this machine talk to 127.0.0.1: a firewall, a sandbox or a container rule may forbid it"

_MESSAGES = [{"role": "user", "content": "Count."}]
_CUT = "one two"
_FAULT = Injection("llm", "*", "truncated_response", {"max_tokens": 2}, Schedule(every=2))


class ApiFormat(Struct, frozen=True):
    """How one kind of API is asked."""

    name: str
    variable: str
    """What names its address in an agent's environment."""
    path: str
    body: dict[str, Any]
    stream_path: str = ""
    """Where a stream has an address of its own; else the body says it."""

    def request(self, base: str, stream: bool) -> tuple[str, bytes]:
        """URL and body."""
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
    """Every other call meets a fault; what arrives must say so, and the ledger too."""
    client = Upstreams()
    try:
        async with probe_site.trial(kind.name, _FAULT) as (environ, context):
            for stream in (False, True):
                request = kind.request(environ[kind.variable], stream)
                whole, cut = await _asked(client, *request, stream), await _asked(client, *request, stream)
                _compare("streamed" if stream else "plain", whole, cut)
    finally:
        await client.close()
    if len([met for met in context.ledger if met.effect == "met"]) != 2:
        raise Unmet(f"the ledger has {len(context.ledger)} faults, not 2", FIX)
    return "plain and streamed: a fault met on each"


def _compare(how: str, whole: Completion, cut: Completion) -> None:
    if whole.text != SAID:
        raise Unmet(f"{how}: an untouched reply arrived as {whole.shown!r}", FIX)
    if cut.text.strip() != _CUT or cut.finish != "length":
        raise Unmet(f"{how}: the fault did not arrive, but {cut.shown!r}", FIX)


async def _asked(client: Upstreams, url: str, body: bytes, stream: bool) -> Completion:
    reply = await client.send("POST", url, (("content-type", "application/json"),), body)
    data = await reply.read(1_000_000)
    route = find("POST", urlsplit(url).path + "?" + urlsplit(url).query)
    if reply.status != 200 or route is None or route.codec is None:
        raise Unmet(f"status {reply.status}: {data[:200].decode('utf-8', 'replace')}", FIX)
    if not stream:
        return route.codec.reply(msgspec.json.decode(data))
    reader = route.codec.reader()
    reader.feed(data)
    return reader.completion()
