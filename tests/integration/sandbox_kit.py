"""Opens sandboxes for tests, runs hostile programs in them, and runs test files as an ordinary user."""

import asyncio
import contextlib
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.errors import UserError
from holdfast.protocols.sandbox import SandboxSpec
from holdfast.world.sandbox.bubblewrap import Bubblewrap

ENV = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
ROOT = Path(__file__).parents[2]
PRELUDE = """
import ctypes, errno, os, resource, signal, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def refused(call, *arguments):
    try:
        result = call(*arguments)
    except OSError as error:
        return errno.errorcode.get(error.errno, error.errno)
    except ValueError as error:
        return "ValueError"
    if result == -1:
        return errno.errorcode[ctypes.get_errno()]
    return "ESCAPED"
"""


@contextlib.asynccontextmanager
async def sandbox_in(folder, spec, kind=Bubblewrap):
    """A sandbox for the block; skips on a machine where bubblewrap cannot make one."""
    try:
        backend = await kind.open_backend(folder)
    except UserError as refused:
        pytest.skip(f"bubblewrap cannot make a sandbox here: {refused}")
    try:
        sandbox = await backend.open(spec)
        try:
            yield sandbox
        finally:
            await sandbox.close()
    finally:
        await backend.close()


def in_sandbox(folder, work, **sandbox_spec):
    """Runs `await work(sandbox)` in a sandbox of its own and gives back its result."""

    async def run():
        backend = await Bubblewrap.open_backend(folder)
        try:
            sandbox = await backend.open(SandboxSpec("t", **sandbox_spec))
            try:
                return await work(sandbox)
            finally:
                await sandbox.close()
        finally:
            await backend.close()

    return asyncio.run(run())


def attempt(folder, script, *, timeout_s=60.0, **sandbox_spec):
    """What a Python script says that is run inside."""

    async def work(sandbox):
        ran = await sandbox.run([sys.executable, "-c", PRELUDE + script], ENV, timeout_s=timeout_s, keep=100_000)
        assert not ran.timed_out
        return ran.stdout.decode() + ran.stderr.decode()

    return in_sandbox(folder, work, **sandbox_spec)


def shell(folder, script, **sandbox_spec):
    """What a shell script says that is run inside, with its errors."""
    return in_sandbox(folder, lambda sandbox: _shell(sandbox, script), **sandbox_spec)


async def _shell(sandbox, script):
    ran = await sandbox.run(["sh", "-c", f"({script}) 2>&1"], ENV, keep=100_000)
    return ran.stdout.decode()


def as_ordinary_user(*words, folder, **more):
    """Run a Python as a user without rights, in the clone; `more` are variables of its environment.

    If the clone lies in root's home, it is mounted in `folder` for this process alone.
    """
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (f"{sys.base_prefix}/bin/{version}", f"/usr/bin/{version}"):
        if os.path.exists(python) and _can_all_reach(python):
            break
    else:
        pytest.skip(f"no {version} that an ordinary user can execute")
    packages = [path for path in sys.path if path.endswith("site-packages")]
    shown = {path: path for path in (str(ROOT), *packages)}
    lines = ["set -e"]
    for path in shown:
        if not _can_all_reach(path):
            shown[path] = str(folder / f"mount-{len(lines)}")
            Path(shown[path]).mkdir()
            lines.append(f"mount --bind {shlex.quote(path)} {shlex.quote(shown[path])}")
    unshare = ["unshare", "--mount"] if len(lines) > 1 else []
    lines += [f"cd {shlex.quote(shown[str(ROOT)])}", 'exec "$@"']
    folder.chmod(0o777)
    env = {
        "PATH": ENV["PATH"],
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join([f"{shown[str(ROOT)]}/src", *(shown[path] for path in packages)]),
        "CI": os.environ.get("CI", ""),
        **more,
    }
    drop = ["setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups", "--", python]
    moved = [word.replace(str(ROOT), shown[str(ROOT)]) for word in words]
    command = [*unshare, "sh", "-c", "\n".join(lines), "sh", *drop, *moved]
    return subprocess.run(command, env=env, capture_output=True, text=True)


def _can_all_reach(path):
    return all(parent.stat().st_mode & 0o001 for parent in Path(path).resolve().parents)
