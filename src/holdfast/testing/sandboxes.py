"""The contract of every sandbox backend, as checks that its author can run.

    failures = await check_backend(backend, folder)
    assert not failures

Each check opens its own sandboxes, and raises AssertionError if the backend breaks its protocol. A feature that the
backend reports as not enforced is not checked.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

from holdfast.errors import HarnessError, OutsideError
from holdfast.model.capabilities import THROWAWAY
from holdfast.protocols.sandbox import Disturbable, SandboxBackend
from holdfast.testing import ContractChecks
from holdfast.testing.sandbox_steps import (
    ENV,
    SOON_S,
    CommandLog,
    enforces,
    find_sleeping,
    open_sandbox,
    read,
    start,
    start_listening,
    wait_until,
    write_files,
)

_CALL = "import socket, sys; print(socket.create_connection((sys.argv[1], int(sys.argv[2])), 20).recv(99).decode())"


CHECKS: ContractChecks[SandboxBackend] = ContractChecks()
"""All of them, by name."""


async def check_backend(backend: SandboxBackend, folder: Path) -> dict[str, str]:
    """Run all checks and return the failures, by name. `folder` is for what they need outside."""
    return await CHECKS.run(backend, folder)


@CHECKS.add
async def check_isolation_reported(backend: SandboxBackend, folder: Path) -> None:
    """Every feature says whether it is enforced, and why not."""
    async with open_sandbox(backend) as place:
        for isolation in (backend.isolation, place.isolation):
            assert isolation, "a backend says what it enforces"
            assert len({one.feature for one in isolation}) == len(isolation), "one feature twice"
            assert all(one.enforced or one.why for one in isolation), "not enforced, but without a reason"


@CHECKS.add
async def check_commands(backend: SandboxBackend, folder: Path) -> None:
    async with open_sandbox(backend) as place:
        ran = await place.run(["sh", "-c", "cat; echo err >&2; exit 3"], ENV, stdin=b"said")
        assert (ran.exit_code, ran.stdout, ran.stderr) == (3, b"said", b"err\n"), ran
        assert not ran.timed_out
        assert ran.duration_ms > 0
        long = await place.run(["sh", "-c", "yes | head -c 100000; echo end"], ENV, keep=10)
        assert long.stdout == b"y\ny\ny\nend\n"[-10:], long


@CHECKS.add
async def check_timeout(backend: SandboxBackend, folder: Path) -> None:
    async with open_sandbox(backend) as place:
        began = time.monotonic()
        ran = await place.run(["sh", "-c", "echo on; sleep 600 & sleep 600"], ENV, timeout_s=1.0)
        assert ran.timed_out, ran
        assert ran.exit_code is None
        assert ran.stdout == b"on\n"
        assert time.monotonic() - began < SOON_S


@CHECKS.add
async def check_environment(backend: SandboxBackend, folder: Path) -> None:
    async with open_sandbox(backend) as place:
        ran = await place.run(["env"], {**ENV, "ONLY": "ä b=c\n2"})
        names = {line.split(b"=")[0] for line in ran.stdout.splitlines() if b"=" in line}
        assert names <= {b"PATH", b"ONLY", b"PWD"}, names
        assert "ONLY=ä b=c\n2\n".encode() in ran.stdout


@CHECKS.add
async def check_layers(backend: SandboxBackend, folder: Path) -> None:
    """Later layers win; none is ever written to."""
    low, high = folder / "low", folder / "high"
    write_files(low, {"a": "low", "both": "low", "d/x": "low"})
    write_files(high, {"both": "high", "d/y": "high"})
    async with open_sandbox(backend, layers=(low, high)) as place:
        ran = await place.run(["sh", "-c", "pwd; cat a both d/x d/y; echo new > both; rm a; rm -r d"], ENV)
        assert ran.stdout.decode() == f"{place.workspace}\nlowhighlowhigh", ran
        assert ran.exit_code == 0, ran
        listed = await place.run(["sh", "-c", "ls; cat both"], ENV)
        assert listed.stdout == b"both\nnew\n", listed
    assert (low / "a").read_text() == "low"
    assert (high / "both").read_text() == "high"
    assert (low / "d/x").exists()


@CHECKS.add
async def check_home(backend: SandboxBackend, folder: Path) -> None:
    """It is filled, writable, kept until the end, and its source is never written to."""
    write_files(folder / "home", {".config/agent": "given"})
    async with open_sandbox(backend, home=folder / "home") as place:
        env = {**ENV, "HOME": place.home}
        await place.snapshot()
        script = 'cat ~/.config/agent; echo state > ~/.state; echo more >> ~/.config/agent; mkdir -p "$HOME/a/b"; pwd'
        ran = await place.run(["sh", "-c", script], env)
        assert ran.stdout.decode() == f"given{place.workspace}\n", ran
        await place.run(["sh", "-c", "cat ~/.state; echo check > ~/.check"], env, throwaway=True)
        await place.freeze()
        assert [*place.changes()] == []
        assert (place.home_view() / ".state").read_text() == "state\n"
        thrown = next((one.enforced for one in place.isolation if one.feature == THROWAWAY), True)
        assert (place.home_view() / ".check").exists() != thrown
    assert (folder / "home/.config/agent").read_text() == "given"
    async with open_sandbox(backend) as other:
        ran = await other.run(["sh", "-c", 'ls -A "$HOME"'], {**ENV, "HOME": other.home})
        assert (ran.exit_code, ran.stdout) == (0, b""), ran


@CHECKS.add
async def check_programs(backend: SandboxBackend, folder: Path) -> None:
    async with open_sandbox(backend) as place:
        done = await start(place, ["sh", "-c", "exit 7"])
        assert await done.wait_for_end(SOON_S)
        assert done.ended
        assert done.status is not None
        assert os.waitstatus_to_exitcode(done.status) == 7
        assert not done.lost
        polite = await start(place, ["sh", "-c", "trap 'echo bye > said; exit 0' TERM; while :; do sleep 0.05; done"])
        await asyncio.sleep(0.5)
        assert not polite.ended
        await polite.end()
        assert polite.ended
        assert place.find("said") is not None, "SIGTERM did not arrive"
        stubborn = await start(place, ["sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"])
        await asyncio.sleep(0.5)
        await stubborn.end(0.3)
        assert stubborn.ended


@CHECKS.add
async def check_exec_error(backend: SandboxBackend, folder: Path) -> None:
    write_files(folder / "layer", {"plain": "no program"})
    async with open_sandbox(backend, layers=(folder / "layer",)) as place:
        for argv in (["no-such-program"], ["./missing"], ["./plain"]):
            try:
                await start(place, argv)
            except OSError:
                continue
            raise AssertionError(f"{argv} was started")


@CHECKS.add
async def check_daemons_end(backend: SandboxBackend, folder: Path) -> None:
    """A daemon does not outlive the program that started it."""
    async with open_sandbox(backend) as place:
        tick = "while :; do date +%s%N > next; mv next tick; sleep 0.05; done"
        await place.run(["sh", "-c", f"setsid sh -c '{tick}' >/dev/null 2>&1 & sleep 0.3"], ENV)
        before = await read(place, "tick")
        assert before
        await asyncio.sleep(0.4)
        assert await read(place, "tick") == before, "a daemon still writes"


@CHECKS.add
async def check_changes(backend: SandboxBackend, folder: Path) -> None:
    write_files(
        folder / "layer", {"kept": "k", "gone": "g", "changed": "c", "d/gone": "g", "d/kept": "k", "touched": "t"}
    )
    async with open_sandbox(backend, layers=(folder / "layer",)) as place:
        await place.run(["sh", "-c", "echo early > early"], ENV)
        await place.snapshot()
        assert [*place.changes()] == []
        script = "rm gone d/gone; echo more >> changed; echo n > d-new; mkdir -p n/e; echo 2 > early; touch touched"
        await place.run(["sh", "-c", script], ENV)
        await place.freeze()
        changes = [(one.path, one.op) for one in place.changes()]
    paths = {"changed": "modified", "d-new": "created", "d/gone": "deleted"}
    assert changes == [*{**paths, "early": "modified", "gone": "deleted", "n/e": "created"}.items()], changes


@CHECKS.add
async def check_freeze(backend: SandboxBackend, folder: Path) -> None:
    async with open_sandbox(backend) as place:
        running = await start(place, ["sh", "-c", "while :; do date +%s%N > tick; sleep 0.02; done"])
        await asyncio.sleep(0.5)
        await place.freeze()
        assert await running.wait_for_end(SOON_S)
        before = await read(place, "tick")
        await asyncio.sleep(0.2)
        assert await read(place, "tick") == before
        try:
            await start(place, ["true"])
        except HarnessError:
            return
        raise AssertionError("a program was started after the freeze")


@CHECKS.add
async def check_paths(backend: SandboxBackend, folder: Path) -> None:
    (folder / "secret").write_text("s")
    async with open_sandbox(backend) as place:
        script = (
            "echo in > file; mkdir d; ln -s ../file d/in; ln -s /etc out; ln -s ../.. up; ln -s self self; mkfifo pipe;"
            f"ln -s {place.workspace}/file absolute; "
            f"ln -s {folder}/secret secret; ln -s nowhere dangling"
        )
        assert (await place.run(["sh", "-c", script], ENV)).exit_code == 0
        await place.freeze()
        for path in ("file", "d/in", "absolute", "./d/../file"):
            file = place.find(path)
            assert file is not None, path
            assert file.read_text() == "in\n", path
        assert not [path for path in ("nothing", "file/below", "dangling") if place.find(path) is not None]
        assert place.find(".") is not None
        for path in ("out/passwd", "up", "self", "pipe", "secret", "../x", "/etc/passwd", "d/../../x"):
            try:
                file = place.find(path)
            except OutsideError:
                continue
            raise AssertionError(f"{path} gave {file}")


@CHECKS.add
async def check_view(backend: SandboxBackend, folder: Path) -> None:
    async with open_sandbox(backend) as place:
        await place.run(["sh", "-c", "mkdir d; echo in > d/file"], ENV)
        await place.freeze()
        view = place.view()
        assert (view / "d" / "file").read_text() == "in\n"
        with suppress(OSError):
            (view / "d" / "file").write_text("changed")
        assert await read(place, "d/file") == b"in\n"


@CHECKS.add
async def check_listeners(backend: SandboxBackend, folder: Path) -> None:
    address = ("127.0.1.1", 5432)
    async with open_sandbox(backend, listen=(address,)) as place:
        listener = place.listener(*address)
        loop = asyncio.get_running_loop()
        host, port = place.address(*address)
        calling = asyncio.create_task(place.run([sys.executable, "-c", _CALL, host, str(port)], ENV))
        async with asyncio.timeout(SOON_S):
            there, _ = await loop.sock_accept(listener)
        await loop.sock_sendall(there, b"from outside")
        there.close()
        ran = await calling
        assert ran.stdout == b"from outside\n", ran


@CHECKS.add
async def check_connect(backend: SandboxBackend, folder: Path) -> None:
    async with open_sandbox(backend) as place:
        program, port = await start_listening(place, accepts=True)
        way = await place.connect(port)
        async with asyncio.timeout(SOON_S):
            data = await asyncio.get_running_loop().sock_recv(way, 99)
        way.close()
        assert data == b"from inside", data
        assert await program.wait_for_end(SOON_S)
        try:
            (await place.connect(port)).close()
        except ConnectionRefusedError:
            return
        raise AssertionError("a connection succeeded although nothing listens")


@CHECKS.add
async def check_blocked_connect(backend: SandboxBackend, folder: Path) -> None:
    """Connections to a program that listens and never accepts do not block other work."""
    async with open_sandbox(backend) as place:
        _, port = await start_listening(place, accepts=False)
        waiting = [asyncio.create_task(place.connect(port)) for _ in range(8)]
        async with asyncio.timeout(SOON_S):
            ran = await place.run(["sh", "-c", "echo on"], ENV)
        for task in waiting:
            task.cancel()
        for way in await asyncio.gather(*waiting, return_exceptions=True):
            if not isinstance(way, BaseException):
                way.close()
        assert ran.stdout == b"on\n", ran


@CHECKS.add
async def check_kill(backend: SandboxBackend, folder: Path) -> None:
    """A kill affects only the agent: Holdfast's commands continue, and new programs can be started."""
    async with open_sandbox(backend) as place:
        if not isinstance(place, Disturbable):
            return
        assert await place.kill() == 0
        agent = await start(place, ["sh", "-c", "sleep 600 & sleep 600"])
        ours = asyncio.create_task(place.run(["sh", "-c", "echo > begun; sleep 1; exit 7"], ENV))
        assert await wait_until(lambda: place.find("begun") is not None), "our command did not begin"
        assert await place.kill() == 1
        assert await agent.wait_for_end(SOON_S)
        assert (await ours).exit_code == 7
        again = await place.run(["sh", "-c", "exit 3"], ENV)
        assert again.exit_code == 3, again


@CHECKS.add
async def check_visible_paths(backend: SandboxBackend, folder: Path) -> None:
    write_files(folder, {"seen/x": "seen", "file": "alone"})
    visible = {"/agent/folder": folder / "seen", "/agent/file": folder / "file"}
    async with open_sandbox(backend, visible=visible) as place:
        paths = [place.inside("/agent/folder") + "/x", place.inside("/agent/file")]
        ran = await place.run(["cat", *paths], ENV)
        assert ran.stdout == b"seenalone", ran


@CHECKS.add
async def check_throwaway(backend: SandboxBackend, folder: Path) -> None:
    if not enforces(backend, THROWAWAY):
        return
    write_files(folder / "layer", {"a": "a"})
    async with open_sandbox(backend, layers=(folder / "layer",)) as place:
        await place.run(["sh", "-c", "echo b > b; echo t > /tmp/t"], ENV)
        ran = await place.run(["sh", "-c", "cat a b /tmp/t; rm a b; echo c > c"], ENV, throwaway=True)
        assert ran.stdout == b"ab\nt\n", ran
        listed = await place.run(["ls"], ENV)
        assert listed.stdout == b"a\nb\n", listed


@CHECKS.add
async def check_separation(backend: SandboxBackend, folder: Path) -> None:
    async with open_sandbox(backend) as one, open_sandbox(backend) as other:
        await one.run(["sh", "-c", "echo 1 > mine"], ENV)
        assert other.find("mine") is None
        assert (await other.run(["ls"], ENV)).stdout == b""


@CHECKS.add
async def check_command_audit(backend: SandboxBackend, folder: Path) -> None:
    if not enforces(backend, "command audit"):
        return
    log = CommandLog()
    began = time.time()
    async with open_sandbox(backend, commands=log) as place:
        await place.run(["sh", "-c", "mkdir d; cd d; cat /dev/null 'a b' 2>/dev/null; no-such-command 2>&1"], ENV)
        await place.freeze()
    argvs = [list(command.argv) for command in log.commands]
    assert argvs[1:] == [["mkdir", "d"], ["cat", "/dev/null", "a b"]], argvs
    assert argvs[0][0] == "sh"
    assert log.commands[-1].cwd == f"{place.workspace}/d"
    assert all(began - 1 <= command.ts <= time.time() + 1 for command in log.commands)


@CHECKS.add
async def check_command_ends(backend: SandboxBackend, folder: Path) -> None:
    """With their exit codes; without one for those that a signal ends, including Holdfast's at the freeze."""
    if not enforces(backend, "command audit"):
        return
    log = CommandLog()
    script = "sleep 0.2; (exit 9); cat nothing; sh -c 'kill -9 $$'; sh -c 'exec sh -c \"exit 7\"'; sleep 60; true"
    async with open_sandbox(backend, commands=log) as place:
        await start(place, ["sh", "-c", script])
        assert await wait_until(lambda: log.commands[-1:] != [] and log.commands[-1].argv == ("sleep", "60")), log
        await place.freeze()
        ends = [(command.argv[0], end.exit_code) for command, (end,) in log.ended]
        slept = log.ended[1][1][0].duration_ms
    assert ends[:4] == [("sh", None), ("sleep", 0), ("cat", 1), ("sh", None)], ends
    assert ends[4:] == [("sh", 7), ("sh", 7), ("sleep", None)], ends
    assert slept is not None
    assert 190 <= slept < 10_000, slept


@CHECKS.add
async def check_concurrency(backend: SandboxBackend, folder: Path) -> None:
    async with open_sandbox(backend) as place:
        runs = [place.run(["sh", "-c", f"echo {n} > f{n}; cat f{n}"], ENV) for n in range(8)]
        assert [int(ran.stdout) for ran in await asyncio.gather(*runs)] == [*range(8)]


@CHECKS.add
async def check_close(backend: SandboxBackend, folder: Path) -> None:
    """A program that was never ended is ended by then."""
    mark = f"9{os.getpid()}{time.monotonic_ns() % 1_000_000}"
    async with open_sandbox(backend) as place:
        running = await start(place, ["sleep", mark])
        assert await wait_until(lambda: bool(find_sleeping(mark))), "it did not start"
    assert running.ended
    assert not find_sleeping(mark), "it still runs"
