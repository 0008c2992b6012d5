"""The relay as its client sees it: a process in place of a server."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from holdfast.http1.server import serve
from holdfast.planes.mcp.config import build_relay_command
from holdfast.planes.mcp.relay import parse_arguments

ECHO = """
import sys
for line in sys.stdin:
    print("got " + line.strip(), flush=True)
    if line.strip() == "leave":
        print("bye", flush=True)
        sys.exit(5)
"""
STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(os.getpid(), flush=True)
time.sleep(60)
"""


def server(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", textwrap.dedent(code)]


def environ(**more: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "HOLDFAST_MCP"} | more


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def start(port: int, *command: str, name: str = "echo") -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *build_relay_command(), "--name", name, "--", *command,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env=environ(HOLDFAST_MCP=f"http://holdfast:secret@127.0.0.1:{port}"),
    )  # fmt: skip


def harness(talk, handle):
    """Runs `talk(port)` beside a harness that hands tunnels to `handle`; what came of it, and what was asked."""
    asked = []

    async def answer(exchange):
        asked.append((exchange.head.method, exchange.head.target, exchange.head.get("proxy-authorization")))
        await handle(await exchange.take_over())

    async def run():
        listener = await serve(answer)
        try:
            return await asyncio.wait_for(talk(listener.port), 20)
        finally:
            await listener.close()

    return asyncio.run(run()), asked


async def transparent(tunnel):
    """Lines go to the other side as they are."""
    partial = b""
    while data := await tunnel.read():
        *lines, partial = (partial + data).split(b"\n")
        for line in lines:
            other = {b"C": b"S", b"S": b"C"}.get(line[:1], line[:1])
            if other == b"X":
                tunnel.close()
                return
            await tunnel.write(other + line[1:] + b"\n")


def test_the_command_line_of_a_relay():
    assert parse_arguments(["--name", "n", "--", "a", "-b"]) == ("n", ["a", "-b"])
    assert parse_arguments(["--name=n", "a", "--name", "x"]) == ("n", ["a", "--name", "x"])
    assert parse_arguments(["--", "--name"]) == ("", ["--name"])
    assert parse_arguments([]) == ("", [])


def test_without_a_harness_it_becomes_the_server():
    command = [*build_relay_command(), "--", *server(ECHO)]
    done = subprocess.run(command, input=b"a\nleave\n", capture_output=True, env=environ(), timeout=20, check=False)
    assert (done.stdout, done.returncode, done.stderr) == (b"got a\ngot leave\nbye\n", 5, b"")


def test_lines_go_by_way_of_the_harness_and_the_exit_code_is_the_servers():
    async def talk(port):
        relay = await start(port, *server(ECHO), name="my echo/é")
        return await relay.communicate(b"a\n\nleave\n"), relay.returncode

    (said, code), asked = harness(talk, transparent)
    assert (said, code) == ((b"got a\ngot leave\nbye\n", b""), 5)
    assert asked == [("CONNECT", "holdfast.mcp:my%20echo%2F%C3%A9", "Basic aG9sZGZhc3Q6c2VjcmV0")]


def test_large_lines_both_ways_at_once_do_not_block():
    big = b"x" * 1_000_000

    async def talk(port):
        relay = await start(port, *server(ECHO))
        return await relay.communicate(b"".join([big + b"\n"] * 8))

    (out, _), _ = harness(talk, transparent)
    assert out == b"".join([b"got " + big + b"\n"] * 8)


def test_what_the_server_writes_to_stderr_passes():
    async def talk(port):
        relay = await start(port, *server("import sys; sys.stderr.write('careful'); sys.stdin.read()"))
        return await relay.communicate(b"")

    (said, _) = harness(talk, transparent)
    assert said == (b"", b"careful")


def test_no_trial_and_no_harness_are_said_in_one_line():
    async def refuse(exchange):
        await exchange.respond(503)

    async def run():
        listener = await serve(refuse)
        relay = await start(listener.port, "never-started")
        _, refused = await relay.communicate()
        await listener.close()
        gone = await start(listener.port, "never-started")
        return refused, relay.returncode, (await gone.communicate())[1], gone.returncode

    refused, first, gone, second = asyncio.run(run())
    assert refused == b"holdfast mcp-proxy: echo: Holdfast refused it (503): no trial is running\n"
    assert gone.startswith(b"holdfast mcp-proxy: echo: ")
    assert gone.count(b"\n") == 1
    assert (first, second) == (3, 3)


def test_a_server_that_is_not_there_is_said_in_one_line_and_told_to_the_harness():
    told = []

    async def listening(tunnel):
        told.append(await tunnel.read())

    async def talk(port):
        relay = await start(port, "no-such-server")
        return (await relay.communicate())[1], relay.returncode

    (said, code), _ = harness(talk, listening)
    assert said == b"holdfast mcp-proxy: echo: no-such-server cannot be started: No such file or directory\n"
    assert code == 127
    assert told == [b"X127 no-such-server cannot be started: No such file or directory\n"]


def test_the_end_of_the_client_ends_a_server_that_ignores_it():
    async def talk(port):
        relay = await start(port, *server(STUBBORN))
        pid = int(await relay.stdout.readline())
        begun = time.monotonic()
        relay.stdin.close()
        await relay.wait()
        return alive(pid), time.monotonic() - begun, relay.returncode

    (left, took, code), _ = harness(talk, transparent)
    assert not left
    assert took < 6
    assert code == 128 + signal.SIGKILL


def test_the_end_of_the_trial_ends_the_server_and_says_so():
    async def handle(tunnel):
        assert (await tunnel.read()).startswith(b"S")
        await tunnel.write(b"Cready\n")
        await asyncio.sleep(0.2)
        tunnel.connection.abort()

    async def talk(port):
        relay = await start(port, *server("import os, time; print(os.getpid(), flush=True); time.sleep(60)"))
        ready = await relay.stdout.readline()
        said = await relay.stderr.read()  # communicate() would end the client's input, from Python 3.12 on
        return ready, said, await relay.wait()

    got, _ = harness(talk, handle)
    assert got == (b"ready\n", b"holdfast mcp-proxy: echo: Holdfast closed the connection; the trial is over\n", 3)


@pytest.mark.parametrize(("number", "code"), [(b"9", 137), (b"15", 143)])
def test_a_killed_server_closes_the_clients_pipe_and_its_words_are_lost(number, code):
    async def handle(tunnel):
        await tunnel.read()
        await tunnel.write(b"K" + number + b"\n")
        while await tunnel.read():
            pass

    async def talk(port):
        relay = await start(port, *server("import time; print('hello', flush=True); time.sleep(60)"))
        out, said = await relay.communicate()
        return out, said, relay.returncode

    begun = time.monotonic()
    got, _ = harness(talk, handle)
    assert got == (b"", b"", code)
    assert time.monotonic() - begun < 5


def left(port, *, before):
    """A client that closes what it reads from: before it asks, or when it has an answer."""
    command = [*build_relay_command(), "--", *server(ECHO)]
    env = environ(HOLDFAST_MCP=f"http://holdfast:secret@127.0.0.1:{port}")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as relay:
        assert relay.stdin is not None
        assert relay.stdout is not None
        relay.stdin.write(b"a\n")
        relay.stdin.flush()
        assert relay.stdout.readline() == b"got a\n"
        if before:
            os.kill(relay.pid, signal.SIGSTOP)
            relay.stdout.close()
            relay.stdin.write(b"b\n")
            relay.stdin.close()
            os.kill(relay.pid, signal.SIGCONT)
        else:
            relay.stdout.close()
        return relay.wait(20)


@pytest.mark.parametrize("before", [True, False])
def test_the_harness_is_told_that_nobody_reads_what_the_server_says(before):
    marks = []

    class Heard:
        def __init__(self, tunnel):
            self.write, self.close, self._tunnel = tunnel.write, tunnel.close, tunnel

        async def read(self):
            data = await self._tunnel.read()
            marks.extend(data.splitlines())
            if not before and b"G1" in marks:
                return b""
            return data

    async def handle(tunnel):
        await transparent(Heard(tunnel))
        tunnel.close()

    harness(lambda port: asyncio.to_thread(left, port, before=before), handle)
    assert marks[:3] == [b"Ca", b"Sgot a", b"G1"]
    assert marks[3:4] == ([b"Cb"] if before else [])


def test_a_signal_to_the_relay_ends_the_server():
    async def talk(port):
        relay = await start(port, *server(STUBBORN))
        pid = int(await relay.stdout.readline())
        relay.send_signal(signal.SIGTERM)
        await relay.wait()
        return alive(pid), relay.returncode

    (left, code), _ = harness(talk, transparent)
    assert not left
    assert code == 143


def test_a_server_that_leaves_a_process_behind_with_its_pipe_does_not_hold_the_relay():
    code = (
        "import os, time\nprint('on', flush=True)\nif os.fork() == 0:\n    time.sleep(8)\n    os._exit(0)\nos._exit(4)"
    )

    async def talk(port):
        relay = await start(port, *server(code))
        begun = time.monotonic()
        line = await relay.stdout.readline()
        while relay.returncode is None:  # `wait` would also wait for the pipe that the process left behind holds
            await asyncio.sleep(0.02)
        relay._transport.close()
        return line, relay.returncode, time.monotonic() - begun

    (line, code, took), _ = harness(talk, transparent)
    assert (line, code) == (b"on\n", 4)
    assert took < 6


def test_the_proxy_command_is_the_relay(tmp_path):
    run = [sys.executable, "-c", "from holdfast.cli import main; main()", "mcp-proxy", "--", *server(ECHO)]
    done = subprocess.run(
        run, input=b"leave\n", capture_output=True, env=environ(), cwd=tmp_path, timeout=30, check=False
    )
    assert (done.stdout, done.returncode) == (b"got leave\nbye\n", 5)
    none = subprocess.run(run[:4], capture_output=True, env=environ(), timeout=30, check=False)
    assert none.returncode == 4
    assert b"Missing argument" in none.stderr
