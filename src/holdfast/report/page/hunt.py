"""The result of a hunt and the map of an agent's calls, for the page of its run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import convert

from holdfast.hunt.fault_map import FaultMap, MappedSite, MapRow
from holdfast.hunt.points import format_site
from holdfast.hunt.result import HuntedCause, HuntResult, SiteRow
from holdfast.model.codec import make_encodable
from holdfast.report.page.values import drop_empty
from holdfast.report.terminal.hunt import dump_scenarios, format_coverage, format_faults, format_map_coverage
from holdfast.report.wording import format_count, format_exit_code

CAUSES, STEPS, SITES = 200, 50, 500
"""Limits: causes, steps of one story, call sites."""


def build_hunt(stored: Mapping[str, Any], spec: str) -> dict[str, Any]:
    """Return the entries of a hunt in the document of its run; they replace the score of its calm trials."""
    result = convert(stored, HuntResult)
    counts = [format_count(len(result.causes), "cause")] + (
        [] if result.only_known else format_coverage(result).split("; ")
    )
    return {
        "verdict": format_exit_code(result.exit_code, is_shard=bool(result.shard)),
        "reasons": counts,
        "number": None,
        "judged": "",
        "has_matrix": False,
        "hunt": {
            "causes": [_build_cause(cause, spec) for cause in result.causes[:CAUSES]],
            "flaky": [_build_cause(cause, spec) for cause in result.flaky[:CAUSES]],
            "gave_up": [format_faults(one.faults) for one in result.gave_up[:CAUSES]],
            "fixed": result.fixed,
            "notes": result.notes,
            "rows": [
                {"site": format_site(row.plane, row.target, row.on_call), "states": row.states}
                for row in result.matrix[:SITES]
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


PROMPTS, MAPPED_SITES, ROWS, LINKS = 20, 200, 500, 100
"""Limits: prompts, call sites of one prompt, rows of the matrix, and places that one reply feeds."""
SiteCounts: TypeAlias = Mapping[tuple[str, str, int], Mapping[str, int]]
"""By plane, target and number of a call: how many of its faults are in each state."""


def build_map(stored: Mapping[str, Any], hunt: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the calls of each prompt in order, each with its coverage and what its reply feeds.

    A `hunt` says itself what it covered: the states of its own points then count, and no others are shown.
    """
    fault_map = convert(stored, FaultMap)
    by_prompt: dict[str, list[MappedSite]] = {}
    for site in fault_map.sites:
        by_prompt.setdefault(site.prompt, []).append(site)
    counts = _count_map(fault_map.coverage.rows) if hunt is None else _count_hunt(convert(hunt, HuntResult).matrix)
    document = {"prompts": [_build_prompt(asked, sites, counts) for asked, sites in [*by_prompt.items()][:PROMPTS]]}
    if hunt is not None:
        return document
    return {
        **document,
        "coverage": format_map_coverage(fault_map.coverage),
        "scores": [{"part": one.part, "run": one.run, "score": one.score} for one in fault_map.scores],
        "rows": [
            {"site": _get_name(row), "states": {mode: one.state for mode, one in row.modes.items()}}
            for row in fault_map.coverage.rows[:ROWS]
        ],
    }


def _count_map(rows: Iterable[MapRow]) -> SiteCounts:
    """By site: how many faults that hunts use are in each state."""
    return {
        (row.plane, row.target, row.on_call): Counter(one.state for one in row.modes.values() if not one.extra)
        for row in rows
    }


def _count_hunt(rows: Iterable[SiteRow]) -> SiteCounts:
    counts: dict[tuple[str, str, int], Counter[str]] = {}
    for row in rows:  # one for each prompt
        counts.setdefault((row.plane, row.target, row.on_call), Counter()).update(row.states.values())
    return counts


def _build_prompt(asked: str, sites: Sequence[MappedSite], counts: SiteCounts) -> dict[str, Any]:
    visible_sites = sites[:MAPPED_SITES]
    return drop_empty(
        {
            "asked": make_encodable(asked),
            "sites": [
                _build_site(site, counts.get((site.plane, site.target, site.on_call), {})) for site in visible_sites
            ],
            "ends": list(_find_ends(visible_sites)),
            "left_out": len(sites) - len(visible_sites),
        }
    )


def _build_site(site: MappedSite, counts: Mapping[str, int]) -> dict[str, Any]:
    links = [{"to": make_encodable(one.to), "kind": one.kind, "values": one.values} for one in site.links[:LINKS]]
    return drop_empty(
        {"name": _get_name(site), "plane": site.plane, "write": site.write, "links": links, "counts": counts}
    )


def _get_name(site: MappedSite | MapRow) -> str:
    return make_encodable(format_site(site.plane, site.target, site.on_call))


def _find_ends(sites: Iterable[MappedSite]) -> Iterable[dict[str, str]]:
    """Return the files and rows that replies feed, then the answer."""
    links = [link for site in sites for link in site.links if link.kind != "call"]
    order = {"file": 0, "row": 1, "answer": 2}
    ends = sorted({(order[link.kind], link.kind, link.to) for link in links})
    return ({"kind": kind, "name": make_encodable(name)} for _, kind, name in ends)
