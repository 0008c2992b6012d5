"""Nothing of a service is left: not after a trial, not after kill -9, not for an ordinary user."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from sandbox_kit import as_ordinary_user
from servers_kit import TRIAL

from holdfast.errors import UserError
from holdfast.model.world import ServiceSpec
from holdfast.processes.leftovers import kill
from holdfast.processes.scratch import sweep
from holdfast.world.services import open_keeper, server

SPECS = [
    ServiceSpec("db", "postgres", env={"POSTGRES_PASSWORD": "pw"}),
    ServiceSpec("my", "mysql", env={"MYSQL_ROOT_PASSWORD": "pw"}),
    ServiceSpec("cache", "redis"),
]
LIVE = """
import asyncio, os, sys
from pathlib import Path
from holdfast.model.world import ServiceSpec
from holdfast.model.scenario import Scenario
from holdfast.model.trial import Trial
from holdfast.model.task import Task
from holdfast.world.services import open_keeper, server

if sys.argv[5:] == ["bare"]:
    server.find_confinement = lambda user: (None, "forbidden")

async def main():
    env = {"POSTGRES_PASSWORD": "pw"} if sys.argv[1] == "postgres" else {}
    keeper = await open_keeper(ServiceSpec("db", sys.argv[1], env=env), Path(sys.argv[2]))
    trial = Trial("0", "contract", Scenario("calm"), Task(("?",)))
    for n in range(int(sys.argv[3])):
        service = await keeper.provide(trial, alone=True)
        print("up", service.upstream, flush=True)
        if sys.argv[1] == "postgres":
            await service.execute("CREATE TABLE t (x int)")
            await service.mark()
            assert (await service.query("SELECT count(*) FROM t", timeout_s=5)).rows == ((0,),)
        if n < int(sys.argv[3]) - 1:
            await service.close()
    if sys.argv[4] == "stay":
        await asyncio.sleep(60)
    await service.close()
    await keeper.close()
    print("notes", service.notes, flush=True)

asyncio.run(main())
"""

WORD = """
import asyncio, os, signal, sys
from pathlib import Path
from holdfast.model.world import ServiceSpec
from holdfast.world.services import server
from holdfast.world.services.programs import ServerProgram

server.find_confinement = lambda user: (None, "forbidden")
signal.signal(signal.SIGQUIT, signal.SIG_IGN if sys.argv[2] == "ignored" else signal.SIG_DFL)

async def main():
    asyncio.get_running_loop().sock_sendall = give
    spec, program = ServiceSpec("db", "postgres"), ServerProgram(Path("/bin/sleep"), "sleep 1")
    argv, options = lambda sockets, data: ["/bin/sleep", "60"], {"stop": signal.SIGQUIT}
    setup = server.set_up(spec, program, None, argv, b"up", lambda sockets: {}, **options)
    await server.start(setup)

async def give(word, data):
    started = int(Path("/proc/self/task", str(os.getpid()), "children").read_text())
    os.kill(started, signal.SIGSTOP)
    os.waitpid(started, os.WUNTRACED)
    print(started, flush=True)
    word.sendall(data)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
"""A run that is killed when it has just given the word: its server is held where it is and has yet to begin."""


def below(pid: int) -> set[int]:
    """A process and all that it has started, as they are now."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                parents[int(name)] = int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


@pytest.fixture
def already() -> set[int]:
    """This process, and what other tests keep running below it."""
    return below(os.getpid())


def alive(pids: set[int]) -> set[int]:
    return {pid for pid in pids if os.path.exists(f"/proc/{pid}/exe") and _cmdline(pid) != b""}


def _cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def gone(pids: set[int], within_s: float = 20.0) -> bool:
    until = time.monotonic() + within_s
    while alive(pids):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def shared_memory() -> set[int]:
    """Processes whose shared memory is there, whether or not they are."""
    lines = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return {int(line.split()[4]) for line in lines}


def swept(owner: int) -> list[Path]:
    """What stays of a dead run; a server that is just ending may still write into its folder."""
    until = time.monotonic() + 10
    sweep()
    while folders(owner) and time.monotonic() < until:
        time.sleep(0.1)
        sweep()
    return folders(owner)


def folders(pid: int) -> list[Path]:
    return sorted(path for parent in (Path("/dev/shm"), Path("/tmp")) for path in parent.glob(f"holdfast-*-{pid}-*"))


def own_folders() -> list[Path]:
    """This process's folders, without the copy of a program in root's home, which stays as long as its process."""
    return [path for path in folders(os.getpid()) if "-bwrap-" not in path.name]


def needed(spec: ServiceSpec, folder: Path) -> None:
    """Skips where the machine has no such server."""

    async def scene() -> None:
        await (await open_keeper(spec, folder)).close()

    try:
        asyncio.run(scene())
    except UserError as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.kind)
def test_after_close_no_process_folder_or_descriptor_is_left(
    spec: ServiceSpec, tmp_path: Path, already: set[int]
) -> None:
    needed(spec, tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    seen: set[int] = set()

    async def scene() -> None:
        keeper = await open_keeper(spec, tmp_path)
        services = await asyncio.gather(*(keeper.provide(TRIAL, alone=True) for _ in range(3)))
        seen.update(below(os.getpid()) - already)
        for service in services:
            await service.close()
        await keeper.close()

    asyncio.run(scene())
    assert len(seen) >= 3
    assert gone(seen)
    assert own_folders() == []
    assert list(tmp_path.iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) <= before


def test_an_interrupted_start_leaves_nothing(tmp_path: Path, already: set[int]) -> None:
    needed(SPECS[0], tmp_path)

    async def scene(pause_s: float) -> set[int]:
        keeper = await open_keeper(SPECS[0], tmp_path)
        asked = asyncio.ensure_future(keeper.provide(TRIAL, alone=True))
        await asyncio.sleep(pause_s)
        seen = below(os.getpid()) - already
        asked.cancel()
        done = (await asyncio.gather(asked, return_exceptions=True))[0]
        if not isinstance(done, BaseException):
            await done.close()
        await keeper.close()
        return seen

    luck = Random(3)
    for _ in range(6):
        assert gone(asyncio.run(scene(luck.uniform(0, 0.15))))
    assert own_folders() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "how"),
    [("postgres", "confined"), pytest.param("postgres", "bare", marks=pytest.mark.long), ("redis", "confined")],
)
def test_kill_9_at_any_moment_leaves_no_process_and_the_next_run_sweeps_the_folder(
    kind: str, how: str, tmp_path: Path
) -> None:
    needed(next(spec for spec in SPECS if spec.kind == kind), tmp_path)
    script = tmp_path / "live.py"
    script.write_text(LIVE)
    luck = Random(11)
    for _ in range(5):
        run = subprocess.Popen(
            [sys.executable, script, kind, tmp_path, "50", "stay", how],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert run.stdout is not None
        if luck.random() < 0.8:
            assert run.stdout.readline().startswith(b"up")
        time.sleep(luck.uniform(0, 0.4))
        run.send_signal(signal.SIGSTOP)
        started = below(run.pid) - {run.pid}
        run.kill()
        run.communicate()
        assert gone(started), [_cmdline(pid) for pid in alive(started)]
        assert not shared_memory() & started
        assert swept(run.pid) == []
    shutil.rmtree(tmp_path)


@pytest.mark.parametrize("quit_is", ["heard", "ignored"])
def test_kill_9_right_after_the_word_ends_a_server_without_walls(quit_is: str, tmp_path: Path) -> None:
    """SIGQUIT ends it: what a shell starts with `&` ignores that signal."""
    run = subprocess.run(
        [sys.executable, "-c", WORD, tmp_path, quit_is], capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == -signal.SIGKILL, run.stderr
    held = int(run.stdout)
    try:
        kill(held, signal.SIGCONT)
        assert gone({held}, within_s=5), _cmdline(held)
    finally:
        kill(held, signal.SIGKILL)


def test_without_walls_a_server_works_and_still_dies_with_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, already: set[int]
) -> None:
    needed(SPECS[0], tmp_path)
    monkeypatch.setattr(server, "find_confinement", lambda user: (None, "forbidden here"))
    seen: set[int] = set()

    async def scene() -> None:
        keeper = await open_keeper(SPECS[0], tmp_path)
        database = await keeper.provide(TRIAL, alone=True)
        seen.update(below(os.getpid()) - already)
        await database.execute("CREATE TABLE t (x int)")  # type: ignore[attr-defined]
        await database.close()
        await keeper.close()

    asyncio.run(scene())
    assert gone(seen)
    assert own_folders() == []
    assert not shared_memory() & seen


@pytest.mark.parametrize("kind", ["postgres", "mysql", "redis"])
@pytest.mark.root
def test_an_ordinary_user_has_the_same_services(kind: str, tmp_path: Path) -> None:
    needed(next(spec for spec in SPECS if spec.kind == kind), tmp_path)
    with TemporaryDirectory(dir="/tmp") as temporary:  # pytest's own is for root alone
        folder = Path(temporary)
        script = folder / "live.py"
        script.write_text(LIVE)
        ran = as_ordinary_user(str(script), kind, temporary, "2", "go", folder=folder, XDG_CACHE_HOME=temporary)
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout.count("up ") == 2
        assert [path.name for path in folder.iterdir() if path.name.startswith("holdfast-services-")] == []
