"""What a step of GitHub Actions is told: remarks at the spec's lines, and the step's outputs."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from holdfast.model.run import Run


def print_annotations(run: Run, environ: Mapping[str, str], *, asked: bool = False) -> None:
    """Tells GitHub Actions, or whoever asks for it, at which lines of the spec something did not hold.

    On stderr, which the runner reads too: what is on stdout may be JSON.
    """
    if not asked and environ.get("GITHUB_ACTIONS") != "true":
        return
    from holdfast.report.formats.line_remarks import format_commands

    for line in format_commands(run):
        print(line, file=sys.stderr)


def set_outputs(environ: Mapping[str, str], *, score: float | None, verdict: str, run: str) -> None:
    """Adds `score`, `verdict` and `run` to the step's outputs. A courtesy: no verdict depends on it."""
    file = environ.get("GITHUB_OUTPUT")
    if not file or environ.get("GITHUB_ACTIONS") != "true":
        return
    shown = "" if score is None else f"{score:.2f}"
    try:
        with open(file, "a", encoding="utf-8") as outputs:
            outputs.write(f"score={shown}\nverdict={verdict}\nrun={run}\n")
    except OSError as refused:
        print(f"warning: cannot write GITHUB_OUTPUT: {refused.strerror}", file=sys.stderr)
