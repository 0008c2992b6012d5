"""Opens sandboxes for tests, runs hostile programs in them, and runs test files as an ordinary user."""

import asyncio
import contextlib
import os
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
        if os.environ.get("CI") == "true":
            raise
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


def as_ordinary_user(*words, folder):
    """Runs our tests as a user without rights; skips where no interpreter can be executed by one, but not in CI."""
    packages = [path for path in sys.path if path.endswith("site-packages")]
    env = {
        "PATH": ENV["PATH"],
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *packages]),
        "CI": os.environ.get("CI", ""),
    }
    folder.chmod(0o777)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for interpreter in (sys.executable, f"/usr/bin/{version}"):
        drop = ["setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups", "env", interpreter]
        if subprocess.run([*drop, "-c", "import msgspec"], env=env, capture_output=True).returncode == 0:
            return subprocess.run([*drop, *words], env=env, capture_output=True, text=True, cwd=ROOT)
    why = f"no {version} that an ordinary user can execute has what the tests need"
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why)
