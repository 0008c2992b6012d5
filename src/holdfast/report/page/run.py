"""Everything on the page of one run except its matrix and its trials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from holdfast.model.codec import make_encodable
from holdfast.model.run import Overall, PartResult, Run
from holdfast.model.score import Case, Interval
from holdfast.report import calls, cases, mutations, overall, wording
from holdfast.report.page.values import pick
from holdfast.spec.references import format_param
from holdfast.store.run_folders import format_resume

CASES = 5_000
"""Cases on the page; those that did not pass come first."""
REPLICAS = 100


def build_run(run: Run) -> dict[str, Any]:
    """Return the result of a run and its context."""
    score = run.score
    return {
        "name": run.name,
        "description": run.description,
        "verdict": wording.format_verdict(score),
        "reasons": score.reasons,
        "number": score.value,
        **_build_interval(score.interval),
        "min_score": score.min_score,
        "calm_and_chaos": wording.list_calm_and_chaos(score),
        "paired": wording.format_paired(score),
        "pass_hat": wording.round_pass_hat(score),
        "counted": mutations.format_headline(score) or (cases.format_counts(run) if run.by_cases else ""),
        "types": mutations.build_table(score.mutation) if score.mutation else [],
        "judged": wording.format_judged(score) if wording.has_matrix(run) else "",
        "replicas": score.replicas,
        "one_sample": _note_one_sample(run),
        "flaky": f"{wording.format_count(score.flaky, 'flaky cell')}: replicas of one prompt disagree"
        if score.flaky
        else "",
        "attacks": calls.format_attacks(score.attacks) if score.attacks else "",
        "used": calls.format_usage(score.spent),
        "warnings": [{"code": one.code, "text": one.text} for one in run.warnings if not one.ignored],
        "notes": [note.text for note in run.notes],
        "promises": [asdict(one) for one in run.promises],
        "tolerated": score.tolerated,
        "counts": score.counts,
        **_build_origin(run),
        "noun": cases.get_noun(run),
        "rules": list(build_rules(run)),
        "columns": list(build_columns(run)),
        "has_matrix": wording.has_matrix(run),
        **_build_cases(run),
        "parts": [],
        **_build_hunt(run),
    }


def _build_hunt(run: Run) -> dict[str, Any]:
    """Return the causes and the coverage of a hunt, and the map of its calls; nothing for other runs."""
    if not run.hunt and not run.map:
        return {}
    from holdfast.report.page.hunt import (
        build_hunt,  # only for hunts: it imports the search
        build_map,
    )

    bare = {"has_matrix": False, "judged": "", "one_sample": ""}
    document = build_hunt(run.hunt, run.spec_path) if run.hunt else bare
    return {**document, "map": build_map(run.map, run.hunt)} if run.map else document


def _build_origin(run: Run) -> dict[str, Any]:
    """Build the facts on where the run comes from and how far it went."""
    return {
        "seed": str(run.seed),
        **pick(run, "isolation version spec_path spec_digest agent_digest judged_from complete"),
        "resume": "" if run.complete or run.running else format_resume(Path(run.path), run.part),
        "folder": run.path,
    }


def build_overall(whole: Overall) -> dict[str, Any]:
    """Return the same for a run of several parts: each has its own page."""
    return {
        "name": whole.name,
        "verdict": wording.format_verdict(whole),
        "reasons": whole.reasons,
        "number": whole.score,
        "low": None,
        "high": None,
        "min_score": whole.min_score,
        "warnings": [{"code": one.code, "text": one.text} for one in whole.warnings if not one.ignored],
        "notes": whole.notes,
        "seed": str(whole.seed),
        "complete": True,
        "rules": [],
        "columns": [],
        "has_matrix": False,
        "cases": [],
        "weights": [_build_part(part, whole) for part in whole.parts],
    }


def _build_part(part: PartResult, whole: Overall) -> dict[str, Any]:
    return {
        **pick(part, "part run score weight share reasons skipped trials page"),
        "number": overall.format_score(part),
        **_build_interval(part.interval),
        "verdict": overall.format_word(part, whole) if part.ran else "",
        "said": overall.format_result(part) if part.ran else "",
    }


def _build_interval(interval: Interval | None) -> dict[str, Any]:
    visible = interval if interval and interval.is_shown else None
    return {
        "low": visible.low if visible else None,
        "high": visible.high if visible else None,
        "interval": wording.format_interval(visible),
    }


def _note_one_sample(run: Run) -> str:
    if run.score.replicas > 1 or not run.score.trials:
        return ""
    return cases.ONE_SAMPLE if run.by_cases else wording.ONE_SAMPLE


class Numbering:
    """Indexes of rules and columns in the lists of the run's document: cells are named by both."""

    def __init__(self, run: Run) -> None:
        self.rules = {rule.id: number for number, rule in enumerate(run.invariants)}
        heads = [wording.format_head(scenario.name, params) for scenario in run.scenarios for params in run.params]
        # In reverse, so that the first of two equal headings counts.
        self.columns = {head: number for number, head in reversed(list(enumerate(heads)))}


def build_rules(run: Run) -> Iterator[dict[str, str]]:
    """Yield the rules in the order of the matrix."""
    places = wording.Places(run)
    for rule in run.invariants:
        facts = {
            "id": rule.id,
            "severity": "critical" if rule.gate else rule.severity,
            "check": rule.check,
            "description": rule.description,
            "where": places.format_place(rule.id),
        }
        yield {name: make_encodable(text) for name, text in facts.items()}


def build_columns(run: Run) -> Iterator[dict[str, str]]:
    """Yield the columns of the matrix in order: every scenario with every set of params."""
    for scenario in run.scenarios:
        faults = [f"{one.mode} on {one.plane} {one.target}".rstrip(" *") for one in scenario.injections]
        for params in run.params:
            yield {
                "name": wording.format_head(scenario.name, params),
                "scenario": scenario.name,
                "params": " ".join(f"{name}={format_param(value)}" for name, value in params.items()),
                "faults": ", ".join(faults),
            }


def _build_cases(run: Run) -> dict[str, Any]:
    if not run.by_cases:
        return {"cases": [], "cases_left_out": 0}
    order = {"fail": 0, "error": 1, "pass": 2}
    every: Iterable[Case] = (row.case for row in run.cases)
    ordered = sorted(every, key=lambda case: order[case.status]) if len(run.cases) > CASES else list(every)
    return {"cases": [_build_case(case) for case in ordered[:CASES]], "cases_left_out": max(0, len(ordered) - CASES)}


def _build_case(case: Case) -> dict[str, Any]:
    return {
        "name": cases.format_head(case),
        "status": cases.get_outcome(case),
        **pick(case, "composite flaky scenario reason"),
        "params": wording.format_params(case.params),
        "prompt": case.prompt[:2_000],
        "replicas": [
            {
                "trial": one.trial,
                "outcome": "unproven" if case.unproven_only and one.status == "error" else one.status,
            }
            for one in case.replicas[:REPLICAS]
        ],
        "passes": sum(one.status == "pass" for one in case.replicas),
        "runs": len(case.replicas),
    }
