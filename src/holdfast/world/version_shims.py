"""Shims of mise, asdf and volta: small programs that start the version which is meant. Their manager knows it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from subprocess import Popen

_ASKED_S = 10.0
"""A manager answers in milliseconds; one that asks the network first is not waited for."""
_READ = 4096
_MOST = 65_536
"""Bytes of an answer: it is a path."""
_ASDF = re.compile(rb"^exec (\S*asdf) exec ", re.MULTILINE)
_BESIDE = {"mise": "mise", "volta-shim": "volta"}
"""What a shim is a link to, and the manager that lies there."""


def manager_of(shim: str, path: str) -> str | None:
    """The program to ask what a shim stands for, by the shim's own link or text; None where it is no shim."""
    if os.path.islink(shim):
        beyond = os.path.join(os.path.dirname(shim), os.readlink(shim))
        beside = _BESIDE.get(os.path.basename(beyond))
        own = beside is None or os.path.basename(shim) == beside
        return None if own else os.path.join(os.path.dirname(beyond), beside or "")
    try:
        with open(shim, "rb") as file:
            found = _ASDF.search(file.read(_READ))
    except OSError:
        return None
    if found is None:
        return None
    from shutil import which

    return which(os.fsdecode(found[1]), path=path)


def program_behind(manager: str, name: str, root: Path, environ: Mapping[str, str]) -> str | None:
    """Where the program lies that the manager would start in that folder; None if it knows none."""
    return _asked(manager, name, root, tuple(sorted(environ.items())))


@cache
def _asked(manager: str, name: str, root: Path, environ: tuple[tuple[str, str], ...]) -> str | None:
    import subprocess  # few users have such a shim

    try:
        with subprocess.Popen(  # noqa: S603 (the user's own manager, asked as its shim would ask it)
            [manager, "which", name],
            cwd=root,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as asked:
            said = _said(asked)
    except OSError:
        return None
    place = next((line.strip() for line in reversed(os.fsdecode(said).split("\n")) if line.strip()), "")
    return place if os.path.isabs(place) else None


def _said(asked: Popen[bytes]) -> bytes:
    """What it prints within its time, if it ends well and does not go on and on; it is ended in any case."""
    import select
    import signal
    import subprocess
    from time import monotonic

    assert asked.stdout is not None, "it has a pipe"
    said, until = b"", monotonic() + _ASKED_S
    try:
        while len(said) <= _MOST and select.select([asked.stdout], [], [], max(0.0, until - monotonic()))[0]:
            data = os.read(asked.stdout.fileno(), _READ)
            if not data:
                return said if asked.wait(max(0.0, until - monotonic())) == 0 else b""
            said += data
        return b""
    except subprocess.TimeoutExpired:
        return b""
    finally:
        if asked.returncode is None:  # with all that it started
            os.killpg(asked.pid, signal.SIGKILL)
