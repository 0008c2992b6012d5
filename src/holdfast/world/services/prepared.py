"""Prepared data directories, stored across runs as one archive each.

`initdb` takes a second; unpacking its result takes about 20 ms. So Holdfast makes the data directory for a kind of
server and its settings once, under a lock, in a private folder of the user's cache. Every server of a trial starts from
its own copy, unpacked in memory; the archive is never changed.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from holdfast.errors import ServiceFailed, UserError
from holdfast.model.codec import digest, encode_canonical
from holdfast.processes import scratch
from holdfast.world.compiled import get_cache_folder
from holdfast.world.services.confinement import User, build_user_options, change_owner, find_confinement

FORMAT = 1
"""Increase it when the preparation of data changes."""
MAKE_S = 120.0


RunAsUser = Callable[[list[str], str], None]
"""Runs a command with that standard input as the server's user; raises HarnessError if it fails."""
FillData = Callable[[Path, str, RunAsUser], None]
"""Fills a folder with data that includes Holdfast's own account with that password."""


class PreparedData(Struct, frozen=True):
    """Data from which servers start, and the password of Holdfast's own account in it."""

    archive: Path
    password: str


def prepare_data(kind: str, inputs: Sequence[object], user: User | None, visible: Path, make: FillData) -> PreparedData:
    """Return the data of that kind and settings, and make it if needed; `visible` is its programs' folder."""
    folder = get_cache_folder("services")
    archive = folder / f"{kind}-{digest(encode_canonical([FORMAT, *inputs]))}.tar"
    key = archive.with_suffix(".key")
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(folder / f"{kind}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (archive.exists() and key.exists()):
                _make(archive, key, user, visible, make)
            return PreparedData(archive, key.read_text())
    except OSError as refused:
        raise UserError(
            f"prepared data of services is kept in {folder}, which cannot be used: {refused}",
            code="service-unavailable",
            hint="set XDG_CACHE_HOME to a folder that you can write to",
        ) from refused


def _make(archive: Path, key: Path, user: User | None, visible: Path, make: FillData) -> None:
    for torn in archive.parent.glob(f"{archive.stem}.*.half"):
        torn.unlink()
    # The key is written before the archive is renamed into place: whoever finds the archive finds its password too. A
    # run that is killed in between leaves a `.half` file, which the next one removes.
    password = secrets.token_urlsafe(32)
    with scratch.open_folder("prepare", in_memory=True) as folder:
        change_owner(folder, user)
        owner = user or User(os.getuid(), os.getgid())
        names = folder / "passwd"  # initdb needs its user's name, and a container's user may have none
        names.write_text(f"holdfast:x:{owner.uid}:{owner.gid}::/:/bin/sh\n")
        names.chmod(0o644)

        def run_as_user(argv: list[str], stdin: str) -> None:
            confinement, _ = find_confinement(user)
            if confinement is not None:
                argv = confinement.wrap_command(
                    argv, {str(folder): folder}, {"/etc/passwd": names, str(visible): visible}
                )
            _run(argv, stdin, **build_user_options(user))

        make(folder / "data", password, run_as_user)
        half = archive.with_suffix(f".{os.getpid()}.half")
        _run(["tar", "-cf", str(half), "-C", str(folder / "data"), "."], "")
        with os.fdopen(os.open(key, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(password)
        half.chmod(0o600)
        half.replace(archive)


def _run(argv: list[str], stdin: str, **how: Any) -> None:
    env = {"PATH": os.defpath, "LANG": "C.UTF-8", "TZ": "UTC"}
    try:
        ran = subprocess.run(  # noqa: S603
            argv, input=stdin.encode(), capture_output=True, timeout=MAKE_S, cwd="/", env=env, check=False, **how
        )
    except (OSError, subprocess.TimeoutExpired) as broken:
        raise ServiceFailed(f"data for a service could not be prepared: {broken}") from broken
    if ran.returncode:
        output = (ran.stderr + ran.stdout).decode("utf-8", "replace").strip()[-2000:]
        raise ServiceFailed(f"data for a service could not be prepared: its server says:\n{output}")
