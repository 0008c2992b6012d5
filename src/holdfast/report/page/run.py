"""Everything on the page of one run except its matrix and its trials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import asdict

from holdfast.model.overall import Overall, PartResult
from holdfast.model.run import Run
from holdfast.model.score import Case, Interval
from holdfast.report import calls, cases, mutations, overall, wording
from holdfast.report.safe import encodable
from holdfast.spec.references import param_text

CASES = 5_000
"""Cases on the page; those that did not pass come first."""
REPLICAS = 100


def run_document(run: Run) -> dict[str, Any]:
    """The result of a run and its context."""
    score = run.score
    return {
        "name": run.name,
        "description": run.description,
        "verdict": wording.verdict(score),
        "reasons": score.reasons,
        "number": score.value,
        **_interval(score.interval),
        "min_score": score.min_score,
        "calm_and_chaos": wording.calm_and_chaos(score),
        "paired": wording.paired(score),
        "pass_hat": wording.pass_hat(score),
        "counted": mutations.headline(score) or (cases.counted(run) if run.by_cases else ""),
        "types": mutations.table(score.mutation) if score.mutation else [],
        "judged": wording.judged(score) if wording.has_matrix(run) else "",
        "replicas": score.replicas,
        "one_sample": _one_sample(run),
        "flaky": f"{wording.plural(score.flaky, 'flaky cell')}: replicas of one prompt disagree" if score.flaky else "",
        "attacks": calls.attacks(score.attacks) if score.attacks else "",
        "used": calls.used(score.spent),
        "warnings": [{"code": one.code, "text": one.text} for one in run.warnings if not one.ignored],
        "notes": [note.text for note in run.notes],
        "promises": [asdict(one) for one in run.promises],
        "tolerated": score.tolerated,
        "counts": score.counts,
        **_origin(run),
        "noun": cases.noun(run),
        "rules": list(rules(run)),
        "columns": list(columns(run)),
        "has_matrix": wording.has_matrix(run),
        **_cases(run),
        "parts": [],
        **_hunt(run),
    }


def _hunt(run: Run) -> dict[str, Any]:
    """The causes and the coverage of a hunt; nothing for other runs."""
    if not run.hunt:
        return {}
    from holdfast.report.page.hunt import hunt_document  # only for hunts: it imports the search

    return hunt_document(run.hunt, run.spec_path)


def _origin(run: Run) -> dict[str, Any]:
    """Where the run comes from, and how far it went."""
    return {
        "seed": str(run.seed),
        "isolation": run.isolation,
        "version": run.version,
        "spec_path": run.spec_path,
        "spec_digest": run.spec_digest,
        "agent_digest": run.agent_digest,
        "judged_from": run.judged_from,
        "complete": run.complete,
        "resume": "" if run.complete or run.running else wording.resume(run),
        "folder": run.path,
    }


def overall_document(whole: Overall) -> dict[str, Any]:
    """The same for a run of several parts: each has its own page."""
    return {
        "name": whole.name,
        "verdict": overall.verdict(whole),
        "reasons": whole.reasons,
        "number": whole.score,
        "low": None,
        "high": None,
        "min_score": whole.min_score,
        "warnings": [{"code": one.code, "text": one.text} for one in whole.warnings if not one.ignored],
        "notes": whole.notes,
        "seed": str(whole.seed),
        "spec_path": whole.spec_path,
        "complete": True,
        "rules": [],
        "columns": [],
        "has_matrix": False,
        "cases": [],
        "weights": [_part(part, whole) for part in whole.parts],
    }


def _part(part: PartResult, whole: Overall) -> dict[str, Any]:
    return {
        "part": part.part,
        "run": part.run,
        "score": part.score,
        "number": overall.score(part),
        **_interval(part.interval),
        "weight": part.weight,
        "share": part.share,
        "verdict": overall.word(part, whole) if part.ran else "",
        "reasons": part.reasons,
        "said": overall.result_words(part) if part.ran else "",
        "skipped": part.skipped,
        "trials": part.trials,
        "page": part.page,
    }


def _interval(interval: Interval | None) -> dict[str, Any]:
    visible = interval if interval and interval.is_shown else None
    return {
        "low": visible.low if visible else None,
        "high": visible.high if visible else None,
        "interval": wording.interval(visible),
    }


def _one_sample(run: Run) -> str:
    if run.score.replicas > 1 or not run.score.trials:
        return ""
    return cases.ONE_SAMPLE if run.by_cases else wording.ONE_SAMPLE


class Numbering:
    """Indexes of rules and columns in the lists of the run's document: cells are named by both."""

    def __init__(self, run: Run) -> None:
        self.rules = {rule.id: number for number, rule in enumerate(run.invariants)}
        heads = [wording.head(scenario.name, params) for scenario in run.scenarios for params in run.params]
        self.columns = {head: number for number, head in reversed(list(enumerate(heads)))}


def rules(run: Run) -> Iterator[dict[str, str]]:
    """In the order of the matrix."""
    places = wording.Places(run)
    for rule in run.invariants:
        facts = {
            "id": rule.id,
            "severity": "critical" if rule.gate else rule.severity,
            "check": rule.check,
            "description": rule.description,
            "where": places.of(rule.id),
        }
        yield {name: encodable(text) for name, text in facts.items()}


def columns(run: Run) -> Iterator[dict[str, str]]:
    """In the order of the matrix: every scenario with every set of params."""
    for scenario in run.scenarios:
        faults = [f"{one.mode} on {one.plane} {one.target}".rstrip(" *") for one in scenario.injections]
        for params in run.params:
            yield {
                "name": wording.head(scenario.name, params),
                "scenario": scenario.name,
                "params": " ".join(f"{name}={param_text(value)}" for name, value in params.items()),
                "faults": ", ".join(faults),
            }


def _cases(run: Run) -> dict[str, Any]:
    if not run.by_cases:
        return {"cases": [], "cases_left_out": 0}
    order = {"fail": 0, "error": 1, "pass": 2}
    every: Iterable[Case] = (row.case for row in run.cases)
    ordered = sorted(every, key=lambda case: order[case.status]) if len(run.cases) > CASES else list(every)
    return {"cases": [_case(case) for case in ordered[:CASES]], "cases_left_out": max(0, len(ordered) - CASES)}


def _case(case: Case) -> dict[str, Any]:
    return {
        "name": cases.head(case),
        "status": cases.outcome(case),
        "composite": case.composite,
        "flaky": case.flaky,
        "scenario": case.scenario,
        "params": wording.params(case.params),
        "prompt": case.prompt[:2_000],
        "reason": case.reason,
        "replicas": [
            {
                "trial": one.trial,
                "outcome": "unproven" if case.unproven_only and one.status == "error" else one.status,
                "composite": one.composite,
                "reason": one.reason,
            }
            for one in case.replicas[:REPLICAS]
        ],
        "replicas_left_out": max(0, len(case.replicas) - REPLICAS),
    }
