from __future__ import annotations

import asyncio
import subprocess
import sys

from aiohttp import web

from agent_http_servers import Plain, ask_web, opened, web_server
from holdfast.model.observation import Answer
from holdfast.model.task import Task


async def counting(request: web.Request) -> web.Response:
    """Answers how often this cookie's holder has come."""
    visits = int(request.cookies.get("visits", "0")) + 1
    response = web.json_response({"output": str(visits)})
    response.set_cookie("visits", str(visits))
    return response


def test_turns_of_a_trial_share_cookies() -> None:
    answer = ask_web(counting, "a", "b", "c")
    assert [(t.asked, t.text) for t in answer.turns] == [("a", "1"), ("b", "2"), ("c", "3")]


def test_trials_do_not_share_cookies() -> None:
    async def go() -> list[Answer]:
        async with web_server(counting) as url, opened(url) as agent:
            tasks = [Task(("a", "b")), Task(("a",)), Task(("a",)), Task(("a", "b"))]
            return [await agent.run(task, Plain()) for task in tasks]

    assert [[t.text for t in answer.turns] for answer in asyncio.run(go())] == [["1", "2"], ["1"], ["1"], ["1", "2"]]


def test_after_a_bad_turn_nothing_more_is_asked() -> None:
    async def handler(request: web.Request) -> web.Response:
        asked = (await request.json())["input"]
        return web.json_response({"output": asked}, status=500 if asked == "b" else 200)

    answer = ask_web(handler, "a", "b", "c")
    assert [(t.asked, t.ending) for t in answer.turns] == [("a", "answered"), ("b", "http_error")]


def test_trials_run_at_once_up_to_the_limit() -> None:
    now = most = 0

    async def handler(request: web.Request) -> web.Response:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.02)
        now -= 1
        return web.json_response({"output": (await request.json())["input"]})

    async def go() -> list[Answer]:
        async with web_server(handler) as url, opened(url) as agent:
            return await asyncio.gather(*(agent.run(Task((f"q{n}",)), Plain()) for n in range(12)))

    answers = asyncio.run(go())
    assert [a.turns[0].text for a in answers] == [f"q{n}" for n in range(12)]
    assert most == 4


def test_asking_over_http_makes_no_trust_for_tls_and_takes_no_other_client() -> None:
    code = """
import asyncio, ssl, sys
from unittest.mock import Mock
sys.path.insert(0, sys.argv[1])
ssl.create_default_context = Mock(side_effect=AssertionError("made"))
from holdfast.agents.http.agent import HttpAgent
from holdfast.model.spec import AgentSpec
from holdfast.model.task import Task
from holdfast.errors import AgentUnavailable
from unittest.mock import MagicMock

async def go():
    agent = await HttpAgent.open(AgentSpec(endpoint="http://127.0.0.1:9/"), limit=1)
    context = MagicMock(**{"injector.rewrite_turn": lambda text: text, "sink.has_limits": False})
    world = MagicMock(time_left_s=lambda: 1.0, context=context)
    try:
        await agent.run(Task(("hi",)), world)
    except AgentUnavailable:
        print("asked", *{"aiohttp", "yarl", "multidict"} & set(sys.modules))

asyncio.run(go())
"""
    done = subprocess.run([sys.executable, "-c", code, "."], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["asked"]
