"""What every sandbox backend must keep, as checks that its author can run.

    failures = await check_backend(backend, folder)
    assert not failures

Each check opens sandboxes of its own, and raises AssertionError where the backend breaks its protocol. What a backend
reports as not enforced is not asked of it.

Over 400 lines, since whoever writes a backend reads its whole contract here, a check a function.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from holdfast.errors import HarnessError, OutsideError
from holdfast.model.capabilities import THROWAWAY
from holdfast.protocols.sandbox import (
    Command,
    CommandEnd,
    Disturbable,
    Sandbox,
    SandboxBackend,
    SandboxSpec,
    Started,
    Stdio,
)
from holdfast.testing.kit import failed_checks

SandboxCheck = Callable[[SandboxBackend, Path], Awaitable[None]]
ENV: Mapping[str, str] = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
_SOON_S = 20.0
"""Long, as a busy machine is no fault of a backend's."""
_LISTEN = """
import socket, sys
here = socket.create_server(("127.0.0.1", 0))
print(here.getsockname()[1], flush=True)
there, _ = here.accept()
there.sendall(b"from inside")
"""
_DEAF = """
import socket, time
here = socket.socket()
here.bind(("127.0.0.1", 0))
here.listen(0)
print(here.getsockname()[1], flush=True)
time.sleep(600)
"""
_CALL = "import socket, sys; print(socket.create_connection((sys.argv[1], int(sys.argv[2])), 20).recv(99).decode())"


async def check_backend(backend: SandboxBackend, folder: Path) -> dict[str, str]:
    """Runs all checks; what failed, by name. `folder` is for what they need outside."""
    return await failed_checks(CHECKS, backend, folder)


async def isolation_is_told(backend: SandboxBackend, folder: Path) -> None:
    """Every promise says whether it is kept, and why not."""
    async with _open(backend) as place:
        for told in (backend.isolation, place.isolation):
            assert told, "a backend says what it enforces"
            assert len({one.feature for one in told}) == len(told), "one feature twice"
            assert all(one.enforced or one.why for one in told), "not enforced, and no reason"


async def commands_run(backend: SandboxBackend, folder: Path) -> None:
    async with _open(backend) as place:
        ran = await place.run(["sh", "-c", "cat; echo err >&2; exit 3"], ENV, stdin=b"said")
        assert (ran.exit_code, ran.stdout, ran.stderr) == (3, b"said", b"err\n"), ran
        assert not ran.timed_out
        assert ran.duration_ms > 0
        long = await place.run(["sh", "-c", "yes | head -c 100000; echo end"], ENV, keep=10)
        assert long.stdout == b"y\ny\ny\nend\n"[-10:], long


async def a_timeout_ends_everything(backend: SandboxBackend, folder: Path) -> None:
    async with _open(backend) as place:
        began = time.monotonic()
        ran = await place.run(["sh", "-c", "echo on; sleep 600 & sleep 600"], ENV, timeout_s=1.0)
        assert ran.timed_out, ran
        assert ran.exit_code is None
        assert ran.stdout == b"on\n"
        assert time.monotonic() - began < _SOON_S


async def the_environment_is_as_given(backend: SandboxBackend, folder: Path) -> None:
    async with _open(backend) as place:
        ran = await place.run(["env"], {**ENV, "ONLY": "ä b=c\n2"})
        names = {line.split(b"=")[0] for line in ran.stdout.splitlines() if b"=" in line}
        assert names <= {b"PATH", b"ONLY", b"PWD"}, names
        assert "ONLY=ä b=c\n2\n".encode() in ran.stdout


async def layers_make_the_workspace(backend: SandboxBackend, folder: Path) -> None:
    """Later ones win; none is ever written to."""
    low, high = folder / "low", folder / "high"
    _write(low, {"a": "low", "both": "low", "d/x": "low"})
    _write(high, {"both": "high", "d/y": "high"})
    async with _open(backend, layers=(low, high)) as place:
        ran = await place.run(["sh", "-c", "pwd; cat a both d/x d/y; echo new > both; rm a; rm -r d"], ENV)
        assert ran.stdout.decode() == f"{place.workspace}\nlowhighlowhigh", ran
        assert ran.exit_code == 0, ran
        left = await place.run(["sh", "-c", "ls; cat both"], ENV)
        assert left.stdout == b"both\nnew\n", left
    assert (low / "a").read_text() == "low"
    assert (high / "both").read_text() == "high"
    assert (low / "d/x").exists()


async def a_home_is_no_part_of_the_workspace(backend: SandboxBackend, folder: Path) -> None:
    """It is filled, writable, kept till the end, and its source is never written to."""
    _write(folder / "home", {".config/agent": "given"})
    async with _open(backend, home=folder / "home") as place:
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
    async with _open(backend) as other:
        ran = await other.run(["sh", "-c", 'ls -A "$HOME"'], {**ENV, "HOME": other.home})
        assert (ran.exit_code, ran.stdout) == (0, b""), ran


async def programs_start_and_end(backend: SandboxBackend, folder: Path) -> None:
    async with _open(backend) as place:
        done = await _start(place, ["sh", "-c", "exit 7"])
        assert await done.within(_SOON_S)
        assert done.ended
        assert done.status is not None
        assert os.waitstatus_to_exitcode(done.status) == 7
        assert not done.lost
        polite = await _start(place, ["sh", "-c", "trap 'echo bye > said; exit 0' TERM; while :; do sleep 0.05; done"])
        await asyncio.sleep(0.5)
        assert not polite.ended
        await polite.end()
        assert polite.ended
        assert place.find("said") is not None, "SIGTERM did not arrive"
        stubborn = await _start(place, ["sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"])
        await asyncio.sleep(0.5)
        await stubborn.end(0.3)
        assert stubborn.ended


async def what_cannot_be_executed_is_an_error(backend: SandboxBackend, folder: Path) -> None:
    _write(folder / "layer", {"plain": "no program"})
    async with _open(backend, layers=(folder / "layer",)) as place:
        for argv in (["no-such-program"], ["./missing"], ["./plain"]):
            try:
                await _start(place, argv)
            except OSError:
                continue
            raise AssertionError(f"{argv} was started")


async def what_is_left_behind_ends(backend: SandboxBackend, folder: Path) -> None:
    """A daemon does not outlive the program that made it."""
    async with _open(backend) as place:
        tick = "while :; do date +%s%N > next; mv next tick; sleep 0.05; done"
        await place.run(["sh", "-c", f"setsid sh -c '{tick}' >/dev/null 2>&1 & sleep 0.3"], ENV)
        before = await _read(place, "tick")
        assert before
        await asyncio.sleep(0.4)
        assert await _read(place, "tick") == before, "a daemon still writes"


async def changes_count_from_the_snapshot(backend: SandboxBackend, folder: Path) -> None:
    _write(folder / "layer", {"kept": "k", "gone": "g", "changed": "c", "d/gone": "g", "d/kept": "k", "touched": "t"})
    async with _open(backend, layers=(folder / "layer",)) as place:
        await place.run(["sh", "-c", "echo early > early"], ENV)
        await place.snapshot()
        assert [*place.changes()] == []
        script = "rm gone d/gone; echo more >> changed; echo n > d-new; mkdir -p n/e; echo 2 > early; touch touched"
        await place.run(["sh", "-c", script], ENV)
        await place.freeze()
        found = [(one.path, one.op) for one in place.changes()]
    assert found == [
        ("changed", "modified"),
        ("d-new", "created"),
        ("d/gone", "deleted"),
        ("early", "modified"),
        ("gone", "deleted"),
        ("n/e", "created"),
    ], found


async def a_freeze_ends_programs(backend: SandboxBackend, folder: Path) -> None:
    async with _open(backend) as place:
        running = await _start(place, ["sh", "-c", "while :; do date +%s%N > tick; sleep 0.02; done"])
        await asyncio.sleep(0.5)
        await place.freeze()
        assert await running.within(_SOON_S)
        before = await _read(place, "tick")
        await asyncio.sleep(0.2)
        assert await _read(place, "tick") == before
        try:
            await _start(place, ["true"])
        except HarnessError:
            return
        raise AssertionError("a program was started after the freeze")


async def paths_never_lead_out(backend: SandboxBackend, folder: Path) -> None:
    (folder / "secret").write_text("s")
    async with _open(backend) as place:
        script = (
            "echo in > file; mkdir d; ln -s ../file d/in; ln -s /etc out; ln -s ../.. up; ln -s self self; mkfifo pipe;"
            f"ln -s {place.workspace}/file absolute; ln -s {folder}/secret secret; ln -s nowhere dangling"
        )
        assert (await place.run(["sh", "-c", script], ENV)).exit_code == 0
        await place.freeze()
        for path in ("file", "d/in", "absolute", "./d/../file"):
            found = place.find(path)
            assert found is not None, path
            assert found.read_text() == "in\n", path
        assert place.find("nothing") is None
        assert place.find("file/below") is None
        assert place.find("dangling") is None
        assert place.find(".") is not None
        for path in ("out/passwd", "up", "self", "pipe", "secret", "../x", "/etc/passwd", "d/../../x"):
            try:
                found = place.find(path)
            except OutsideError:
                continue
            raise AssertionError(f"{path} gave {found}")


async def a_view_cannot_change_the_workspace(backend: SandboxBackend, folder: Path) -> None:
    async with _open(backend) as place:
        await place.run(["sh", "-c", "mkdir d; echo in > d/file"], ENV)
        await place.freeze()
        view = place.view()
        assert (view / "d" / "file").read_text() == "in\n"
        with suppress(OSError):
            (view / "d" / "file").write_text("changed")
        assert await _read(place, "d/file") == b"in\n"


async def listeners_are_reached_from_inside(backend: SandboxBackend, folder: Path) -> None:
    address = ("127.0.1.1", 5432)
    async with _open(backend, listen=(address,)) as place:
        listener = place.listener(*address)
        loop = asyncio.get_running_loop()
        host, port = place.address(*address)
        calling = asyncio.create_task(place.run([sys.executable, "-c", _CALL, host, str(port)], ENV))
        async with asyncio.timeout(_SOON_S):
            there, _ = await loop.sock_accept(listener)
        await loop.sock_sendall(there, b"from outside")
        there.close()
        ran = await calling
        assert ran.stdout == b"from outside\n", ran


async def programs_inside_can_be_reached(backend: SandboxBackend, folder: Path) -> None:
    async with _open(backend) as place:
        told, tell = os.pipe()
        program = await _start(place, [sys.executable, "-c", _LISTEN], stdout=tell)
        os.close(tell)
        port = int(await asyncio.to_thread(os.read, told, 99))
        os.close(told)
        way = await place.connect(port)
        async with asyncio.timeout(_SOON_S):
            data = await asyncio.get_running_loop().sock_recv(way, 99)
        way.close()
        assert data == b"from inside", data
        assert await program.within(_SOON_S)
        try:
            (await place.connect(port)).close()
        except ConnectionRefusedError:
            return
        raise AssertionError("nobody listens, and yet there was a connection")


async def who_takes_no_connection_holds_nobody_up(backend: SandboxBackend, folder: Path) -> None:
    """Connections to a program that listens and never accepts wait out here alone."""
    async with _open(backend) as place:
        told, tell = os.pipe()
        await _start(place, [sys.executable, "-c", _DEAF], stdout=tell)
        os.close(tell)
        port = int(await asyncio.to_thread(os.read, told, 99))
        os.close(told)
        waiting = [asyncio.create_task(place.connect(port)) for _ in range(8)]
        async with asyncio.timeout(_SOON_S):
            ran = await place.run(["sh", "-c", "echo on"], ENV)
        for task in waiting:
            task.cancel()
        for way in await asyncio.gather(*waiting, return_exceptions=True):
            if not isinstance(way, BaseException):
                way.close()
        assert ran.stdout == b"on\n", ran


async def a_kill_meets_the_agent_alone(backend: SandboxBackend, folder: Path) -> None:
    """Where its processes can be disturbed: our own commands go on, and new programs can be started."""
    async with _open(backend) as place:
        if not isinstance(place, Disturbable):
            return
        assert await place.kill() == 0
        agent = await _start(place, ["sh", "-c", "sleep 600 & sleep 600"])
        ours = asyncio.create_task(place.run(["sh", "-c", "echo > begun; sleep 1; exit 7"], ENV))
        assert await _until(lambda: place.find("begun") is not None), "our command did not begin"
        assert await place.kill() == 1
        assert await agent.within(_SOON_S)
        assert (await ours).exit_code == 7
        again = await place.run(["sh", "-c", "exit 3"], ENV)
        assert again.exit_code == 3, again


async def visible_paths_are_there(backend: SandboxBackend, folder: Path) -> None:
    _write(folder, {"seen/x": "seen", "file": "alone"})
    visible = {"/agent/folder": folder / "seen", "/agent/file": folder / "file"}
    async with _open(backend, visible=visible) as place:
        paths = [place.inside("/agent/folder") + "/x", place.inside("/agent/file")]
        ran = await place.run(["cat", *paths], ENV)
        assert ran.stdout == b"seenalone", ran


async def throwaway_commands_leave_nothing(backend: SandboxBackend, folder: Path) -> None:
    if not _keeps(backend, THROWAWAY):
        return
    _write(folder / "layer", {"a": "a"})
    async with _open(backend, layers=(folder / "layer",)) as place:
        await place.run(["sh", "-c", "echo b > b; echo t > /tmp/t"], ENV)
        ran = await place.run(["sh", "-c", "cat a b /tmp/t; rm a b; echo c > c"], ENV, throwaway=True)
        assert ran.stdout == b"ab\nt\n", ran
        left = await place.run(["ls"], ENV)
        assert left.stdout == b"a\nb\n", left


async def sandboxes_do_not_meet(backend: SandboxBackend, folder: Path) -> None:
    async with _open(backend) as one, _open(backend) as other:
        await one.run(["sh", "-c", "echo 1 > mine"], ENV)
        assert other.find("mine") is None
        assert (await other.run(["ls"], ENV)).stdout == b""


async def commands_are_heard(backend: SandboxBackend, folder: Path) -> None:
    if not _keeps(backend, "command audit"):
        return
    heard = _Heard()
    began = time.time()
    async with _open(backend, commands=heard) as place:
        await place.run(["sh", "-c", "mkdir d; cd d; cat /dev/null 'a b' 2>/dev/null; no-such-command 2>&1"], ENV)
        await place.freeze()
    argvs = [list(command.argv) for command in heard.commands]
    assert argvs[1:] == [["mkdir", "d"], ["cat", "/dev/null", "a b"]], argvs
    assert argvs[0][0] == "sh"
    assert heard.commands[-1].cwd == f"{place.workspace}/d"
    assert all(began - 1 <= command.ts <= time.time() + 1 for command in heard.commands)


async def the_end_of_commands_is_heard(backend: SandboxBackend, folder: Path) -> None:
    """With their exit codes; none for those that a signal ends, ours at the freeze too."""
    if not _keeps(backend, "command audit"):
        return
    heard = _Heard()
    script = "sleep 0.2; (exit 9); cat nothing; sh -c 'kill -9 $$'; sh -c 'exec sh -c \"exit 7\"'; sleep 60; true"
    async with _open(backend, commands=heard) as place:
        await _start(place, ["sh", "-c", script])
        assert await _until(lambda: heard.commands[-1:] != [] and heard.commands[-1].argv == ("sleep", "60")), heard
        await place.freeze()
        ends = [(command.argv[0], end.exit_code) for command, (end,) in heard.told]
        slept = heard.told[1][1][0].duration_ms
    assert ends == [
        ("sh", None),
        ("sleep", 0),
        ("cat", 1),
        ("sh", None),
        ("sh", 7),
        ("sh", 7),
        ("sleep", None),
    ], ends
    assert slept is not None
    assert 190 <= slept < 10_000, slept


async def much_at_once(backend: SandboxBackend, folder: Path) -> None:
    async with _open(backend) as place:
        runs = [place.run(["sh", "-c", f"echo {n} > f{n}; cat f{n}"], ENV) for n in range(8)]
        assert [int(ran.stdout) for ran in await asyncio.gather(*runs)] == [*range(8)]


async def closing_leaves_nothing(backend: SandboxBackend, folder: Path) -> None:
    """A program that was never ended is, by then."""
    mark = f"9{os.getpid()}{time.monotonic_ns() % 1_000_000}"
    async with _open(backend) as place:
        running = await _start(place, ["sleep", mark])
        assert await _until(lambda: bool(_sleeping(mark))), "it did not start"
    assert running.ended
    assert not _sleeping(mark), "it still runs"


CHECKS: Mapping[str, SandboxCheck] = {
    check.__name__: check
    for check in (
        a_freeze_ends_programs,
        a_home_is_no_part_of_the_workspace,
        a_kill_meets_the_agent_alone,
        a_timeout_ends_everything,
        a_view_cannot_change_the_workspace,
        changes_count_from_the_snapshot,
        closing_leaves_nothing,
        commands_are_heard,
        commands_run,
        isolation_is_told,
        layers_make_the_workspace,
        listeners_are_reached_from_inside,
        much_at_once,
        paths_never_lead_out,
        programs_inside_can_be_reached,
        programs_start_and_end,
        sandboxes_do_not_meet,
        the_end_of_commands_is_heard,
        the_environment_is_as_given,
        throwaway_commands_leave_nothing,
        visible_paths_are_there,
        what_cannot_be_executed_is_an_error,
        what_is_left_behind_ends,
        who_takes_no_connection_holds_nobody_up,
    )
}


class _Heard:
    """Commands in the order of their beginning, each with all that was told of its end."""

    def __init__(self) -> None:
        self.told: list[tuple[Command, list[CommandEnd]]] = []

    def __call__(self, command: Command) -> Callable[[CommandEnd], None]:
        ends: list[CommandEnd] = []
        self.told.append((command, ends))
        return ends.append

    @property
    def commands(self) -> list[Command]:
        return [command for command, _ in self.told]


@asynccontextmanager
async def _open(
    backend: SandboxBackend,
    *,
    layers: tuple[Path, ...] = (),
    home: Path | None = None,
    listen: tuple[tuple[str, int], ...] = (),
    visible: Mapping[str, Path] | None = None,
    commands: Callable[[Command], Callable[[CommandEnd], None]] | None = None,
) -> AsyncIterator[Sandbox]:
    sandbox_spec = SandboxSpec(
        os.urandom(6).hex(), layers=layers, home=home, listen=listen, visible=visible or {}, commands=commands
    )
    place = await backend.open(sandbox_spec)
    try:
        yield place
    finally:
        await place.close()


async def _start(place: Sandbox, argv: Sequence[str], *, stdout: int = -1) -> Started:
    null = os.open(os.devnull, os.O_RDWR)
    try:
        return await place.start(argv, ENV, Stdio(null, null if stdout < 0 else stdout, null))
    finally:
        os.close(null)


async def _read(place: Sandbox, path: str) -> bytes:
    found = place.find(path)
    return b"" if found is None else found.read_bytes()


async def _until(true: Callable[[], bool]) -> bool:
    until = time.monotonic() + _SOON_S
    while not true() and time.monotonic() < until:  # noqa: ASYNC110  # other processes tell no event
        await asyncio.sleep(0.02)
    return true()


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def _keeps(backend: SandboxBackend, feature: str) -> bool:
    return all(one.enforced for one in backend.isolation if one.feature == feature)


def _sleeping(mark: str) -> list[int]:
    """Processes of this machine that run `sleep MARK`."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and Path(f"/proc/{name}/cmdline").read_bytes() == f"sleep\0{mark}\0".encode():
                found.append(int(name))
        except OSError:
            continue
    return found
