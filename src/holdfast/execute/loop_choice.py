"""Selects the event loop of a run: asyncio's own, or uvloop's on request."""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Callable, Mapping

from holdfast.errors import UsageError

VARIABLE = "HOLDFAST_UVLOOP"
"""The variable that selects uvloop: an installed package alone selects nothing."""


def choose_loop_factory(environ: Mapping[str, str]) -> Callable[[], AbstractEventLoop] | None:
    """Return the factory for the loop of a run; None for asyncio's own."""
    choice = environ.get(VARIABLE, "")
    if choice in ("", "0"):
        return None
    if choice != "1":
        raise UsageError(
            f"{VARIABLE} is {choice!r}",
            code="variable-invalid",
            hint="set it to 1 for uvloop, or to 0 for asyncio's own loop",
        )
    try:
        import uvloop
    except ImportError:
        raise UsageError(
            f"{VARIABLE} is set, but uvloop is not installed",
            code="extra-missing",
            hint="pip install 'holdfast[uvloop]'",
        ) from None
    return uvloop.new_event_loop
