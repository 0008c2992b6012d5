"""The run as JSON for programs. Within one format number, keys are added and never renamed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from msgspec.structs import asdict

from holdfast.model.codec import JSON
from holdfast.model.observation import FaultMet
from holdfast.model.run import CaseRow, CellRow, ReplicaRow, Run, TrialRow
from holdfast.model.score import Attacks, Case, Interval, PairedDifference, Score, Share, Utility
from holdfast.report import standards
from holdfast.report.cases import build_reproducer, get_outcome, get_replica_outcome
from holdfast.report.causes.cause_words import build_entries
from holdfast.report.formats.files import encode_pieces
from holdfast.report.page.values import pick
from holdfast.report.wording import has_cells
from holdfast.score.overall import has_passed
from holdfast.score.run_totals import compute_spent

EVENTS = 1_000
"""Events of a trial's audit log; the run's folder has the rest."""
_ISOLATION = "feature enforced why code"


class Json:
    """`report.json`: headline numbers first, then causes, with cells, cases and trials under `parts`."""

    suffix: ClassVar[str] = ".json"

    def render(self, run: Run) -> Mapping[str, Iterable[bytes]]:
        return {"report.json": _render(run)}


def _render(run: Run) -> Iterable[bytes]:
    yield from encode_pieces(build_document(run))
    yield b"\n"


def build_document(run: Run) -> dict[str, Any]:
    """Return the report as plain values; causes, cells and cases are iterators, evaluated while they are written."""
    score = run.score
    return {
        "format": JSON,
        "score": score.value,
        "passed": score.passed,
        "exit_code": score.exit_code,
        "seed": run.seed,
        "counts": score.counts,
        "warnings": run.warnings,
        "notes": [note.text for note in run.notes],
        "run_id": run.id,
        **pick(run, "name spec_path spec_digest agent_digest version started duration_s complete"),
        "kept_apart": run.isolation,
        "isolation": [pick(one, _ISOLATION) for one in run.promises],
        "judged_from": run.judged_from or None,
        "standards": standards.build_entries(standards.list_for_run(run)),
        **({"shard": score.shard} if score.shard else {}),
        "causes": build_entries(run),
        "parts": _build_parts(run),
    }


def _build_parts(run: Run) -> dict[str, Any]:
    cells = run.part if run.part in ("chaos", "hunt") else "contract"
    parts: dict[str, Any] = {cells: _build_contract(run, run.contract or run.score)} if has_cells(run) else {}
    if run.part in ("mutation", "replay"):
        return parts | {run.part: _build_tasks(run)}
    return parts | ({"scenario": _build_scenario(run)} if run.part == "scenario" else {})


def _build_tasks(run: Run) -> dict[str, Any]:
    """Return the cases of mutations or sessions."""
    score = run.score
    mutation = score.mutation
    numbers = {
        "score": score.value,
        "passed": score.passed,
        "interval": _build_interval(score.interval),
        **pick(score, "judged total counts trials replicas flaky"),
        **pick(score, "critical_failed tolerated reasons reason_codes min_score"),
        "spent": score.spent and asdict(score.spent),
    }
    if mutation is not None:
        numbers["robustness"] = mutation.robustness
        numbers["intent_kept"] = _build_share(mutation.intent_kept)
        numbers["attacks_resisted"] = _build_share(mutation.attacks_resisted)
        numbers["types"] = mutation.types
    return numbers | {"cases": (_build_case(run, row) for row in run.cases)}


def _build_share(one: Attacks | Share | Utility | PairedDifference) -> dict[str, Any]:
    return {**asdict(one), "interval": _build_interval(one.interval)}


def _build_scenario(run: Run) -> dict[str, Any]:
    cases = [row.case for row in run.cases]
    return {
        "passed": has_passed(cases),
        "unproven_cases": sum(case.unproven_only for case in cases),
        "cases": (_build_case(run, row) for row in run.cases),
    }


def build_undecided(cases: Sequence[Case]) -> dict[str, Any]:
    """Return the `parts` of a run that ended before its first trial."""
    return {
        "scenario": {"passed": False, "unproven_cases": 0, "cases": [_build_case_entry(case, []) for case in cases]}
    }


def _build_case(run: Run, row: CaseRow) -> dict[str, Any]:
    return _build_case_entry(row.case, [_build_replica(run, row.case, one) for one in row.replicas])


def _build_case_entry(case: Case, replicas: list[dict[str, Any]]) -> dict[str, Any]:
    origin: dict[str, Any] = {"mutation": case.variation, "obeyed": case.obeyed} if case.variation is not None else {}
    origin |= {"standards": ids} if (ids := standards.list_ids(standards.list_for_case(case))) else {}
    origin |= {"session": case.session, "expected_failure": case.expected_failure or None} if case.session else {}
    return origin | {
        "scenario": case.scenario,
        "params": case.params,
        "status": get_outcome(case) if _is_varied(case) else case.status,
        **pick(case, "flaky composite reason causes unproven_only"),
        "unproven": sum(verdict["outcome"] == "unproven" for one in replicas for verdict in one["verdicts"]),
        "replicas": replicas,
    }


def _is_varied(case: Case) -> bool:
    """Return whether it is a mutation or a session: these can be unproven; the case of a task is pass, fail or
    error.
    """
    return case.variation is not None or bool(case.session)


def _build_replica(run: Run, case: Case, one: ReplicaRow) -> dict[str, Any]:
    observation = one.seen
    return {
        "trial": one.replica.trial,
        "replica": one.replica.replica,
        "status": get_replica_outcome(one) if _is_varied(case) else one.replica.status,
        "composite": one.replica.composite,
        "reason": one.replica.reason,
        "verdicts": [pick(verdict, "invariant outcome score reason code key details") for verdict in one.verdicts],
        "forbidden": [pick(rule, "rule violated details error") for rule in observation.forbidden],
        "prompt": one.prompt,
        "turns": observation.turns,
        "ending": observation.ending if not observation.error else "error",
        "error": observation.error,
        "faults": [_build_fault(met) for met in observation.ledger],
        "audit": observation.audit[:EVENTS],
        "audited": len(observation.audit),
        "notes": observation.notes,
        "isolation": [pick(one, _ISOLATION) for one in observation.isolation if one not in run.promises],
        "reproducer": build_reproducer(run, case, one),
    }


def _build_contract(run: Run, score: Score) -> dict[str, Any]:
    return {
        "score": score.value,
        "passed": score.passed,
        "interval": _build_interval(score.interval),
        "calm": score.calm,
        "chaos": score.chaos,
        "paired": score.paired and _build_share(score.paired),
        **pick(score, "judged total trials replicas unasked flaky pass_hat vacuous"),
        **pick(score, "critical_failed tolerated reasons reason_codes min_score"),
        "attacks": score.attacks and _build_attacks(score.attacks),
        "spent": score.spent and asdict(score.spent),
        "cells": map(_build_cell, run.cells),
    }


def _build_cell(row: CellRow) -> dict[str, Any]:
    return {
        **pick(row.cell, "invariant scenario params severity critical outcome flaky reason code key causes weight"),
        **pick(row.cell, "fails_in_calm simulated concurrent met passes fails errors unproven"),
        "rate": _build_interval(row.cell.rate),
        "trials": [_build_trial(trial) for trial in row.trials],
    }


def _build_trial(trial: TrialRow) -> dict[str, Any]:
    return {
        **pick(trial, "id prompt replica answer ending detail latency_ms outcome score reason code details"),
        "turns": trial.turns if len(trial.turns) > 1 else (),
        **pick(trial, "output notes again"),
        "faults": [_build_fault(met) for met in trial.faults],
        "trace": (used := compute_spent(trial.trace)) and asdict(used) if trial.trace else None,
    }


def _build_attacks(attacks: Attacks) -> dict[str, Any]:
    numbers = _build_share(attacks)
    return numbers | {"utility": _build_share(attacks.utility)}


def _build_fault(met: FaultMet) -> dict[str, Any]:
    ids = standards.list_ids(standards.list_for_faults([met]))
    return {
        **pick(met, "plane target mode call effect would got change note retry"),
        **({"ran": True} if met.ran else {}),
        **({"standards": ids} if ids else {}),
    }


def _build_interval(interval: Interval | None) -> dict[str, Any] | None:
    if interval is None:
        return None
    return {**pick(interval, "low high method"), "approximate": interval.approximate}
