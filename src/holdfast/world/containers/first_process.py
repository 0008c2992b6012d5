"""The first process of containers: a small static program of ours, which opens sockets in there for us."""

from __future__ import annotations

import asyncio
from pathlib import Path

from holdfast.errors import UserError
from holdfast.world.compiled import CannotCompile, compiled

SOURCE = Path(__file__).with_suffix(".c")
_FLAGS = ("-O2", "-static")


async def first_process() -> Path:
    """The first process of containers, compiled for this machine; UserError where that cannot be."""
    try:
        return await asyncio.to_thread(compiled, SOURCE, _FLAGS, (), lambda _: None)
    except CannotCompile as why:
        raise UserError(f"the first process of containers cannot be had: {why}") from why
