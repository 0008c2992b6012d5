"""Show the problems of a file."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from holdfast.cli.screen import print_document, should_use_color
from holdfast.model.codec import to_builtins
from holdfast.model.spec import Problem
from holdfast.spec.explain import count_problems, explain


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
