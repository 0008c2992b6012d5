"""What a hostile agent tries in a bubblewrap sandbox, and does not get. As whoever runs the tests, root included."""

import asyncio
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from sandbox_kit import ENV, PRELUDE, ROOT, as_ordinary_user, attempt, in_sandbox, shell

from holdfast.model.world import Resources
from holdfast.protocols.sandbox import SandboxSpec, Stdio
from holdfast.world.sandbox import limits
from holdfast.world.sandbox.bubblewrap import Bubblewrap
from holdfast.world.supervisors.messages import find_sandbox_user

MB = 1 << 20


def test_host_files_are_not_there(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("harness")
    paths = [secret, "/etc/shadow", "/root/.bashrc", "/home/other", "/var/lib", "/run/docker.sock", "/sys", "/boot"]
    said = attempt(tmp_path, f"for p in {[str(p) for p in paths]}: print(refused(os.stat, p))")
    assert said.split() == ["ENOENT"] * len(paths)


def test_nothing_of_ours_is_in_the_file_system(tmp_path):
    """Neither Holdfast's folder, nor the places that a supervisor mounts, nor another root to be found in /proc."""
    script = f"""
print(*os.listdir("/"))
print(os.path.exists({str(tmp_path)!r}), sorted(os.listdir("/proc/1/root")) == sorted(os.listdir("/")))
print(os.listdir("/home"), os.listdir("/home/agent"))
"""
    top, rest, homes = attempt(tmp_path, script).splitlines()
    # The trial's own, and of the host only the way to the interpreter that runs the script.
    interpreter = Path(sys.prefix).parts[2:3] if Path(sys.prefix).is_relative_to("/home") else ()
    assert homes in (f"{[*interpreter, 'agent']} []", f"{['agent', *interpreter]} []")
    assert {"workspace", "usr", "etc", "proc", "dev", "tmp"} <= set(top.split())
    assert not {"sys", "mnt", "srv", "boot"} & set(top.split())
    assert rest == "False True"


@pytest.mark.parametrize("place", ["/", "/usr", "/etc", "/opt", "/dev", "/proc", "/proc/sys/kernel", "/run", "/var"])
def test_nothing_is_written_outside(tmp_path, place):
    said = attempt(tmp_path, f"print(refused(os.open, '{place}/planted', os.O_CREAT | os.O_WRONLY))")
    assert said.strip() in ("EROFS", "EACCES", "ENOENT", "EPERM")
    assert not Path(place, "planted").exists()


def test_system_files_cannot_be_changed(tmp_path):
    paths = ["/usr/bin/env", "/etc/hosts", "/etc/ssl/openssl.cnf", os.__file__]
    said = attempt(tmp_path, f"for p in {paths}: print(refused(os.open, p, os.O_WRONLY), refused(os.chmod, p, 0o777))")
    assert set(said.split()) <= {"EROFS", "EACCES", "EPERM", "ENOENT"}


def test_no_address_but_loopback_is_reached(tmp_path):
    script = """
for family, address in ((socket.AF_INET, ("192.0.2.1", 80)), (socket.AF_INET6, ("2001:db8::1", 80))):
    with socket.socket(family) as s:
        s.settimeout(5)
        print(refused(s.connect, address))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    print(refused(s.sendto, b"x", ("192.0.2.1", 53)))
print([line.split(":")[0].strip() for line in open("/proc/net/dev").readlines()[2:]])
"""
    *reached, devices = attempt(tmp_path, script).splitlines()
    assert set(reached) <= {"ENETUNREACH", "EADDRNOTAVAIL"}
    assert devices == "['lo']"


def test_loopback_is_not_the_host_s(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as host:
        port = host.getsockname()[1]
        said = attempt(tmp_path, f"print(refused(socket.create_connection, ('127.0.0.1', {port}), 5))")
        assert said.strip() == "ECONNREFUSED"
        host.settimeout(0.2)
        with pytest.raises(TimeoutError):
            host.accept()


def test_sockets_of_the_host_are_not_reached(tmp_path):
    """Neither an abstract one nor one in a folder; nor is any named in /proc."""
    name = f"holdfast-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as abstract, socket.socket(socket.AF_UNIX) as placed:
        abstract.bind(f"\0{name}")
        placed.bind(str(tmp_path / "s"))
        abstract.listen()
        placed.listen()
        script = f"""
for address in ("\\0{name}", {str(tmp_path / "s")!r}):
    with socket.socket(socket.AF_UNIX) as s:
        print(refused(s.connect, address))
print(len(open("/proc/net/unix").readlines()))
"""
        assert attempt(tmp_path, script).split() == ["ECONNREFUSED", "ENOENT", "1"]


def test_socket_families_are_filtered(tmp_path):
    script = """
for family in (40, 17, 38, 31, 15, 21, 30):
    print(refused(socket.socket, family, socket.SOCK_DGRAM))
for protocol in (9, 15, 16, 12):
    print(refused(socket.socket, 16, socket.SOCK_RAW, protocol))
print(refused(socket.socket, socket.AF_INET, socket.SOCK_RAW, 1))
socket.socket(16, socket.SOCK_RAW, 0).close(); socket.socketpair()[0].close()
"""
    said = attempt(tmp_path, script).split()
    assert said == ["EAFNOSUPPORT"] * 7 + ["EPROTONOSUPPORT"] * 4 + ["EPERM"]


def test_banned_calls_are_refused(tmp_path):
    numbers = {"x86_64": (425, 248, 250, 321, 298, 323), "aarch64": (425, 217, 219, 280, 241, 282)}[os.uname().machine]
    said = attempt(tmp_path, f"for n in {numbers}: print(refused(libc.syscall, n, 1, 0, 0, 0, 0))")
    assert said.split() == ["ENOSYS"] * len(numbers)


if os.uname().machine == "x86_64":  # the only processor with a second table of system calls

    def test_the_second_table_of_system_calls_is_refused(tmp_path):
        assert attempt(tmp_path, "print(refused(libc.syscall, 0x40000000 + 41, 40, 2, 0))").strip() == "ENOSYS"


def test_there_are_no_rights_and_none_to_be_had(tmp_path):
    script = """
status = {line.partition(":")[0]: line.partition(":")[2].strip() for line in open("/proc/self/status")}
print(*(int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")), status["NoNewPrivs"])
import shutil
shutil.copy("/usr/bin/id", "/workspace/id"); os.chmod("/workspace/id", 0o6755)
print(os.popen("/workspace/id -u").read().strip(), os.getuid())
print(refused(os.setuid, 0), refused(os.chroot, "/tmp"), refused(libc.sethostname, b"x", 1))
print(refused(os.mknod, "/workspace/disk", 0o60600, os.makedev(8, 0)))
print(refused(time.clock_settime, time.CLOCK_REALTIME, 0))
"""
    said = attempt(tmp_path, script).split()
    assert said[:6] == ["0", "0", "0", "0", "0", "1"]
    assert said[6] == said[7] == "1000"
    assert set(said[8:]) <= {"EPERM", "EINVAL"}


def test_no_namespace_or_mount_can_be_made(tmp_path):
    script = """
for flag in (0x10000000, 0x20000, 0x40000000, 0x20000000, 0x10020000):
    print(refused(libc.unshare, flag))
print(refused(libc.mount, b"none", b"/tmp", b"tmpfs", 0, None))
print(refused(libc.mount, b"/workspace", b"/tmp", None, 4096, None))
print(refused(libc.mount, None, b"/usr", None, 32 | 4096, None))
print(refused(libc.umount2, b"/proc/sys", 2), refused(libc.pivot_root, b"/", b"/tmp"))
"""
    assert set(attempt(tmp_path, script).split()) <= {"EPERM", "ENOSPC", "EUSERS", "EINVAL"}
    assert "ESCAPED" not in attempt(tmp_path, script)


def test_kernel_settings_are_read_only(tmp_path):
    before = Path("/proc/sys/kernel/core_pattern").read_text()
    script = """
settings = ("kernel/core_pattern", "kernel/hostname", "net/ipv4/ip_forward", "user/max_user_namespaces")
for name in ("sysrq-trigger", *("sys/" + setting for setting in settings)):
    print(refused(os.open, "/proc/" + name, os.O_WRONLY))
"""
    assert set(attempt(tmp_path, script).split()) <= {"EROFS", "EACCES", "EPERM", "ENOENT"}
    assert Path("/proc/sys/kernel/core_pattern").read_text() == before


def test_processes_outside_are_neither_seen_nor_hit(tmp_path):
    """Even those of the same user: `kill -9 -1` ends the sandbox's own."""
    uid, gid = find_sandbox_user({})
    outside = subprocess.Popen(["sleep", "60"], user=uid, group=gid, extra_groups=[] if os.getuid() == 0 else None)
    try:
        script = f"""
print(refused(os.kill, {outside.pid}, 0), refused(libc.ptrace, 16, {outside.pid}, 0, 0))
print(sorted(int(n) for n in os.listdir("/proc") if n.isdigit()) == [1, os.getpid()])
for line in open("/proc/1/status"):
    if line.startswith(("CapEff", "Seccomp:")):
        print(int(line.split()[1], 16), flush=True)
os.kill(-1, 9)
"""
        said = attempt(tmp_path, script).split()
        assert said[0] == "ESRCH"
        assert said[1] in ("ESRCH", "EPERM")
        assert said[2] == "True"
        assert said[3:5] == ["0", "2"], "the first process inside is as bound as the others: it can be traced"
        assert outside.poll() is None
    finally:
        outside.kill()
        outside.wait()


def test_a_sandbox_survives_its_neighbour(tmp_path):
    """Another trial is neither seen nor ended, and its listener not reached."""

    async def run():
        backend = await Bubblewrap.open_backend(tmp_path)
        try:
            victim = await backend.open(SandboxSpec("victim", listen=(("127.0.1.1", 7000),)))
            attacker = await backend.open(SandboxSpec("attacker"))
            null = os.open(os.devnull, os.O_RDWR)
            alive = await victim.start(["sleep", "60"], ENV, Stdio(null, null, null))
            os.close(null)
            await victim.run(["sh", "-c", "echo secret > /tmp/s; echo secret > s; echo secret > /dev/shm/s"], ENV)
            script = "cat /tmp/s s /dev/shm/s; kill -9 -1"
            ran = await attacker.run(["sh", "-c", script], ENV)
            knock = "import socket; socket.create_connection(('127.0.1.1', 7000), 5)"
            refused = await attacker.run([sys.executable, "-c", knock], ENV)
            result = ran.stdout, alive.ended, b"ConnectionRefused" in refused.stderr
            await victim.close()
            await attacker.close()
            return result
        finally:
            await backend.close()

    assert asyncio.run(run()) == (b"", False, True)


def test_only_the_three_descriptors_are_there(tmp_path):
    script = "print(sorted(int(f) for f in os.listdir('/proc/self/fd') if refused(os.fstat, int(f)) == 'ESCAPED'))"
    assert attempt(tmp_path, script).strip() == "[0, 1, 2]"


def test_the_environment_of_the_host_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_SECRET", "for-nobody")
    assert "for-nobody" not in shell(tmp_path, "env; cat /proc/*/environ | tr '\\0' '\\n'")


def test_a_fork_bomb_ends_at_its_limit(tmp_path):
    script = """
made = 0
try:
    while made < 2000:
        if os.fork() == 0:
            time.sleep(30); os._exit(0)
        made += 1
except OSError as error:
    print(made, errno.errorcode[error.errno])
print(refused(resource.setrlimit, resource.RLIMIT_NPROC, (9999, 9999)))
"""
    made, why, raised = attempt(tmp_path, script, resources=Resources(pids=40)).split()
    assert 10 < int(made) <= 40
    assert why == "EAGAIN"
    assert raised in ("EPERM", "ValueError")


def test_a_fork_bomb_without_a_limit_ends_too(tmp_path):
    script = "print(resource.getrlimit(resource.RLIMIT_NPROC)[0])"
    assert attempt(tmp_path, script).strip() == "4096"


def test_a_disk_fills_up_at_its_limit(tmp_path):
    """Whatever place is written to: all of them count together."""
    script = """
total = 0
for place in ("/workspace", "/tmp", "/dev/shm", "/dev", "/run", "/", "/var/tmp", "/etc"):
    try:
        with open(place + "/full", "wb", buffering=0) as file:
            for _ in range(64):
                total += file.write(b"x" * 1048576)
    except OSError as error:
        print(errno.errorcode[error.errno])
print(total)
"""
    *why, total = attempt(tmp_path, script, resources=Resources(disk=8 * MB)).split()
    assert set(why) <= {"ENOSPC", "EROFS"}
    assert why[0] == "ENOSPC"
    assert 6 * MB < int(total) <= 8 * MB


def test_files_end_at_a_limit(tmp_path):
    script = """
try:
    for n in range(100_000):
        open(f"/tmp/{n}", "w").close()
except OSError as error:
    print(errno.errorcode[error.errno])
"""
    assert attempt(tmp_path, script, resources=Resources(disk=8 * MB)).strip() == "ENOSPC"


def test_memory_ends_at_its_limit(tmp_path):
    script = "held = []\nfor _ in range(400):\n    held.append(b'x' * 1048576)\nprint('ESCAPED')"

    async def work(sandbox):
        return await sandbox.run([sys.executable, "-c", script], ENV)

    ran = in_sandbox(tmp_path, work, resources=Resources(memory=128 * MB))
    assert ran.exit_code != 0
    assert b"ESCAPED" not in ran.stdout


@pytest.mark.root
def test_processor_time_ends_at_its_limit(tmp_path):
    if "cpu" not in limits.find_parents():
        pytest.skip("this machine lets us make no control group for processor time")
    script = "began = time.monotonic()\nwhile time.monotonic() - began < 2: pass\nprint(time.process_time())"
    assert float(attempt(tmp_path, script, resources=Resources(cpu=0.2))) < 1.0


def test_links_do_not_lead_a_reader_out(tmp_path):
    """Also not one that reads the view by itself, as a script on the host does."""
    (tmp_path / "secret").write_text("harness")

    async def work(sandbox):
        await sandbox.run(["sh", "-c", f"ln -s {tmp_path}/secret link; ln -s {tmp_path} folder; mkfifo pipe"], ENV)
        await sandbox.freeze()
        told = []
        for path in ("link", "folder/secret"):
            with pytest.raises(OSError, match="symbolic links"):
                (sandbox.view() / path).read_text()
            told.append(path)
        return told, [change.path for change in sandbox.changes()]

    told, changes = in_sandbox(tmp_path, work)
    assert told == ["link", "folder/secret"]
    assert changes == ["folder", "link", "pipe"]


def test_modes_hide_nothing(tmp_path):
    """What an agent makes unreadable is in the list of changes all the same."""

    async def work(sandbox):
        await sandbox.run(["sh", "-c", "mkdir d; echo x > d/hidden; echo y > f; chmod 0 d f"], ENV)
        await sandbox.freeze()
        return [(change.path, change.op, change.bytes) for change in sandbox.changes()]

    assert in_sandbox(tmp_path, work) == [("d/hidden", "created", 2), ("f", "created", 2)]


def test_deep_folders_and_odd_names_are_read(tmp_path):
    script = """
for _ in range(1500):
    os.mkdir("d"); os.chdir("d")
os.chdir("/workspace")
open(b"/workspace/\\xff\\n\\0".strip(b"\\0"), "w").close()
for n in range(3000): open(f"/workspace/{n}", "w").close()
"""

    async def work(sandbox):
        await sandbox.run([sys.executable, "-c", PRELUDE + script], ENV)
        await sandbox.freeze()
        return [change.path for change in sandbox.changes()]

    paths = in_sandbox(tmp_path, work)
    assert len(paths) == 3002
    assert paths[-1] == "\\xff\n"
    assert paths[-2] == "/".join(["d"] * 1500)


KILLED = """
import asyncio, os, sys
from pathlib import Path
from tempfile import TemporaryDirectory
from holdfast.model.world import Resources
from holdfast.protocols.sandbox import SandboxSpec, Stdio
from holdfast.world.sandbox.bubblewrap import Bubblewrap

async def main():
    backend = await Bubblewrap.open_backend(Path(sys.argv[1]))
    plot = SandboxSpec("x", listen=(("127.0.0.1", 80),), resources=Resources(memory=64 << 20), commands=lambda _: repr)
    sandbox = await backend.open(plot)
    null = os.open(os.devnull, os.O_RDWR)
    script = f"setsid sleep {sys.argv[2]} & sleep {sys.argv[2]}; true"
    await sandbox.start(["sh", "-c", script], {"PATH": "/usr/bin:/bin"}, Stdio(null, null, null))
    print("up", flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


def test_nothing_is_left_when_holdfast_is_killed(tmp_path):
    mark = f"7{os.getpid()}{time.monotonic_ns() % 1_000_000}"
    mounts = Path("/proc/self/mountinfo").read_text()
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *sys.path])}
    ours = subprocess.Popen([sys.executable, "-c", KILLED, tmp_path, mark], stdout=subprocess.PIPE, env=env)
    try:
        assert ours.stdout.readline() == b"up\n"
        assert _wait(lambda: len(_running(mark)) == 3)
        below = _below(ours.pid)
        assert len(below) >= 5
    finally:
        ours.kill()
        ours.wait()
        ours.stdout.close()
    assert _wait(lambda: not _running(mark)), _running(mark)
    assert _wait(lambda: not any(Path(f"/proc/{pid}").exists() for pid in below))
    assert Path("/proc/self/mountinfo").read_text() == mounts
    assert not list(tmp_path.iterdir())
    limits.sweep()
    assert not [group for parent in limits.find_parents().values() for group in parent.glob(f"holdfast-{ours.pid}-*")]


@pytest.mark.parametrize(
    "name",
    [
        "integration/test_sandbox_escapes",
        pytest.param("integration/test_sandbox_bubblewrap", marks=pytest.mark.long),
        "integration/test_sandbox_commands",
        pytest.param("conformance/test_sandboxes_conform", marks=pytest.mark.long),
    ],
)
@pytest.mark.root
def test_the_same_holds_for_an_ordinary_user(name):
    with TemporaryDirectory(dir="/tmp") as folder:  # pytest's own is for root alone
        options = ["-q", "-p", "no:cacheprovider", "--basetemp", f"{folder}/t"]
        ran = as_ordinary_user("-m", "pytest", *options, f"tests/{name}.py", folder=Path(folder))
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]
    assert "passed" in ran.stdout


def _running(mark):
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and mark.encode() in Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")[1:]:
                found.append(int(name))
        except OSError:
            continue
    return [pid for pid in found if Path(f"/proc/{pid}/comm").exists()]


def _below(pid):
    """All processes below one."""
    try:
        children = [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return children + [below for child in children for below in _below(child)]


def _wait(true):
    until = time.monotonic() + 20
    while not true() and time.monotonic() < until:
        time.sleep(0.05)
    return true()
