"""The result of a hunt, for the page of its run: the causes with their stories, and call sites × faults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import convert

from holdfast.hunt.points import format_site
from holdfast.hunt.result import HuntedCause, HuntResult
from holdfast.report.page.values import drop_empty
from holdfast.report.terminal.hunt import VERDICTS, dump_scenarios, format_coverage, format_faults
from holdfast.report.wording import format_count

CAUSES, STEPS, SITES = 200, 50, 500
"""Limits: causes, steps of one story, call sites."""


def build_hunt(stored: Mapping[str, Any], spec: str) -> dict[str, Any]:
    """Return the entries of a hunt in the document of its run; they replace the score of its calm trials."""
    found = convert(stored, HuntResult)
    counts = [format_count(len(found.causes), "cause")] + (
        [] if found.only_known else format_coverage(found).split("; ")
    )
    return {
        "verdict": VERDICTS[found.exit_code],
        "reasons": counts,
        "number": None,
        "judged": "",
        "has_matrix": False,
        "hunt": {
            "causes": [_build_cause(cause, spec) for cause in found.causes[:CAUSES]],
            "flaky": [_build_cause(cause, spec) for cause in found.flaky[:CAUSES]],
            "gave_up": [format_faults(one.faults) for one in found.gave_up[:CAUSES]],
            "fixed": found.fixed,
            "notes": found.notes,
            "rows": [
                {"site": format_site(row.plane, row.target, row.on_call), "states": row.states}
                for row in found.matrix[:SITES]
            ],
        },
    }


def _build_cause(cause: HuntedCause, spec: str) -> dict[str, Any]:
    return drop_empty(
        {
            "rules": ", ".join(cause.rules),
            "code": cause.code,
            "known": cause.known,
            "asked": cause.prompt,
            "faults": format_faults(cause.faults),
            "because": cause.reason,
            "failed": f"{cause.failed} of {cause.runs} · in calm {cause.calm_failed} of {cause.calm_runs}",
            "steps": [
                {"faults": format_faults(step["faults"]), "failed": step["failed"], "runs": step["runs"]}
                for step in cause.steps[:STEPS]
            ],
            "paste": dump_scenarios([cause.scenario]),
            "trial": cause.trial,
            "again": cause.write_command(spec),
        }
    )
