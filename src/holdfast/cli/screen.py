"""Output for programs, the problems of a file, and the abilities of the user's terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from shutil import get_terminal_size
from typing import Any, TextIO

from holdfast.model.codec import JSON, encode, to_builtins
from holdfast.model.spec import Problem
from holdfast.spec.explain import count_problems, explain


def print_document(document: Mapping[str, Any]) -> None:
    """Print a JSON document on one line, its format number first."""
    sys.stdout.write(encode({"format": JSON, **document}).decode() + "\n")


def should_use_color(stream: TextIO) -> bool:
    """Return whether to use colour: only on a terminal, and never with NO_COLOR."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def is_live(stream: TextIO) -> bool:
    """Return whether the screen can be redrawn."""
    return stream.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("CI")


def get_width(stream: TextIO) -> int:
    """Return the width of the terminal, or 100 for a pipe."""
    if not stream.isatty():
        return int(os.environ.get("COLUMNS") or 100)
    return get_terminal_size((100, 40)).columns


def show_problems(file: str, source: str, problems: Sequence[Problem], *, as_json: bool, ran: bool) -> None:
    """Show all problems, as JSON on stdout or explained on stderr."""
    if as_json:
        document = {
            "score": None,
            "passed": False,
            "exit_code": 4,
            "file": file,
            "errors": [to_builtins(p) for p in problems if p.severity == "error"],
            "warnings": [to_builtins(p) for p in problems if p.severity == "warning"],
        }
        print_document(document)
        return
    print(explain(file, source, problems, color=should_use_color(sys.stderr)), file=sys.stderr)
    print(count_problems(problems) + ("" if ran else " Nothing was run."), file=sys.stderr)
