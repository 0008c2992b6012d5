"""Processes of a real sandbox that are killed, or limited, while they run."""

import asyncio
import os
import signal
import time

import pytest
from sandbox_kit import sandbox_in

from holdfast.errors import HarnessError
from holdfast.processes.leftovers import list_family
from holdfast.protocols.sandbox import Disturbable, SandboxSpec, Stdio
from holdfast.world.sandbox import bubblewrap, process
from holdfast.world.sandbox.limits import find_parents

ENV = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
BACKENDS = pytest.mark.parametrize(
    "kind", [bubblewrap.Bubblewrap, process.ProcessBackend], ids=["bubblewrap", "process"]
)


def opened(kind, folder):
    return sandbox_in(folder, SandboxSpec("t", limits=True), kind)


async def started(sandbox, *argv):
    read, write = os.pipe()
    null = os.open(os.devnull, os.O_RDWR)
    try:
        program = await sandbox.start(argv, ENV, Stdio(null, write, null))
    finally:
        os.close(null)
        os.close(write)
    return program, open(read, "rb", buffering=0)


async def line(out):
    return (await asyncio.to_thread(out.readline)).decode().strip()


@BACKENDS
async def test_a_killed_agent_is_gone_with_its_children_and_can_be_started_again(tmp_path, kind):
    async with opened(kind, tmp_path) as sandbox:
        assert isinstance(sandbox, Disturbable)
        assert await sandbox.kill() == 0
        program, out = await started(sandbox, "/bin/sh", "-c", "(setsid sleep 600 &) ; echo up; exec sleep 600")
        with out:
            assert await line(out) == "up"
            assert await sandbox.kill() == 1
            assert await program.wait_for_end(10)
            assert os.WTERMSIG(program.status) == signal.SIGKILL
            assert await asyncio.to_thread(out.read) == b""  # whoever could write to it is gone
        again, out = await started(sandbox, "/bin/echo", "again")
        with out:
            assert await line(out) == "again"
            assert await again.wait_for_end(10)
        assert os.WEXITSTATUS(again.status) == 0


@BACKENDS
async def test_our_own_commands_are_not_the_agent(tmp_path, kind):
    async with opened(kind, tmp_path) as sandbox:
        ours = asyncio.create_task(sandbox.run(["/bin/sh", "-c", "sleep 0.5; exit 7"], ENV))
        await asyncio.sleep(0.2)
        assert await sandbox.kill() == 0
        assert (await ours).exit_code == 7


EATER = """
import sys, time
print("up", flush=True)
sys.stdin.close(); time.sleep(0.7)
held = []
try:
    for n in range(400):
        held.append(bytearray(b"x" * 1_000_000))
except MemoryError:
    print("refused", flush=True)
    sys.exit(3)
print("ate", flush=True)
"""


@BACKENDS
async def test_memory_is_short_from_now_on(tmp_path, kind):
    async with opened(kind, tmp_path) as sandbox:
        program, out = await started(sandbox, "/usr/bin/python3", "-c", EATER)
        with out:
            assert await line(out) == "up"
            await sandbox.limit(memory=150_000_000)
            assert await line(out) in ("refused", "")
            assert await program.wait_for_end(10)
        if "memory" in find_parents():
            assert os.WIFSIGNALED(program.status) or os.WEXITSTATUS(program.status) == 128 + signal.SIGKILL
        else:
            assert os.WEXITSTATUS(program.status) == 3


def test_who_has_more_memory_already_is_ended_where_all_are_limited_together(tmp_path):
    together = "memory" in find_parents()

    async def run():
        async with opened(bubblewrap.Bubblewrap, tmp_path) as sandbox:
            script = "held = bytearray(b'x' * 200_000_000); print('up', flush=True); import time; time.sleep(600)"
            program, out = await started(sandbox, "/usr/bin/python3", "-c", script)
            with out:
                assert await line(out) == "up"
                await sandbox.limit(memory=64_000_000)
                assert await program.wait_for_end(10 if together else 0.5) is together
            ran = await sandbox.run(["/bin/echo", "there is still a sandbox"], ENV)
            assert ran.exit_code == 0

    asyncio.run(run())


@BACKENDS
def test_processor_time_is_short_from_now_on(tmp_path, kind):
    spin = "import time; print('up', flush=True); end = time.time() + 1.5\nwhile time.time() < end: pass\n"
    spin += "print(time.process_time())"

    async def run():
        async with opened(kind, tmp_path) as sandbox:
            program, out = await started(sandbox, "/usr/bin/python3", "-c", spin)
            with out:
                assert await line(out) == "up"
                if "cpu" not in find_parents():
                    with pytest.raises(HarnessError) as refused:
                        await sandbox.limit(cpu=0.1)
                    assert refused.value.code == "limits-failed"
                    return
                await sandbox.limit(cpu=0.1)
                used = float(await line(out))
                assert await program.wait_for_end(10)
            assert used < 0.75

    asyncio.run(run())


@BACKENDS
async def test_what_looks_at_the_agents_work_has_no_part_in_its_limits(tmp_path, kind):
    async with opened(kind, tmp_path) as sandbox:
        await sandbox.limit(memory=70_000_000)
        if "cpu" in find_parents():
            await sandbox.limit(cpu=0.05)
        await sandbox.freeze()
        began = time.monotonic()
        eaten = await sandbox.run(["/usr/bin/python3", "-c", "print(len(b'x' * 300_000_000))"], ENV)
        assert eaten.stdout == b"300000000\n", eaten
        assert time.monotonic() - began < 5


async def test_a_single_process_needs_some_memory(tmp_path):
    async with opened(bubblewrap.Bubblewrap, tmp_path) as sandbox:
        if "memory" in find_parents():
            await sandbox.limit(memory=30_000_000)
        else:
            with pytest.raises(HarnessError, match=r"\b64000000 bytes"):
                await sandbox.limit(memory=30_000_000)


def test_a_family_is_all_that_a_process_has_started():
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        grandchild = os.fork()
        if grandchild == 0:
            time.sleep(60)
            os._exit(0)
        os.write(write, str(grandchild).encode())
        os.waitpid(grandchild, 0)
        os._exit(0)
    grandchild = int(os.read(read, 20))
    try:
        assert {child, grandchild} == set(list_family([child]))
        assert {child, grandchild} < set(list_family([os.getpid()]))
    finally:
        os.kill(grandchild, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(read)
        os.close(write)
    assert list(list_family([2**22 + 1])) == [2**22 + 1]
