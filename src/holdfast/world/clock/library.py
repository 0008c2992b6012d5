"""The library that programs preload: compiled for this machine, and tried.

It shifts the time of day that a program reads, and the deadlines that it gives in it. Monotonic clocks and the times of
files stay real. It does not reach programs that are statically linked, that ask the kernel themselves (Go), that are of
another architecture or C library, or that clear their environment.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from holdfast.model.world import Isolation
from holdfast.protocols.sandbox import Sandbox
from holdfast.world.clock.control import CONTROL, Clock
from holdfast.world.compiled import CannotCompile, compiled

SOURCE = Path(__file__).with_name("realtime.c")
FEATURE = "clock"
COVERED = "what programs read through this machine's C library, where they keep their environment"
OTHERS = Isolation(
    "clock of other programs",
    False,
    "programs that are statically linked, ask the kernel themselves (Go) or clear their environment (env -i) see the "
    "real time, and so do the times of files and monotonic clocks",
)
"""What no preloaded library reaches, and no namespace of the kernel either."""
_FLAGS = ("-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-delete-null-pointer-checks", "-Wno-nonnull-compare")
_LIBRARIES = ("-ldl", "-lpthread")
_TRIED_AT_S = 1_000_000_000
"""The moment that a program is to see when the library is tried: long ago."""
_TRY_S = 60.0
_SLACK_S = 60
"""How long a busy machine may take to run a program."""


async def clock_library() -> Path | Isolation:
    """The library; where it cannot be had, the promise that is not kept, and why."""
    if sys.platform != "linux":
        return Isolation(FEATURE, False, "a program's clock can be set on Linux only")
    try:
        return await asyncio.to_thread(compiled, SOURCE, _FLAGS, _LIBRARIES, _try)
    except CannotCompile as why:
        return Isolation(FEATURE, False, str(why))


async def clock_inside(sandbox: Sandbox, environ: Mapping[str, str], clock: Clock) -> Isolation:
    """Whether programs in a sandbox see that clock: an image may have another C library, or no program to ask."""
    try:
        ran = await sandbox.run(["date", "+%s"], environ, timeout_s=_TRY_S, throwaway=True)
    except OSError as missing:
        return Isolation(FEATURE, False, f"it cannot be tried: the sandbox cannot execute date: {missing.strerror}")
    shown = ran.stdout.strip()
    if shown.isdigit() and abs(int(shown) - clock.time_ns // 10**9) <= _SLACK_S:
        return Isolation(FEATURE, True, COVERED)
    said = ran.stderr.decode("utf-8", "replace").strip()[-200:]
    return Isolation(FEATURE, False, f"programs in the sandbox see another time: {said or shown.decode()}")


def _try(library: Path) -> None:
    """A library that is there and changes nothing would be a silent lie."""
    with tempfile.NamedTemporaryFile(dir=library.parent) as control:
        control.write(bytes(8) + (_TRIED_AT_S * 10**9).to_bytes(8, sys.byteorder) + bytes(8))
        control.flush()
        shown = _date({"LD_PRELOAD": str(library), CONTROL: control.name})
    if shown.strip() != str(_TRIED_AT_S).encode():
        raise CannotCompile("its library was compiled, but a program that preloads it sees the real time")


def _date(env: Mapping[str, str]) -> bytes:
    try:
        ran = subprocess.run(["/bin/date", "+%s"], env=dict(env), capture_output=True, timeout=_TRY_S, check=False)
    except subprocess.TimeoutExpired:
        return b""
    return ran.stdout
