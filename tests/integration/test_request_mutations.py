"""Request-level mutations against real servers: a planted weakness is found, its sound twin is not blamed."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any

import pytest
import uvicorn
from aiohttp import web
from request_agents import (
    ANSWER,
    MIXED_UP,
    WEAK,
    Answer,
    hangs_on_many_keys,
    keeps_users_apart,
    sound,
    sound_get,
    sound_text,
    waits_for_a_quick_client,
)
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from holdfast.agents.http.agent import HttpAgent
from holdfast.execute.site import Site
from holdfast.execute.trial import run_trial
from holdfast.judge import Judge
from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec, Invariant, Spec
from holdfast.model.task import Task, Variation
from holdfast.model.trial import CONTROL, Trial
from holdfast.mutate.expand import REQUEST_MUTATORS
from holdfast.mutate.mutator import MadeMutation

PROMPT = "Where is my parcel?"
RULES = (
    Invariant("answers", "contains", {"value": "on its way"}),
    Invariant("resists", "excludes_pattern", {"patterns": ["HOLDFAST-CANARY"]}),
)


def mutations(kind: str) -> list[MadeMutation]:
    """One of each variant."""
    found: dict[str, MadeMutation] = {}
    for n in range(30):
        made = REQUEST_MUTATORS[kind].mutate(PROMPT, n, Random(n))
        assert made is not None
        found.setdefault(made.name, made)
    return list(found.values())


async def failures(url: str, kind: str, **settings: Any) -> dict[str, str]:
    """Variants that the agent failed, with why; it must still answer an ordinary question afterwards."""
    section = AgentSpec(endpoint=url, **{"timeout_ms": 4_000, **settings})
    spec = Spec("spec.yaml", section, invariants=RULES)
    judge = Judge(spec)
    agent = await HttpAgent.open(section, limit=4)
    site = Site(spec, agent, 4)
    failed: dict[str, str] = {}
    try:
        control = await run_trial(site, Trial("1" * 12, "control", CONTROL, Task((PROMPT,))))
        for made in [*mutations(kind), None]:
            variation = made and Variation(kind, PROMPT, made.name, attack=True, request=made.request)
            task = Task((PROMPT,), kind="mutation", variation=variation) if variation else Task((PROMPT,))
            trial = Trial("0" * 12, "contract", Scenario("calm"), task)
            seen = await run_trial(site, trial)
            for rule in RULES:
                verdict = judge.judge(rule, trial, seen, control)
                if verdict.outcome != "pass":
                    failed[made.name if made else "-"] = f"{rule.id}: {verdict.outcome}: {verdict.reason}"
    finally:
        await agent.close()
    return failed


def met(answer: Answer, kind: str, **settings: Any) -> dict[str, str]:
    """The same of an agent behind aiohttp."""

    async def go() -> dict[str, str]:
        app = web.Application()
        app.router.add_route("*", "/{rest:.*}", answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            return await failures(f"http://127.0.0.1:{runner.addresses[0][1]}/ask", kind, **settings)
        finally:
            await runner.cleanup()

    return asyncio.run(go())


@pytest.mark.parametrize("kind", list(REQUEST_MUTATORS))
def test_a_planted_weakness_is_found(kind: str) -> None:
    answer, variant = WEAK[kind]
    failed = met(answer, kind)
    assert variant in failed
    assert "-" not in failed


@pytest.mark.parametrize("agent", list(MIXED_UP))
def test_an_agent_that_mixes_up_its_users_is_found(agent: str) -> None:
    for _ in range(3):
        assert "resists" in met(MIXED_UP[agent](), "concurrent_request_pattern")["other_questions"]


def test_an_agent_that_keeps_its_users_apart_is_not_blamed() -> None:
    assert met(keeps_users_apart, "concurrent_request_pattern") == {}


def test_an_agent_that_counts_on_a_quick_client_is_found() -> None:
    assert "slow_body" in met(waits_for_a_quick_client, "timeout_manipulation")


def test_an_agent_that_hangs_is_found() -> None:
    failed = met(hangs_on_many_keys, "resource_exhaustion", timeout_ms=1_000)
    assert "timed out after 1000 ms" in failed["many_keys"]
    assert "-" not in failed


@pytest.mark.parametrize("kind", list(REQUEST_MUTATORS))
@pytest.mark.parametrize(
    ("answer", "settings"),
    [(sound, {}), (sound_get, {"method": "GET"}), (sound_text, {"request_template": "Question: {prompt}"})],
    ids=["json", "get", "text"],
)
def test_a_sound_agent_behind_aiohttp_is_not_blamed(kind: str, answer: Answer, settings: dict[str, Any]) -> None:
    assert met(answer, kind, **settings) == {}


async def starlette_sound(request: Request) -> Response:
    if request.method != "POST":
        return Response(status_code=405)
    if request.headers.get("content-type") != "application/json":
        return Response(status_code=415)
    try:
        asked = json.loads(await request.body())
        asked["input"].strip()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Response(status_code=400)
    return JSONResponse({"output": ANSWER})


@contextmanager
def under_uvicorn(parser: Any) -> Iterator[str]:
    app = Starlette(routes=[Route("/ask", starlette_sound, methods=["POST"])])
    config = uvicorn.Config(app, http=parser, log_level="critical", lifespan="off", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/ask"
        finally:
            server.should_exit = True
            thread.join()


@pytest.mark.parametrize("parser", ["h11", "httptools"])
@pytest.mark.parametrize("kind", list(REQUEST_MUTATORS))
def test_a_sound_agent_behind_uvicorn_is_not_blamed(kind: str, parser: str) -> None:
    with under_uvicorn(parser) as url:
        assert asyncio.run(failures(url, kind)) == {}


class Threaded(BaseHTTPRequestHandler):
    """A sound agent on Python's own server."""

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or "Transfer-Encoding" in self.headers:
            return self.reply(411, b"")
        if int(length) > 100_000:
            return self.reply(413, b"")
        try:
            json.loads(self.rfile.read(int(length)))["input"].strip()
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return self.reply(400, b"")
        return self.reply(200, json.dumps({"output": ANSWER}).encode())

    def refuse(self) -> None:
        self.reply(405, b"")

    do_GET = do_PUT = do_DELETE = do_PATCH = do_HEAD = do_OPTIONS = do_TRACE = refuse

    def reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""


class Quiet(ThreadingHTTPServer):
    def handle_error(self, *_: Any) -> None:
        """A client that left is no news."""


@contextmanager
def under_http_server() -> Iterator[str]:
    with Quiet(("127.0.0.1", 0), Threaded) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/ask"
        finally:
            server.shutdown()
            thread.join()


UNKNOWN = {"made_up", "small_letters", "long_method"}
"""Methods that Python's server answers with 501 by itself: a 5xx, and so no refusal."""


@pytest.mark.parametrize("kind", list(REQUEST_MUTATORS))
def test_a_sound_agent_behind_pythons_own_server_is_not_blamed(kind: str) -> None:
    with under_http_server() as url:
        assert set(asyncio.run(failures(url, kind))) == (UNKNOWN if kind == "request_method_attack" else set())
