"""Checking a file and telling all that is wrong with it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from holdfast.cli.problems import show_problems
from holdfast.model.spec import Problem
from holdfast.report.wording import plural
from holdfast.spec import check, requires_contract


def check_file(path: Path, *, as_json: bool, contract: bool) -> int:
    """0 if the file can be used, 4 if not; warnings are told and change nothing."""
    checked = check(path, environ=os.environ)
    problems = list(checked.problems)
    if contract and checked.spec is not None:
        problems += requires_contract(checked.spec)
    wrong = any(p.severity == "error" for p in problems)
    if as_json:
        return _json(path, problems, wrong)
    if problems:
        show_problems(str(path), checked.source, problems, as_json=False, ran=not wrong)
    if wrong or checked.spec is None:
        return 4
    spec = checked.spec
    parts = ((spec.invariants, "rule"), (spec.scenarios, "scenario"), (spec.tasks, "prompt"))
    size = ", ".join(plural(len(found), noun) for found, noun in parts)
    print(f"{path}: {size}. It is valid.")
    for unbuilt in spec.unbuilt:
        print(f"  {unbuilt.section} (line {unbuilt.position.line}): {unbuilt.why}")
    return 0


def _json(path: Path, problems: Sequence[Problem], wrong: bool) -> int:
    from holdfast.model.codec import encode, to_builtins

    told = [to_builtins(p) for p in problems]
    document = {
        "file": str(path),
        "valid": not wrong,
        "exit_code": 4 if wrong else 0,
        "errors": [p for p in told if p.get("severity", "error") == "error"],
        "warnings": [p for p in told if p.get("severity") == "warning"],
    }
    sys.stdout.write(encode(document).decode() + "\n")
    return 4 if wrong else 0
