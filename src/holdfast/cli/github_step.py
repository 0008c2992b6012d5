"""Output for a GitHub Actions step: annotations at lines of the spec, and the step's outputs."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from holdfast.model.run import Run
from holdfast.report.formats.line_remarks import format_commands


def print_annotations(run: Run, environ: Mapping[str, str], *, asked: bool = False) -> None:
    """Print annotations for the lines of the spec that did not hold, in GitHub Actions or on request.

    They go to stderr, which the runner also reads, because stdout may contain JSON.
    """
    if not asked and environ.get("GITHUB_ACTIONS") != "true":
        return
    for line in format_commands(run):
        print(line, file=sys.stderr)


def set_outputs(environ: Mapping[str, str], *, score: float | None, verdict: str, run: str) -> None:
    """Add `score`, `verdict` and `run` to the step's outputs. Errors are ignored: no verdict depends on this."""
    file = environ.get("GITHUB_OUTPUT")
    if not file or environ.get("GITHUB_ACTIONS") != "true":
        return
    value = "" if score is None else f"{score:.2f}"
    try:
        with open(file, "a", encoding="utf-8") as outputs:
            outputs.write(f"score={value}\nverdict={verdict}\nrun={run}\n")
    except OSError as refused:
        print(f"warning: cannot write GITHUB_OUTPUT: {refused.strerror}", file=sys.stderr)
