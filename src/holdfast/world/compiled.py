"""Small C programs and libraries, compiled once for this machine and stored in the user's cache."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path

COMPILERS = ("cc", "gcc", "clang")
INSTALL_COMMAND = "apt-get install gcc libc6-dev"
_COMPILE_S = 60.0


class CannotCompile(Exception):
    """Compilation is impossible here; the message says why and what to do."""


def compile_source(source: Path, flags: Sequence[str], libraries: Sequence[str], tried: Callable[[Path], None]) -> Path:
    """Compile a source for this machine, or return the cached result.

    `tried` tests the result and raises CannotCompile if it does not work here.
    """
    target = get_cache_folder("compiled") / make_name(
        source, [*flags, *libraries], platform.machine(), platform.libc_ver()
    )
    try:
        if target.exists():
            return target
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(prefix=".making-", dir=target.parent) as folder:
            half = Path(folder) / target.name
            _compile([*flags, "-o", str(half), str(source), *libraries], os.environ.get("PATH", os.defpath))
            half.chmod(0o755)
            tried(half)
            half.replace(target)
    except OSError as refused:
        raise CannotCompile(
            f"its compiled code is stored in {target.parent}, which cannot be used: {refused.strerror or refused}; "
            "set XDG_CACHE_HOME to a folder that you can write to"
        ) from refused
    return target


def get_cache_folder(kind: str) -> Path:
    """Return a private folder below the user's cache."""
    above = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(above) / "holdfast" / kind


def make_name(source: Path, words: Sequence[str], machine: str, libc: tuple[str, str]) -> str:
    """Return the file name of the result; it changes with the source, the options and the machine."""
    content = "\0".join((machine, *libc, *words)).encode() + b"\0" + source.read_bytes()
    return f"{source.stem}-{blake2b(content, digest_size=12).hexdigest()}"


def _compile(words: Sequence[str], path: str) -> None:
    compiler = next((compiler_path for name in COMPILERS if (compiler_path := shutil.which(name, path=path))), None)
    if compiler is None:
        raise CannotCompile(f"it has to be compiled, but there is no C compiler: {INSTALL_COMMAND}")
    env = {"PATH": path, "LC_ALL": "C"}
    try:
        ran = subprocess.run(  # noqa: S603
            [compiler, *words], capture_output=True, timeout=_COMPILE_S, env=env, check=False
        )
    except subprocess.TimeoutExpired:
        raise CannotCompile(f"{compiler} took more than {_COMPILE_S:g} s to compile it") from None
    if ran.returncode:
        messages = ran.stderr.decode("utf-8", "replace").strip().splitlines() or ["no message"]
        why = next((line for line in messages if "error" in line), messages[0])
        raise CannotCompile(f"{compiler} could not compile it ({why[-200:]}): {INSTALL_COMMAND}")
