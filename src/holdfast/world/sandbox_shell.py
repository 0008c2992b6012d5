"""A look into a sandbox: a shell in it, at the user's terminal."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import shutil
import signal
import sys
import termios
import tty
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from holdfast.errors import AgentUnavailable
from holdfast.protocols.sandbox import Sandbox, Stdio
from holdfast.world.holders.running_program import ended

_SHELL = "/bin/sh"
_CHUNK = 1 << 16


async def visit(sandbox: Sandbox, environ: Mapping[str, str], command: Sequence[str] = ()) -> int:
    """Runs a shell, or a command, in a sandbox, at this terminal; its exit code."""
    return await _talk(sandbox, [*command] or [*_terminal(), _SHELL], {**environ, **_looks()})


def _looks() -> dict[str, str]:
    return {"TERM": os.environ.get("TERM", "dumb"), "PS1": "kept $ "}


def _terminal() -> list[str]:
    """What gives a shell a terminal of its own, so that it can stop its jobs."""
    found = shutil.which("setsid", path="/usr/bin:/bin")
    return [found, "-cw"] if found and sys.stdin.isatty() else []


async def _talk(sandbox: Sandbox, argv: Sequence[str], env: dict[str, str]) -> int:
    if not sys.stdin.isatty():
        return await _run(sandbox, argv, env, Stdio(0, 1, 2))
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, fcntl.ioctl(0, termios.TIOCGWINSZ, b"\0" * 8))
    loop = asyncio.get_running_loop()
    with _raw():
        loop.add_reader(0, _pass, 0, ours)
        loop.add_reader(ours, _pass, ours, 1)
        try:
            return await _run(sandbox, argv, env, Stdio(theirs, theirs, theirs))
        finally:
            loop.remove_reader(0)
            loop.remove_reader(ours)
            os.close(theirs)
            os.close(ours)


async def _run(sandbox: Sandbox, argv: Sequence[str], env: dict[str, str], stdio: Stdio) -> int:
    try:
        program = await sandbox.start(argv, env, stdio)
    except OSError as refused:
        raise AgentUnavailable(f"cannot start {argv[0]}: {refused.strerror}", config=True) from refused
    try:
        while not await program.within(3600.0):
            pass
    finally:
        await program.end(0.0)
    code, number = ended(program.status)
    return code if code is not None else 128 + (number or signal.SIGKILL)


def _pass(source: int, target: int) -> None:
    try:
        data = os.read(source, _CHUNK)
    except OSError:  # the shell has closed its terminal
        data = b""
    if not data:
        asyncio.get_running_loop().remove_reader(source)
        return
    while data:
        data = data[os.write(target, data) :]


@contextmanager
def _raw() -> Iterator[None]:
    """The user's terminal hands over every key."""
    before = termios.tcgetattr(0)
    tty.setraw(0, termios.TCSADRAIN)  # what was typed already is not lost
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
