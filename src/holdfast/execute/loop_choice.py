"""Which event loop a run has: uvloop's where it is installed and the planes are open, else asyncio's own."""

from __future__ import annotations

import os
from asyncio import AbstractEventLoop
from collections.abc import Callable

from holdfast.execute.options import ASKED, ModelOptions
from holdfast.execute.plane_needs import needs_planes
from holdfast.model.spec import Spec

OFF = "HOLDFAST_NO_UVLOOP"
"""Set to anything, it keeps asyncio's own loop."""


def loop_factory(spec: Spec, models: ModelOptions = ASKED) -> Callable[[], AbstractEventLoop] | None:
    """What makes the loop of a run of this spec; None for asyncio's own.

    uvloop is imported only where it can pay: a run whose agent's calls pass through us.
    """
    if os.environ.get(OFF) or not needs_planes(spec, models):
        return None
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
