"""HTTP agents that Holdfast starts: instances, ports, readiness, spares, workers, and how each bad one ends."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from launch_kit import PYTHON, SERVER, NotedPlanes, context_of, launched, python

from golden_words import Golden
from holdfast.agents.http import readiness
from holdfast.agents.http.instance import Ports, check_port_free
from holdfast.errors import AgentUnavailable, HarnessError
from holdfast.model.observation import Answer
from holdfast.model.task import Task
from holdfast.processes import program
from processes_kit import gone, marked
from refused import refused

URL = "http://127.0.0.1:{port}/ask"


async def run(agent: Any, *turns: str) -> Answer:
    answer: Answer = await agent.run(Task(turns or ("hi",)), context_of(*turns))
    return answer


def using(folder: Path, use: Callable[[Any], Awaitable[None]], code: str = SERVER, **settings: Any) -> None:
    """Opens an agent with that code, uses it, closes it; nothing of it may be left then."""
    mark = f"{os.getpid()}-{folder}"
    section = {"endpoint": URL, "command": "exec " + python(folder, code), "env": {"TEST_MARK": mark}, "spares": 0}

    async def go() -> None:
        async with launched(folder, **(section | settings)) as agent:
            await use(agent)

    try:
        asyncio.run(go())
    finally:
        assert gone("TEST_MARK", mark)


def free_port() -> int:
    return Ports().pick_port()


def test_fresh_gives_every_trial_an_instance_of_its_own_on_its_own_port(tmp_path: Path) -> None:
    async def use(agent: Any) -> None:
        first, second = await run(agent, "a", "env"), await run(agent, "a", "env")
        assert [first.turns[0].text, second.turns[0].text] == ["1", "1"]
        assert first.turns[1].text != second.turns[1].text
        assert first.output == "asked a\nasked env\n"

    using(tmp_path, use)


def test_worker_keeps_one_instance_and_a_reset_brings_it_back(tmp_path: Path) -> None:
    async def kept(agent: Any) -> None:
        assert [(await run(agent)).turns[0].text for _ in range(3)] == ["1", "2", "3"]
        assert (await run(agent)).output == "asked hi\n"

    using(tmp_path, kept, isolation="worker")

    async def reset(agent: Any) -> None:
        assert [(await run(agent)).turns[0].text for _ in range(3)] == ["1", "1", "1"]

    body = SERVER.replace('int(self.headers["Content-Length"])', 'int(self.headers["Content-Length"] or 0)')
    using(tmp_path, reset, body, isolation="worker", reset_endpoint="/reset")


def test_a_reset_that_fails_is_an_error_of_ours(tmp_path: Path) -> None:
    async def use(agent: Any) -> None:
        with pytest.raises(HarnessError, match="reset by POST"):
            await run(agent)

    using(tmp_path, use, isolation="worker", reset_endpoint="http://127.0.0.1:9/reset")


def test_spares_are_started_ahead_so_that_no_trial_waits(tmp_path: Path) -> None:
    async def use(agent: Any) -> None:
        await run(agent)
        await asyncio.sleep(1.3)
        began = time.perf_counter()
        await run(agent, "pid")
        assert time.perf_counter() - began < 0.5
        await asyncio.sleep(1.3)
        assert len(marked("TEST_MARK", f"{os.getpid()}-{tmp_path}")) == 1

    using(tmp_path, use, "import time; time.sleep(0.6)\n" + SERVER, spares=1)


def test_a_spare_that_died_while_it_waited_is_not_asked(tmp_path: Path) -> None:
    async def use(agent: Any) -> None:
        for pid in marked("TEST_MARK", f"{os.getpid()}-{tmp_path}"):
            os.kill(pid, 9)
        await asyncio.sleep(0.1)
        assert (await run(agent)).turns[0].text == "1"

    using(tmp_path, use, spares=1)


def test_trials_at_once_have_instances_of_their_own(tmp_path: Path) -> None:
    async def use(agent: Any) -> None:
        assert agent.limit == 3
        seen = await asyncio.gather(*(run(agent, "pid") for _ in range(3)))
        assert len({answer.turns[0].text for answer in seen}) == 3

    using(tmp_path, use, limit=3)
    using(tmp_path, use, limit=3, isolation="worker")


def test_an_endpoint_without_a_place_has_one_instance_at_a_time(tmp_path: Path) -> None:
    port = free_port()

    async def use(agent: Any) -> None:
        assert (agent.limit, len(agent.notes)) == (1, 1)
        seen = await asyncio.gather(*(run(agent, "env") for _ in range(3)))
        assert [answer.turns[0].text for answer in seen] == [f"{port} -"] * 3

    using(tmp_path, use, endpoint=f"http://127.0.0.1:{port}/ask", limit=4, spares=None)


def test_a_taken_port_is_named_with_the_way_out(tmp_path: Path) -> None:
    async def never(agent: Any) -> None:
        raise AssertionError

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(AgentUnavailable, match=f"port {port} is already taken") as raised:
            using(tmp_path, never, endpoint=f"http://127.0.0.1:{port}/ask")
    assert "{port}" in raised.value.hint
    check_port_free("127.0.0.1", port)


def test_the_place_is_filled_in_the_command_its_arguments_and_its_environment(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text("import os, sys; os.environ['PORT'] = sys.argv[1]\n" + SERVER)

    async def use(agent: Any) -> None:
        port, address = ((await run(agent, "env")).turns[0].text or "").split()
        assert port == address

    using(tmp_path, use, command=f"{PYTHON} server.py {{port}}", env={"ADDRESS": "{port}"})
    using(tmp_path, use, command=None, binary=PYTHON, args=("server.py", "{port}"), env={"ADDRESS": "{port}"})


@pytest.mark.parametrize(
    "ready", ["http://127.0.0.1:{port}/health", "port", "{port}", "listening on", r"list\w+ on \d+"]
)
def test_each_way_to_be_ready(tmp_path: Path, ready: str) -> None:
    code = SERVER.replace(".serve_forever()", "") + "\n"
    late = code.replace("http.server.ThreadingHTTPServer(", "server = http.server.ThreadingHTTPServer(")
    late += "print('listening on', os.environ['PORT'], flush=True)\nserver.serve_forever()\n"

    async def use(agent: Any) -> None:
        assert (await run(agent)).turns[0].text == "1"

    using(tmp_path, use, "import time; time.sleep(0.3)\n" + late, ready=ready)


async def unused(agent: Any) -> None:
    raise AssertionError("it must not be ready")


def test_an_agent_that_exits_before_it_is_ready_says_why(tmp_path: Path) -> None:
    with refused("agent-not-ready") as raised:
        using(tmp_path, unused, "import sys; print('no key'); sys.exit(5)")
    assert raised.value.body == "no key\n"
    assert (raised.value.config, raised.value.key) == (True, "agent.command")


def test_a_command_that_is_not_there_is_an_error_of_the_spec(tmp_path: Path) -> None:
    with pytest.raises(AgentUnavailable, match="not found") as raised:
        using(tmp_path, unused, command="no-such-agent-x")
    assert raised.value.config


@pytest.mark.parametrize("ready", [None, "it is up"])
def test_an_agent_that_is_never_ready_is_ended_with_its_last_words(
    tmp_path: Path, ready: str | None, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setattr(readiness, "READY_S", 1.2)
    with refused("agent-not-ready") as raised:
        using(tmp_path, unused, "import time; print('loading'); time.sleep(60)", ready=ready)
    assert raised.value.body == "loading\n"
    golden(str(raised.value))


def test_a_url_that_answers_500_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "READY_S", 1.0)
    broken = SERVER.replace("self.send_response(200)", "self.send_response(503)")
    with pytest.raises(AgentUnavailable, match="never answered with a status below 500"):
        using(tmp_path, unused, broken, ready="http://127.0.0.1:{port}/")


@pytest.mark.parametrize("isolation", ["fresh", "worker"])
def test_an_instance_that_dies_while_it_answers_crashed(tmp_path: Path, isolation: str, golden: Golden) -> None:
    async def use(agent: Any) -> None:
        answer = await run(agent, "a", "dies")
        assert [turn.ending for turn in answer.turns] == ["answered", "crashed"]
        golden(answer.turns[1].detail)
        assert answer.output.endswith("no luck\n")
        assert (await run(agent)).turns[0].text == "1"

    using(tmp_path, use, isolation=isolation)


def test_an_instance_that_died_before_it_was_asked_crashed_too(tmp_path: Path) -> None:
    """It has ended its own server between two turns: refused, but by an agent that was ready."""
    code = SERVER.replace(
        "def pid(): ", "import threading\ndef pid():\n    threading.Timer(0.05, os._exit, (4,)).start()\n    "
    )

    async def use(agent: Any) -> None:
        context = context_of("pid", "a")
        context.injector.rewrite_turn = lambda text: (time.sleep(0.3) if text == "a" else None) or text  # type: ignore[method-assign]
        answer = await agent.run(Task(("pid", "a")), context)
        assert [turn.ending for turn in answer.turns] == ["answered", "crashed"]
        assert "exited with code 4" in answer.turns[1].detail

    using(tmp_path, use, code)


@pytest.mark.parametrize("isolation", ["fresh", "worker"])
def test_an_answer_after_the_timeout_is_dropped_and_the_instance_replaced(tmp_path: Path, isolation: str) -> None:
    async def use(agent: Any) -> None:
        seen = [(await run(agent, prompt)).turns[0] for prompt in ("a", "hangs", "b")]
        assert [turn.ending for turn in seen] == ["answered", "timeout", "answered"]
        assert seen[2].text == "1"

    using(tmp_path, use, isolation=isolation, timeout_ms=700)


def test_daemons_and_floods_leave_nothing(tmp_path: Path, golden: Golden) -> None:
    async def use(agent: Any) -> None:
        assert (await run(agent, "daemon")).turns[0].text == "left one"
        assert marked("TEST_MARK", f"{os.getpid()}-{tmp_path}") == []
        flood = await run(agent, "floods")
        assert flood.turns[0].text == "said"
        assert len(flood.output) <= 64_000
        golden(flood.notes[0])

    using(tmp_path, use)


@pytest.mark.parametrize("shell", ["exec ", ""])
def test_an_instance_that_ignores_sigterm_is_killed_and_noted(
    tmp_path: Path, shell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "GRACE_S", 0.4)

    async def use(agent: Any) -> None:
        assert (await run(agent)).notes == (program.KILLED,)

    using(tmp_path, use, env={"DEAF": "1"}, command=f"{shell}{PYTHON} agent.py")


def test_an_agent_behind_a_shell_has_its_grace_too(tmp_path: Path) -> None:
    code = "import atexit, signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit())\n" + SERVER
    code = code.replace(
        'print("starting"', 'atexit.register(lambda: (time.sleep(0.3), open("tidied", "w")))\nprint("starting"'
    )

    async def use(agent: Any) -> None:
        assert (await run(agent)).notes == ()
        assert (tmp_path / "tidied").exists()

    using(tmp_path, use, code, command=f"{PYTHON} agent.py && true")


def test_an_interrupt_ends_the_instance_at_once(tmp_path: Path) -> None:
    async def use(agent: Any) -> None:
        task = asyncio.create_task(run(agent, "hangs"))
        await asyncio.sleep(0.6)
        task.cancel()
        began = time.perf_counter()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.perf_counter() - began < 1
        assert marked("TEST_MARK", f"{os.getpid()}-{tmp_path}") == []

    using(tmp_path, use)


def test_an_interrupt_while_instances_start_leaves_nothing(tmp_path: Path) -> None:
    async def use(agent: Any) -> None:
        tasks = [asyncio.create_task(run(agent)) for _ in range(3)]
        await asyncio.sleep(0.2)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    using(tmp_path, use, "import time; time.sleep(0.5)\n" + SERVER, limit=3, spares=2)


@pytest.mark.parametrize(("isolation", "opened"), [("fresh", 2), ("worker", 1)])
def test_an_address_opens_and_closes_with_its_instance_and_carries_each_trial(
    tmp_path: Path, isolation: str, opened: int
) -> None:
    planes = NotedPlanes()

    async def use(agent: Any) -> None:
        for _ in range(2):
            said = (await run(agent, "env")).turns[0].text or ""
            assert said.split()[1] in [address.environ["ADDRESS"] for address in planes.addresses]

    using(tmp_path, use, isolation=isolation, planes=planes)
    assert len(planes.addresses) == opened
    assert sum(len(address.carried) for address in planes.addresses) == 2
    assert all(address.closed and not address.carries for address in planes.addresses)


def test_an_address_is_closed_when_its_instance_cannot_be_started(tmp_path: Path) -> None:
    planes = NotedPlanes()
    with pytest.raises(AgentUnavailable):
        using(tmp_path, unused, "raise SystemExit(1)", planes=planes)
    assert [address.closed for address in planes.addresses] == [True]


def test_ports_come_from_below_the_range_of_outgoing_connections_and_not_twice_in_a_row() -> None:
    ports = Ports()
    taken = [ports.pick_port() for _ in range(50)]
    assert len(set(taken)) == 50
    assert all(20_000 <= port < 32_768 for port in taken)
