"""The docker backend against a real engine: `tests/docker/engine.sh pytest tests/docker/docker_conform.py`."""

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime

import pytest
import yaml
from docker_kit import containers, make_image

from holdfast.errors import UserError
from holdfast.model.world import Resources
from holdfast.plan import RunOptions
from holdfast.protocols.sandbox import Disturbable, SandboxSpec, Stdio
from holdfast.runner.job import Job
from holdfast.runner.run import run
from holdfast.runner.start import begin
from holdfast.spec import LoadOptions, load
from holdfast.store.record import read_observations
from holdfast.testing.sandbox_steps import ENV
from holdfast.testing.sandboxes import CHECKS
from holdfast.world.sandbox.docker import DockerBackend
from holdfast.world.world_clock import Clock, build_clock_environ, find_clock_library, probe_clock, to_nanoseconds

MB = 1 << 20


@pytest.fixture(scope="session")
def image():
    return make_image()


@pytest.fixture(autouse=True)
def nothing_is_left(backend):
    yield
    assert containers() == []
    assert [*backend.folder.iterdir()] == []


@pytest.fixture(scope="session")
def backend(image, tmp_path_factory):
    folder = tmp_path_factory.mktemp("backend")
    backend = asyncio.run(DockerBackend.open_backend(folder, image))
    backend.folder = folder
    return backend


def in_container(backend, work, **sandbox_spec):
    async def run():
        sandbox = await backend.open(SandboxSpec("t", **sandbox_spec))
        try:
            return await work(sandbox)
        finally:
            await sandbox.close()

    return asyncio.run(run())


def shell(backend, script, **sandbox_spec):
    async def work(sandbox):
        ran = await sandbox.run(["sh", "-c", f"({script}) 2>&1"], ENV, keep=100_000)
        return ran.stdout.decode()

    return in_container(backend, work, **sandbox_spec)


def python(backend, script, **sandbox_spec):
    async def work(sandbox):
        ran = await sandbox.run([sys.executable, "-c", script], ENV, keep=100_000, timeout_s=60)
        return (ran.stdout + ran.stderr).decode()

    return in_container(backend, work, **sandbox_spec)


@pytest.mark.parametrize("check", CHECKS)
def test_it_keeps_the_promises_of_a_backend(check, backend, tmp_path):
    asyncio.run(CHECKS[check](backend, tmp_path))


def test_the_agent_is_nobody_and_gains_nothing(backend):
    said = shell(backend, "id -u; cat /proc/self/status")
    assert said.split()[0] != "0"
    facts = dict(line.split(":\t", 1) for line in said.splitlines() if ":\t" in line)
    assert {facts[name] for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert facts["NoNewPrivs"] == "1"


@pytest.mark.parametrize(
    "path", ["/planted", "/etc/planted", "/proc/sys/kernel/core_pattern", "/.holdfast/line/planted"]
)
def test_nothing_is_written_outside(backend, path):
    said = shell(backend, f"echo x > {path} && echo ESCAPED")
    assert "ESCAPED" not in said
    assert "Read-only" in said or "denied" in said


def test_there_is_no_network_but_loopback(backend):
    script = """
import socket
for address in (("192.0.2.1", 80), ("172.17.0.1", 80)):
    with socket.socket() as way:
        way.settimeout(5)
        print(way.connect_ex(address))
print(*(name for _, name in socket.if_nameindex()))
"""
    assert python(backend, script).split() == ["101", "101", "lo"]


def test_the_first_process_cannot_be_ended_traced_or_called_again(backend):
    script = """
import ctypes, os, socket
os.kill(1, 9)
try:
    print(os.listdir("/proc/1/fd"))
except OSError as error:
    print(error.errno)
print(ctypes.CDLL(None).ptrace(16, 1, 0, 0))
print(os.listdir("/.holdfast/line"))
"""
    assert python(backend, script).split() == ["13", "-1", "[]"]


def test_names_lead_to_our_listeners(backend):
    said = shell(backend, "cat /etc/hosts", hosts={"db": "127.0.1.1"})
    assert "127.0.1.1 db\n" in said


def test_low_ports_can_be_listened_on(backend):
    async def work(sandbox):
        return sandbox.listener("127.0.1.2", 80).getsockname()

    assert in_container(backend, work, listen=(("127.0.1.2", 80),)) == ("127.0.1.2", 80)


def test_limits_are_kept(backend):
    fork = "import os, time\nn = 0\ntry:\n    while os.fork(): n += 1\n    time.sleep(9)\nexcept OSError: print(n)"
    assert int(python(backend, fork, resources=Resources(pids=20)).split()[0]) < 20
    hoard = "x = bytearray(200 << 20)\nprint('ESCAPED')"
    assert "ESCAPED" not in python(backend, hoard, resources=Resources(memory=64 * MB))


def test_a_limit_that_nobody_set_is_not_claimed(backend):
    async def work(sandbox):
        return {one.feature: one.enforced for one in sandbox.isolation}

    told = in_container(backend, work, resources=Resources(memory=64 * MB))
    assert (told["memory limit"], told["cpu limit"], told["disk limit"]) == (True, False, False)


def test_a_program_that_ends_its_keeper_does_not_outlive_the_freeze(backend):
    async def work(sandbox):
        script = "import os, signal, time; os.kill(os.getppid(), signal.SIGKILL); time.sleep(0.5); open('on', 'w')"
        ran = await sandbox.run([sys.executable, "-c", script + "; time.sleep(600)"], ENV)
        assert ran.signal == 9
        await asyncio.sleep(2)
        assert sandbox.find("on"), "it was to go on"
        return await sandbox._container.end_everything(), await sandbox._container.end_everything()

    assert in_container(backend, work) == (1, 0)


def test_a_stopped_keeper_does_not_stop_the_first_process(backend):
    async def work(sandbox):
        script = "import os, signal; os.kill(os.getppid(), signal.SIGSTOP)"
        ran = await sandbox.run([sys.executable, "-c", script], ENV, timeout_s=1)
        other = await sandbox.run(["true"], ENV)
        await sandbox.freeze()
        return ran.timed_out, other.exit_code

    assert in_container(backend, work) == (True, 0)


def test_its_processes_can_be_killed_and_limited(backend):
    async def work(sandbox):
        assert isinstance(sandbox, Disturbable)
        null = os.open(os.devnull, os.O_RDWR)
        program = await sandbox.start(["sh", "-c", "sleep 600 & sleep 600"], ENV, Stdio(null, null, null))
        os.close(null)
        killed, heard = await sandbox.kill(), program.ended
        assert await program.wait_for_end(20)
        await sandbox.limit(memory=64 * MB, cpu=0.5)
        hoard = await sandbox.run([sys.executable, "-c", "x = bytearray(200 << 20)"], ENV)
        return killed, heard, os.WTERMSIG(program.status), hoard.signal, await sandbox.kill()

    assert in_container(backend, work) == (1, False, 9, 9, 0)


def test_programs_see_the_clock_of_the_trial(backend, tmp_path):
    library = asyncio.run(find_clock_library())
    clock = Clock(tmp_path / "clock")
    starts = datetime(2019, 6, 1, tzinfo=UTC)
    clock.jump(to_nanoseconds(starts))
    environ = {**ENV, **build_clock_environ("/run/clock.so", starts, time.time(), "/run/lent/clock")}
    visible = {"/run/clock.so": library, "/run/lent": tmp_path}
    told = in_container(backend, lambda sandbox: probe_clock(sandbox, environ, clock), visible=visible)
    clock.close()
    assert told.enforced, told


def test_an_engine_that_lacks_the_image_says_so(tmp_path):
    with pytest.raises(UserError, match="no-such-image") as refused:
        asyncio.run(DockerBackend.open_backend(tmp_path, "no-such-image:1"))
    assert refused.value.hint == "docker pull no-such-image:1"
    with pytest.raises(UserError, match="needs an image"):
        asyncio.run(DockerBackend.open_backend(tmp_path, None))


def test_no_engine_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(UserError, match="docker engine"):
        asyncio.run(DockerBackend.open_backend(tmp_path, "any"))
    monkeypatch.undo()


def test_a_killed_run_leaves_no_container(image, tmp_path):
    script = f"""
import asyncio
from pathlib import Path
from holdfast.protocols.sandbox import SandboxSpec
from holdfast.world.sandbox.docker import DockerBackend
async def run():
    backend = await DockerBackend.open_backend(Path({str(tmp_path)!r}), {image!r})
    await backend.open(SandboxSpec("t"))
    print("open", flush=True)
    await asyncio.sleep(600)
asyncio.run(run())
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=env) as running:
        assert running.stdout.readline() == b"open\n"
        assert len(containers()) == 1
        running.kill()
    until = time.monotonic() + 20
    while containers() and time.monotonic() < until:
        time.sleep(0.1)
    assert containers() == []
    for left in tmp_path.glob("container-*"):  # the site's own folder goes with `holdfast clean`
        subprocess.run(["rm", "-rf", left], check=True)


def ran(folder, image, command, **sections):
    """A whole run of a small scenario in containers; its one observation."""
    rules = {"it_ends": {"description": "d", "check": {"type": "completes"}}}
    agent = {"type": "command", "command": command}
    spec = {"version": 1, "id": "t", "base": image, "task": {"prompt": "go"}, "agent": agent, "invariants": rules}
    (folder / "spec.yaml").write_text(yaml.safe_dump({**spec, **sections}))
    loaded, _ = load(folder / "spec.yaml", environ=os.environ, options=LoadOptions(part="scenario"))
    job = Job(loaded, RunOptions(backend="docker", preflight=False, part="scenario"), dict(os.environ))
    rundir = begin(job, folder / "runs")
    run(job, rundir, lambda event: None)
    (seen,) = read_observations(rundir)
    return seen


def test_a_killed_agent_is_started_again(image, tmp_path):
    command = "if test -e begun; then echo again; else echo > begun; sleep 600; fi"
    storm = [{"name": "storm", "world_faults": [{"mode": "killed", "after_ms": 1500}]}]
    seen = ran(tmp_path, image, command, chaos_matrix=storm)
    assert (seen.error, seen.turns[0].text, seen.ending) == ("", "again", "answered")
    assert [(met.mode, met.effect) for met in seen.ledger] == [("killed", "met")]


def test_a_disk_that_cannot_be_filled_is_an_error(image, tmp_path):
    storm = [{"name": "storm", "world_faults": [{"mode": "disk_full"}]}]
    seen = ran(tmp_path, image, "echo hi", chaos_matrix=storm, resources={"disk": "100Mi"})
    assert "disk_full " in seen.error


def test_this_machine_reaches_the_agent(image, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    said = []

    def ask():
        until = time.monotonic() + 30
        while not said and time.monotonic() < until:
            try:
                with socket.create_connection(("127.0.0.1", port), 5) as way:
                    said.extend(filter(None, [way.recv(99)]))
            except OSError:
                time.sleep(0.05)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    script = f"import socket; s = socket.create_server(('', {port})); s.accept()[0].sendall(b'from inside')"
    ways = {"ingress": {"allow": [{"from": "host", "to_port": port}]}}
    seen = ran(tmp_path, image, f'{sys.executable} -c "{script}"; echo done', network=ways)
    asking.join()
    assert (seen.error, seen.turns[0].text, said) == ("", "done", [b"from inside"])
    (told,) = [one for one in seen.isolation if one.feature == "network.ingress"]
    assert told.why == f"127.0.0.1:{port} reaches port {port} of the agent"
