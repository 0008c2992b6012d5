"""Entry points for Python code: plain or awaited calls, also while an event loop is already running."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from holdfast.errors import AgentUnavailable, HoldfastError, SpecError, UserError
from holdfast.folders import shorten_path
from holdfast.report.safe import make_visible
from holdfast.runner.interrupts import Interrupts

_OURS = ("holdfast.", "holdfast_pytest")
INTERACTIVE = "<python>"
"""The file name for a notebook or a prompt."""


class Caller(Struct, frozen=True):
    """A line of Python code."""

    path: str
    """Relative to the working folder if that is shorter; `<python>` in that folder if the code is in no file."""
    line: int


def find_caller() -> Caller:
    """Return the innermost line that is not Holdfast's own."""
    # Errors of a built spec name the line of the user's code, as those of a file name a line of the file.
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).startswith(_OURS):
        frame = frame.f_back
    file = frame.f_code.co_filename
    if not os.path.isfile(file):
        return Caller(INTERACTIVE, frame.f_lineno)
    return Caller(str(Path(shorten_path(file))), frame.f_lineno)


E = TypeVar("E", bound=HoldfastError)
_BODY_LINES = 30
"""Lines of an unusable agent's output."""


def format_details(error: HoldfastError) -> list[str]:
    """Return the lines to add to the error's message: problems, the agent's traceback and what to do."""
    if isinstance(error, SpecError):
        from holdfast.spec.explain import explain

        return explain(error.file, error.source, error.problems).rstrip("\n").splitlines()
    if isinstance(error, AgentUnavailable):
        body = [f"  | {make_visible(line)}" for line in error.body.splitlines()[:_BODY_LINES]]
        return [*body, *([make_visible(error.hint)] if error.hint else [])]
    return [make_visible(error.hint)] if isinstance(error, UserError) and error.hint else []


def add_details(error: E) -> E:
    """Return the error with those lines, once: in the message of a SpecError, otherwise as a note below it."""
    note = "\n".join(format_details(error))
    if isinstance(error, SpecError):
        error.args = (f"{error.summary}\n{note}",)  # what `print(error)` also shows
    elif note and note not in getattr(error, "__notes__", ()):
        error.add_note(note)
    return error


T = TypeVar("T")
EntryWork = Callable[[Interrupts], T]


class RunInterrupted(Exception):
    """The work was stopped before its end; its results so far are stored."""


def run_blocking(work: EntryWork[T]) -> T:
    """Do the work; in its own thread if a loop is already running, as in a notebook.

    An interrupt stops it in order, and is raised afterwards.
    """
    interrupts = Interrupts()
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _call(lambda: work(interrupts))
    with ThreadPoolExecutor(1, "holdfast") as thread:
        done = thread.submit(work, interrupts)
        try:
            wait([done])
        except KeyboardInterrupt:
            interrupts.stop()
            wait([done])
            raise
        return _call(done.result)


def _call(result: Callable[[], T]) -> T:
    try:
        return result()
    except RunInterrupted as stopped:
        raise KeyboardInterrupt(*stopped.args) from None


async def run_in_thread(work: EntryWork[T]) -> T:
    """Do the work in a thread, so the caller's loop continues; cancelling the task stops it in order first."""
    interrupts = Interrupts()
    done = asyncio.ensure_future(asyncio.to_thread(work, interrupts))
    try:
        # A cancelled task must not abandon the thread, which would keep calling the agent. The shield lets the work
        # continue until it has stopped in order and stored its finished trials.
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        interrupts.stop()
        await asyncio.wait([done])
        if not done.cancelled():
            done.exception()  # it was retrieved: the caller receives the cancellation
        raise
