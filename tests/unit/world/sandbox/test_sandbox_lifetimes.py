"""Commands are followed to their end: with real processes of our own."""

import os
import select
import subprocess
import sys

import pytest

from holdfast.world.sandbox.command_recorder import EXEC_CHAIN_LIMIT, Lifetimes
from holdfast.world.sandbox.stopped_calls import ExecImage, find_leader, is_executing
from holdfast.world.supervisors.messages import CommandEndMessage

OTHER = ExecImage(b"another", b"image")


@pytest.fixture
def poll():
    with select.epoll() as found:
        yield found


@pytest.fixture
def ends():
    return []


@pytest.fixture
def lives(poll, ends):
    found = Lifetimes(poll, ends.append, 1024)
    yield found
    found.close()


@pytest.fixture
def child():
    with subprocess.Popen(["sleep", "60"]) as found:
        yield found
        found.kill()


def codes(ends):
    return [(end.number, end.exit_code) for end in ends]


def test_a_process_ends_every_command_that_it_was(lives, ends, child):
    lives.on_exec(child.pid, 1, OTHER)
    lives.on_exec(child.pid, 2, ExecImage(b"first", b""))
    lives.on_exit(child.pid, 3)
    assert codes(ends) == [(1, 3), (2, 3)]
    assert all(end.took_ns > 0 for end in ends)
    lives.on_exit(child.pid, 4)
    assert len(ends) == 2, "each is told once"


def test_a_signal_leaves_no_exit_code(lives, ends, child, poll):
    lives.on_exec(child.pid, 1, OTHER)
    assert poll.poll(0) == []
    child.kill()
    ((fd, _),) = poll.poll(20)
    assert lives.on_death(fd)
    assert codes(ends) == [(1, None)]
    assert ends[0].took_ns > 0
    assert not lives.on_death(fd)
    assert poll.poll(0) == [], "it is not watched any more"


def test_what_the_kernel_refused_has_neither_code_nor_duration(lives, ends, child):
    lives.on_exec(child.pid, 1, OTHER)
    lives.on_exec(child.pid, 2, OTHER)
    assert ends == [CommandEndMessage(1)]
    lives.on_exit(child.pid, 126)
    assert codes(ends) == [(1, None), (2, 126)]


def test_a_process_that_goes_on_after_a_refusal_gives_it_no_code(lives, ends):
    same = ExecImage(_auxiliary(), _random())
    assert is_executing(os.getpid(), same)
    lives.on_exec(os.getpid(), 1, same)
    lives.on_exit(os.getpid(), 0)
    assert ends == [CommandEndMessage(1)]
    assert not is_executing(os.getpid(), ExecImage(same.auxiliary, b"x" * 16)), "the same place, another program"


def test_a_process_that_executes_forever_is_followed_so_far(lives, ends, child):
    for n in range(EXEC_CHAIN_LIMIT + 2):
        lives.on_exec(child.pid, n, ExecImage(b"%d" % n, b""))
    assert codes(ends) == [(EXEC_CHAIN_LIMIT - 1, None), (EXEC_CHAIN_LIMIT, None)]
    lives.on_exit(child.pid, 0)
    assert codes(ends[2:]) == [*((n, 0) for n in range(EXEC_CHAIN_LIMIT - 1)), (EXEC_CHAIN_LIMIT + 1, 0)]


def test_processes_that_executed_nothing_are_not_matter(lives, ends, child):
    lives.on_exit(child.pid, 1)
    lives.on_exit(2**22 - 1, 1)
    assert ends == []


def test_without_descriptors_an_end_by_a_signal_is_reported_last(poll, ends, child):
    lives = Lifetimes(poll, ends.append, 0)
    lives.on_exec(child.pid, 1, OTHER)
    child.kill()
    assert poll.poll(0.2) == []
    lives.close()
    assert codes(ends) == [(1, None)]


def test_no_descriptor_is_left(lives, child):
    before = len(os.listdir("/proc/self/fd"))
    for n in range(20):
        lives.on_exec(child.pid, n, ExecImage(b"%d" % n, b""))
    lives.on_exit(child.pid, 0)
    lives.on_exit(child.pid, 0)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_thread_belongs_to_its_process():
    script = "import os, threading as t\nx = t.Thread(target=input); x.start(); print(x.native_id, flush=True)"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert find_leader(int(child.stdout.readline())) == child.pid == find_leader(child.pid)
        child.communicate(b"\n")


def _auxiliary():
    with open("/proc/self/auxv", "rb") as file:
        return file.read()


def _random():
    """The bytes that the kernel gave this program."""
    data = _auxiliary()
    words = [int.from_bytes(data[n : n + 8], "little") for n in range(0, len(data), 8)]
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        return os.pread(memory.fileno(), 16, dict(zip(words[::2], words[1::2], strict=True))[25])
