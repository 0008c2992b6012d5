"""The position in the user's own code that called Holdfast: problems of a spec built in Python point to it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from msgspec import Struct

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
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).startswith(_OURS):
        frame = frame.f_back
    file = frame.f_code.co_filename
    if not os.path.isfile(file):
        return Caller(INTERACTIVE, frame.f_lineno)
    relative = os.path.relpath(file)
    return Caller(str(Path(relative if len(relative) < len(file) else file)), frame.f_lineno)
