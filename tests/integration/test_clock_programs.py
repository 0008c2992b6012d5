"""Real programs under a shifted clock: what they read, how long they wait, and what a change does while they run."""

import asyncio
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from sandbox_kit import ENV, as_ordinary_user, in_sandbox

from holdfast.model.world import Isolation
from holdfast.protocols.sandbox import SandboxSpec
from holdfast.world.sandbox import process
from holdfast.world.world_clock import (
    COVERED,
    Clock,
    build_clock_environ,
    find_clock_library,
    probe_clock,
    to_nanoseconds,
)

STARTS = datetime(2019, 6, 1, 12, tzinfo=UTC)
START_S = STARTS.timestamp()
NEAR_S = 60
JAVA = "class Now { public static void main(String[] a) { System.out.println(System.currentTimeMillis()); } }"
WAITS = """
import ctypes, os, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
class At(ctypes.Structure):
    _fields_ = [("s", ctypes.c_long), ("ns", ctypes.c_long)]
def soon(clock, ms=200):
    ns = time.clock_gettime_ns(clock) + ms * 10**6
    return At(ns // 10**9, ns % 10**9)
def waited(call, *arguments):
    began = time.monotonic()
    call(*arguments)
    return 0.15 < time.monotonic() - began < 10
room = [ctypes.create_string_buffer(128) for _ in range(9)]
cond, mutex, sem, held, mono, attr, rw = room[:7]
libc.sem_init(sem, 0, 0)
libc.pthread_mutex_lock(mutex)
libc.pthread_mutex_lock(held)
libc.pthread_rwlock_wrlock(rw)
libc.pthread_condattr_init(attr)
libc.pthread_condattr_setclock(attr, time.CLOCK_MONOTONIC)
libc.pthread_cond_init(mono, attr)
R, M = time.CLOCK_REALTIME, time.CLOCK_MONOTONIC
ref = ctypes.byref
print("nanosleep", waited(libc.clock_nanosleep, R, 1, ref(soon(R)), None))
print("monotonic nanosleep", waited(libc.clock_nanosleep, M, 1, ref(soon(M)), None))
print("relative nanosleep", waited(libc.clock_nanosleep, R, 0, ref(At(0, 2 * 10**8)), None))
print("cond", waited(libc.pthread_cond_timedwait, cond, mutex, ref(soon(R))))
print("monotonic cond", waited(libc.pthread_cond_timedwait, mono, mutex, ref(soon(M))))
print("cond clockwait", waited(libc.pthread_cond_clockwait, cond, mutex, R, ref(soon(R))))
print("monotonic clockwait", waited(libc.pthread_cond_clockwait, cond, mutex, M, ref(soon(M))))
print("mutex", waited(libc.pthread_mutex_timedlock, held, ref(soon(R))))
print("mutex clocklock", waited(libc.pthread_mutex_clocklock, held, R, ref(soon(R))))
print("sem", waited(libc.sem_timedwait, sem, ref(soon(R))))
print("sem clockwait", waited(libc.sem_clockwait, sem, R, ref(soon(R))))
for name, clock in (("timerfd", R), ("monotonic timerfd", M)):
    fd = libc.timerfd_create(clock, 0)
    at = soon(clock)
    def expire():
        assert libc.timerfd_settime(fd, 1, struct.pack("qqqq", 0, 0, at.s, at.ns), None) == 0
        os.read(fd, 8)
    print(name, waited(expire))
began = time.monotonic()
libc.timerfd_settime(fd := libc.timerfd_create(R, 0), 1, struct.pack("qqqq", 0, 0, 5, 0), None)
os.read(fd, 8)
libc.clock_nanosleep(R, 1, ref(At(5, 0)), None)
print("long past", time.monotonic() - began < 5)
print("no time at all", libc.clock_nanosleep(R, 1, ref(At(5, 10**9)), None) == 22)
"""
CONTROLLED = """
import sys, time
for line in sys.stdin:
    print(time.time_ns(), flush=True)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    found = asyncio.run(find_clock_library())
    assert isinstance(found, Path), found
    copy = tmp_path_factory.mktemp("library") / "clock.so"
    shutil.copy(found, copy)
    return copy


@pytest.fixture
def clock(tmp_path):
    clock = Clock(tmp_path / "clock")
    clock.jump(to_nanoseconds(STARTS))
    yield clock
    clock.close()


def said(library, argv, control=None, stdin=None, cwd=None):
    env = {**ENV, "TZ": "UTC", **build_clock_environ(str(library), STARTS, time.time(), control)}
    ran = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, input=stdin, cwd=cwd)
    assert ran.stderr == ""
    return ran.stdout.strip()


def needed(name):
    found = shutil.which(name)
    assert found, f"{name} is not installed: the test set-up installs it"
    return found


@pytest.mark.parametrize(
    "argv",
    [
        ["date", "+%s"],
        ["bash", "-c", "echo $EPOCHREALTIME"],
        ["bash", "-c", "printf '%(%s)T' -1"],
        ["perl", "-e", "print time"],
        ["perl", "-MTime::HiRes=time", "-e", "print time"],
        ["awk", "BEGIN { srand(); srand(); print srand() }"],
        [sys.executable, "-c", "import time; print(time.time())"],
        [sys.executable, "-c", "import datetime; print(datetime.datetime.now().timestamp())"],
        [sys.executable, "-c", "import time; print(time.clock_gettime(5))"],
        [sys.executable, "-c", "import time; print(time.clock_gettime(time.CLOCK_TAI))"],
        [
            sys.executable,
            "-c",
            "import ctypes as c; b = (c.c_long * 2)(); c.CDLL(None).timespec_get(b, 1); print(b[0])",
        ],
    ],
    ids=lambda argv: " ".join(argv)[-40:],
)
def test_programs_see_the_shifted_time(library, argv):
    seen = float(said(library, argv))
    assert 0 <= seen - START_S < NEAR_S


def test_node_sees_it_and_its_timers_run(library, clock, tmp_path):
    script = "setTimeout(() => console.log(Date.now() / 1000), 100)"
    assert 0 <= float(said(library, [needed("node"), "-e", script])) - START_S < NEAR_S
    clock.freeze(int(START_S * 1e9))
    assert float(said(library, [needed("node"), "-e", script], str(tmp_path / "clock"))) == START_S


def test_java_sees_it(library, tmp_path):
    (tmp_path / "Now.java").write_text(JAVA)
    seen = said(library, [needed("java"), "-XX:TieredStopAtLevel=1", str(tmp_path / "Now.java")])
    assert 0 <= int(seen) / 1000 - START_S < NEAR_S


def test_monotonic_clocks_and_file_times_stay(library, tmp_path):
    script = (
        "import os, sys, time; open('f', 'w'); print(time.monotonic(), time.clock_gettime(7), os.stat('f').st_mtime)"
    )
    monotonic, boot, written = map(float, said(library, [sys.executable, "-c", script], cwd=tmp_path).split())
    assert 0 <= time.monotonic() - monotonic < NEAR_S
    assert 0 <= time.clock_gettime(time.CLOCK_BOOTTIME) - boot < NEAR_S
    assert abs(time.time() - written) < NEAR_S


@pytest.mark.parametrize("mode", ["ahead", "behind", "frozen"])
def test_waits_take_as_long_as_they_should(library, clock, tmp_path, mode):
    if mode == "frozen":
        clock.freeze()
    elif mode == "ahead":
        clock.set(10**18)
    lines = said(library, [sys.executable, "-c", WAITS], str(tmp_path / "clock")).splitlines()
    assert len(lines) == 15
    assert [line for line in lines if not line.endswith("True")] == []


def test_a_running_program_follows_the_clock(library, clock, tmp_path):
    env = {**ENV, **build_clock_environ(str(library), STARTS, time.time(), str(tmp_path / "clock"))}
    words = [sys.executable, "-c", CONTROLLED]
    with subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:

        def shown():
            running.stdin.write("\n")
            running.stdin.flush()
            return int(running.stdout.readline())

        assert 0 <= shown() / 1e9 - START_S < NEAR_S
        clock.jump(4_000_000_000 * 10**9)
        assert 0 <= shown() / 1e9 - 4e9 < NEAR_S
        clock.freeze()
        assert shown() == shown() == clock.time_ns
        clock.jump(-5 * 10**9)
        assert -5 <= shown() / 1e9 < NEAR_S
        running.stdin.close()


def test_a_change_is_never_seen_by_halves(library, clock, tmp_path):
    """Freezing, jumping and setting at once with a program that reads as fast as it can."""
    script = f"""
import time
seen = set()
end = time.monotonic() + 1
while time.monotonic() < end:
    shown = time.time()
    seen.add(round((shown - {START_S}) / 1e8))
    assert abs((shown - {START_S}) % 1e8) < 100 or abs((shown - {START_S}) % 1e8 - 1e8) < 100, shown
print(sorted(seen))
"""
    env = {**ENV, **build_clock_environ(str(library), STARTS, time.time(), str(tmp_path / "clock"))}
    with subprocess.Popen([sys.executable, "-c", script], env=env, stdout=subprocess.PIPE, text=True) as running:
        n = 0
        while running.poll() is None:
            n += 1
            moment = to_nanoseconds(STARTS) + n % 5 * 10**17
            if n % 2:
                clock.freeze(moment)
            else:
                clock.jump(moment)
        assert running.stdout.read() == "[0, 1, 2, 3, 4]\n"
    assert running.returncode == 0


def test_the_agent_in_a_sandbox_sees_it_and_cannot_change_it(library, tmp_path):
    lent = tmp_path / "lent"
    lent.mkdir()
    clock = Clock(lent / "clock")
    environ = {**ENV, **build_clock_environ("/run/clock.so", STARTS, time.time(), "/run/holdfast/clock")}

    async def work(sandbox):
        clock.jump(to_nanoseconds(STARTS))
        first = await sandbox.run(["date", "+%s"], environ)
        assert await probe_clock(sandbox, environ, clock) == Isolation("clock", True, COVERED)
        assert not (await probe_clock(sandbox, ENV, clock)).enforced
        clock.freeze(to_nanoseconds(STARTS) + 10**17)
        second = await sandbox.run(["sh", "-c", "date +%s; echo 0 > /run/holdfast/clock; date +%s"], environ)
        return first.stdout + second.stdout, first.stderr + second.stderr

    visible = {"/run/clock.so": library, "/run/holdfast": lent}
    out, err = in_sandbox(tmp_path, work, visible=visible)
    clock.close()
    first, *rest = map(int, out.split())
    assert 0 <= first - START_S < NEAR_S
    assert rest == [START_S + 1e8] * 2
    assert b"Read-only file system" in err
    assert b"ld.so" not in err


def test_the_process_backend_has_a_clock_too(library, tmp_path):
    clock = Clock(tmp_path / "clock")
    clock.freeze(to_nanoseconds(STARTS))

    async def work():
        backend = await process.ProcessBackend.open_backend(tmp_path)
        sandbox = await backend.open(SandboxSpec("t", visible={"/c.so": library, "/clock": tmp_path / "clock"}))
        try:
            place = sandbox.inside
            environ = build_clock_environ(place("/c.so"), STARTS, time.time(), place("/clock"))
            return await sandbox.run(["date", "+%s"], {**ENV, **environ})
        finally:
            await sandbox.close()
            await backend.close()

    ran = asyncio.run(work())
    clock.close()
    assert (int(ran.stdout), ran.stderr) == (START_S, b"")


@pytest.mark.root
def test_all_of_it_as_an_ordinary_user():
    options = ["-q", "-p", "no:cacheprovider", "-k", "sandbox_sees or as_long"]
    with TemporaryDirectory() as folder:
        ran = as_ordinary_user("-m", "pytest", *options, __file__, folder=Path(folder))
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]
    assert "4 passed" in ran.stdout
