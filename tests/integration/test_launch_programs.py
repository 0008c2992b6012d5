"""The launcher: what it starts is ended with all that it started, whatever happens to anybody."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from golden_words import Golden
from holdfast.errors import HarnessError
from holdfast.processes import program as programs
from holdfast.processes.launch_host import pack_program, unpack_program
from holdfast.processes.launcher import Launcher
from holdfast.processes.pipes import Pipes, Tail
from holdfast.processes.program import Program, describe_end, end_on_exit
from processes_kit import gone, marked

DAEMON = "setsid sh -c 'trap \"\" TERM; sleep 60 & sleep 60' & "
SCRUBBED = "env -i setsid sh -c 'echo $$ > daemon; sleep 60' & "


async def sh(launcher: Launcher, command: str, mark: str, cwd: Path, sink: Tail | None = None) -> Program:
    sink = sink or Tail()
    pipes = Pipes(b"", sink, sink)
    asyncio.get_running_loop().call_later(30, pipes.close)
    env = {"PATH": os.environ["PATH"], "TEST_MARK": mark}
    program = await launcher.start(["/bin/sh", "-c", command], env, cwd, pipes.stdio)
    pipes.close_child_ends()
    return program


def using(use: Callable[[Launcher], Awaitable[None]]) -> None:
    async def go() -> None:
        launcher = Launcher()
        try:
            await use(launcher)
        finally:
            await launcher.close()

    asyncio.run(go())


@pytest.fixture
def mark(request: pytest.FixtureRequest) -> str:
    return f"{os.getpid()}-{request.node.name}"


def test_an_order_is_read_as_it_was_written() -> None:
    data = pack_program(["/bin/sh", "-c", "", "a=é\udcff"], {"A": "x=y", "B": ""}, "/tmp")
    assert unpack_program(data) == ([b"/bin/sh", b"-c", b"", b"a=\xc3\xa9\xff"], {b"A": b"x=y", b"B": b""}, b"/tmp")


def test_a_nul_in_a_variable_is_refused() -> None:
    with pytest.raises(ValueError, match="NUL"):
        pack_program(["/bin/sh"], {"A": "x\0y"}, "/tmp")


def test_a_program_has_a_session_of_its_own_and_its_status_is_told(tmp_path: Path, mark: str) -> None:
    async def use(launcher: Launcher) -> None:
        program = await sh(launcher, "exit 3", mark, tmp_path)
        assert await program.wait_for_end(5)
        assert describe_end(program.status) == "exited with code 3"
        assert program.took_ms > 0
        alive = await sh(launcher, "sleep 30", mark, tmp_path)
        assert os.getsid(alive.pid) == os.getpgid(alive.pid) == alive.pid

    using(use)
    assert gone("TEST_MARK", mark)


def test_a_program_holds_no_descriptor_of_ours(tmp_path: Path, mark: str) -> None:
    async def use(launcher: Launcher) -> None:
        printed = Tail()
        program = await sh(launcher, "echo up; sleep 5", mark, tmp_path, printed)
        while not printed.text:
            await asyncio.sleep(0.01)
        assert sorted(os.listdir(f"/proc/{program.pid}/fd")) == ["0", "1", "2"]

    using(use)


def test_a_program_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    async def use(launcher: Launcher) -> None:
        pipes = Pipes(b"", Tail(), Tail())
        with pytest.raises(FileNotFoundError):
            await launcher.start(["/no/such"], {}, tmp_path, pipes.stdio)
        with pytest.raises(PermissionError):
            await launcher.start(["/etc/passwd"], {}, tmp_path, pipes.stdio)
        pipes.close()

    using(use)


def test_one_keeper_keeps_many_programs_one_after_the_other(tmp_path: Path, mark: str) -> None:
    async def use(launcher: Launcher) -> None:
        keepers, held = set(), set()
        for n in range(30):
            program = await sh(launcher, f"exit {n}", mark, tmp_path)
            assert await program.wait_for_end(5)
            assert program.status == n << 8
            keepers.add(program.keeper)
            pipes = Pipes(b"", Tail(), Tail())
            with pytest.raises(FileNotFoundError):
                await launcher.start(["/no/such"], {}, tmp_path, pipes.stdio)
            pipes.close()
        await asyncio.sleep(0.1)
        for keeper in keepers:
            held.add(len(os.listdir(f"/proc/{keeper}/fd")))
        assert len(keepers) <= 3
        assert max(held) < 15, "a keeper lets go of what its programs were given"

    using(use)


@pytest.mark.parametrize(
    "changes",
    [
        "import os, resource; resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (64, 64))",
        "import os; os.setpriority(os.PRIO_PROCESS, os.getppid(), 7)",
        "import os; os.sched_setaffinity(os.getppid(), {min(os.sched_getaffinity(0))})",
        "import os, resource; resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (5, 5))",
        'import os; open("/proc/%d/oom_score_adj" % os.getppid(), "w").write("900")',
    ],
)
def test_a_keeper_that_a_program_has_changed_keeps_no_other(changes: str, tmp_path: Path, mark: str) -> None:
    look = (
        "import os, resource; print(resource.getrlimit(7), os.getpriority(0, 0), os.sched_getaffinity(0), "
        'open("/proc/self/oom_score_adj").read())'
    )

    async def use(launcher: Launcher) -> None:
        said = []
        for code in (look, changes, look, look):
            printed = Tail()
            program = await sh(launcher, f"exec {sys.executable} -c '{code}'", mark, tmp_path, printed)
            assert await program.wait_for_end(20)
            await asyncio.sleep(0.05)
            said.append(printed.text)
        assert said[0] != ""
        assert said[2] == said[3] == said[0]

    using(use)


def test_what_a_program_leaves_is_gone_before_its_keeper_keeps_the_next(tmp_path: Path, mark: str) -> None:
    async def use(launcher: Launcher) -> None:
        for n in range(10):
            (tmp_path / str(n)).mkdir()
            program = await sh(
                launcher, SCRUBBED + "while [ ! -s daemon ]; do sleep 0.01; done", mark, tmp_path / str(n)
            )
            assert await program.wait_for_end(5)
            assert Path(f"/proc/{program.keeper}/task/{program.keeper}/children").read_text() == ""
            with pytest.raises(ProcessLookupError):
                os.kill(int((tmp_path / str(n) / "daemon").read_text()), 0)

    using(use)


@pytest.mark.parametrize("left", ["sleep 60 & ", DAEMON, "sh -c 'sleep 60 & sleep 60' & "])
def test_what_a_program_leaves_behind_ends_with_it(tmp_path: Path, mark: str, left: str) -> None:
    async def use(launcher: Launcher) -> None:
        program = await sh(launcher, left + "sleep 0.1", mark, tmp_path)
        assert await program.wait_for_end(5)
        assert marked("TEST_MARK", mark) == []
        assert program.took_ms < 2000

    using(use)


def test_a_daemon_that_hides_its_environment_ends_with_its_program_and_no_other(tmp_path: Path, mark: str) -> None:
    async def use(launcher: Launcher) -> None:
        (tmp_path / "a").mkdir()
        other = await sh(launcher, SCRUBBED + "sleep 60", mark, tmp_path)
        program = await sh(launcher, SCRUBBED + "sleep 0.3", mark, tmp_path / "a")
        assert await program.wait_for_end(5)
        ours, others = (int((folder / "daemon").read_text()) for folder in (tmp_path / "a", tmp_path))
        with pytest.raises(ProcessLookupError):
            os.kill(ours, 0)
        os.kill(others, 0)
        assert not other.ended

    using(use)


def test_a_program_that_ignores_sigterm_is_killed_after_its_grace(
    tmp_path: Path, mark: str, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setattr(programs, "GRACE_S", 0.3)

    async def use(launcher: Launcher) -> None:
        printed = Tail()
        program = await sh(launcher, 'trap "" TERM; echo deaf; sleep 60', mark, tmp_path, printed)
        while not printed.text:
            await asyncio.sleep(0.01)
        began = time.monotonic()
        await program.end()
        assert 0.25 < time.monotonic() - began < 3
        assert program.killed
        golden(describe_end(program.status))
        assert marked("TEST_MARK", mark) == []

    using(use)


def test_an_exception_and_a_cancellation_end_the_program(tmp_path: Path, mark: str) -> None:
    async def held(launcher: Launcher, raises: bool) -> None:
        async with end_on_exit(await sh(launcher, DAEMON + "sleep 60", mark, tmp_path)):
            if raises:
                raise LookupError
            await asyncio.sleep(60)

    async def use(launcher: Launcher) -> None:
        with pytest.raises(LookupError):
            await held(launcher, True)
        assert marked("TEST_MARK", mark) == []
        task = asyncio.create_task(held(launcher, False))
        await asyncio.sleep(0.2)
        assert len(marked("TEST_MARK", mark)) >= 2
        task.cancel()
        began = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - began < 1.5
        assert marked("TEST_MARK", mark) == []

    using(use)


def test_a_start_that_is_cancelled_leaves_nothing(tmp_path: Path, mark: str) -> None:
    async def use(launcher: Launcher) -> None:
        for delay_s in (0, 0.0005, 0.002, 0.005):
            task = asyncio.create_task(sh(launcher, "sleep 60", mark, tmp_path))
            await asyncio.sleep(delay_s)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            if not task.cancelled():
                await task.result().end()
        last = await sh(launcher, "true", mark, tmp_path)  # all orders before it have been taken
        assert await last.wait_for_end(5)
        for _ in range(250):
            await asyncio.sleep(0.02)
            if not marked("TEST_MARK", mark):
                break
        assert marked("TEST_MARK", mark) == []

    using(use)


def test_closing_ends_all_at_once(tmp_path: Path, mark: str) -> None:
    async def use(launcher: Launcher) -> None:
        for _ in range(5):
            await sh(launcher, DAEMON + "trap '' TERM; sleep 60", mark, tmp_path)
        began = time.monotonic()
        await launcher.close()
        assert time.monotonic() - began < 3
        assert marked("TEST_MARK", mark) == []

    using(use)


def test_a_launch_host_that_is_killed_takes_all_with_it_and_is_replaced(tmp_path: Path, mark: str) -> None:
    async def use(launcher: Launcher) -> None:
        program = await sh(launcher, DAEMON + "sleep 60", mark, tmp_path)
        await asyncio.sleep(0.2)
        assert launcher._process is not None
        launcher._process.kill()
        assert await program.wait_for_end(5)
        assert program.lost
        assert gone("TEST_MARK", mark)
        again = await sh(launcher, "exit 0", mark, tmp_path)
        assert await again.wait_for_end(5)
        assert again.status == 0

    using(use)


def test_a_keeper_that_the_agent_kills_loses_the_agent_and_nobody_else(tmp_path: Path, mark: str) -> None:
    async def use(launcher: Launcher) -> None:
        other = await sh(launcher, "sleep 60", mark + "x", tmp_path)
        program = await sh(launcher, "sleep 0.3; kill -9 $PPID; sleep 60", mark, tmp_path)
        assert await program.wait_for_end(5)
        assert (program.status, program.lost) == (None, False)
        assert gone("TEST_MARK", mark)
        assert not other.ended

    using(use)


PARENT = """
import asyncio, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
sys.path[:0] = {tests!r}
from pathlib import Path
from holdfast.processes.launcher import Launcher
from test_launch_programs import DAEMON, sh

async def main():
    launcher = Launcher()
    for _ in range(3):
        await sh(launcher, DAEMON + "trap '' TERM; sleep 60", sys.argv[1], Path("/tmp"))
    await asyncio.sleep(0.2)
    print("up", flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_when_holdfast_itself_is_killed(mark: str, number: int) -> None:
    code = PARENT.format(tests=[str(Path(__file__).parent), str(Path(__file__).parents[1])])
    command = [sys.executable, "-c", code, mark]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"up\n"
        assert len(marked("TEST_MARK", mark)) >= 6
        parent.send_signal(number)
        assert gone("TEST_MARK", mark)


def test_a_dead_launch_host_is_an_error_of_ours(tmp_path: Path, mark: str) -> None:
    async def use(launcher: Launcher) -> None:
        await sh(launcher, "true", mark, tmp_path)
        assert launcher._process is not None
        os.killpg(launcher._process.pid, signal.SIGSTOP)
        start = asyncio.create_task(sh(launcher, "true", mark, tmp_path))
        await asyncio.sleep(0.1)
        os.killpg(launcher._process.pid, signal.SIGKILL)
        with pytest.raises(HarnessError, match="launch host died"):
            await start

    using(use)


def test_memory_stays_bounded_whatever_is_printed() -> None:
    tail = Tail()
    for _ in range(100):
        tail.add(b"x" * 1_000_000)
    assert len(tail._data) <= 128_000
    assert len(tail.text) == 64_000
    assert tail.notes
