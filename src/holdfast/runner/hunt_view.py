"""A hunt as every report shows it: each cause is a failed cell, and there is no score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from holdfast.hunt.fault_map import FaultMap
from holdfast.hunt.result import HuntedCause, HuntResult
from holdfast.model.codec import create_decoder, to_builtins
from holdfast.model.run import CellRow, Run
from holdfast.model.score import Cell, Score
from holdfast.score.resilience import BROKEN, HELD, INTERRUPTED, UNPROVEN, VIOLATED, Reason
from holdfast.store.record import read_scenarios
from holdfast.store.rundir import HUNT, MAP, RunDir, read_json
from holdfast.store.seal_check import check
from holdfast.store.view import StoredCells

_result = create_decoder(HuntResult)
_map = create_decoder(FaultMap)


def read_hunt(rundir: RunDir) -> HuntResult | None:
    """Read the result of a hunt; None if it did not finish. Raise UserError if its files were changed since."""
    return read_json(rundir.path / HUNT, _result) if _is_sealed(rundir, HUNT) else None


def _is_sealed(rundir: RunDir, name: str) -> bool:
    """Return whether the file is part of the run's seal; raise UserError if one that is was changed since."""
    ended = rundir.read_end()
    if ended is None or name not in ended.sealed:
        return False
    check(rundir)
    return True


def add_hunt(run: Run, rundir: RunDir, cells: StoredCells, result: HuntResult | None) -> Run:
    """Return the run with the verdict of its hunt, and its causes next to the calm cells."""
    if _is_sealed(rundir, MAP):
        run = replace(run, map=to_builtins(read_json(rundir.path / MAP, _map)))
    plain = replace(run.score, value=None, interval=None, best=None, calm=None, chaos=None, paired=None, pass_hat={})
    if result is None:
        decided = plain.exit_code and _UNCONCLUDED.code not in plain.reason_codes
        score = plain if decided else _set_verdict(plain, _MAP_ONLY if run.map else _UNCONCLUDED)
        return replace(run, score=score)
    rows = tuple(row for cause in result.causes for row in _build_rows(run, cause, cells))
    counts = {**plain.counts, "fail": plain.counts.get("fail", 0) + len(rows)}
    critical = tuple(f"{row.cell.invariant} in {row.cell.scenario}" for row in rows if row.cell.critical)
    score = replace(
        _set_verdict(plain, *list_hunt_reasons(result)), trials=result.trials, counts=counts, critical_failed=critical
    )
    scenarios = read_scenarios(rundir, run.scenarios)
    hunted = tuple(scenarios[cause.id] for cause in result.causes if cause.id in scenarios)
    return replace(
        run,
        score=replace(score, total=score.total + len(rows), judged=score.judged + len(rows)),
        cells=(*cells, *rows),
        scenarios=(*run.scenarios, *hunted),
        hunt=to_builtins(result),
    )


_MAP_ONLY = Reason(UNPROVEN, "a map runs every prompt once in a calm trial and tries no fault", "map-only")
_UNCONCLUDED = Reason(UNPROVEN, "the hunt did not finish", "hunt-unconcluded")


def _set_verdict(score: Score, *reasons: Reason) -> Score:
    code = reasons[0].exit_code if reasons else HELD
    return replace(
        score,
        passed=code == HELD and not score.shard,
        exit_code=code,
        reasons=tuple(one.text for one in reasons) or ("no set of faults that was tried breaks a rule",),
        reason_codes=tuple(one.code for one in reasons),
    )


def list_hunt_reasons(result: HuntResult) -> Iterator[Reason]:
    """Yield the reasons for the hunt's exit code, the deciding one first."""
    if result.exit_code == INTERRUPTED:
        yield Reason(INTERRUPTED, "the run was interrupted", "interrupted")
    if result.refused:
        yield Reason(result.exit_code, result.notes[-1], result.refused)
        return
    for is_known in (True, False):
        if causes := [one for one in result.causes if one.known == is_known]:
            yield Reason(VIOLATED, _describe_causes(causes, "known cause" if is_known else "cause"), "hunt-cause")
    if result.stopped == "broken":
        yield Reason(BROKEN, "Holdfast could not observe the agent's trials", "harness-errors")
    if result.shard:
        return
    if result.orphaned:
        problem = "has a prompt or a rule that is no longer in the spec; run holdfast hunt, or delete the cause"
        yield Reason(UNPROVEN, f"{', '.join(result.orphaned)} {problem}", "cause-orphaned")
    unproven = [one for one in result.unproven if one not in result.orphaned]
    if unproven:
        yield Reason(UNPROVEN, f"known causes neither failed nor held: {', '.join(unproven)}", "hunt-unproven")
    elif result.exit_code == UNPROVEN and not result.orphaned:
        points = result.coverage.points
        problem = f"{points.open} of {points.total} single faults were not tried" if points.open else "no fault was met"
        if result.unexplained:
            problem = f"no set of faults is the cause that {', '.join(result.unexplained)} failed"
        problem = "no known cause was met again" if result.only_known else problem
        yield Reason(UNPROVEN, problem, "hunt-open")


def _describe_causes(causes: Sequence[HuntedCause], noun: str) -> str:
    """`known cause hunt-6a569ef6 breaks once`, or `3 known causes break once, answers`."""
    rules = ", ".join(dict.fromkeys(rule for one in causes for rule in one.rules))
    return f"{noun} {causes[0].id} breaks {rules}" if len(causes) == 1 else f"{len(causes)} {noun}s break {rules}"


def _build_rows(run: Run, cause: HuntedCause, cells: StoredCells) -> Iterator[CellRow]:
    """Yield a failed cell for each rule that the cause breaks, with the trial that shows it."""
    again = cause.write_command(run.spec_path)
    for rule in (one for one in run.invariants if one.id in cause.rules):
        trial = cells.read_row(cause.trial, rule.id) if cause.trial else None
        cell = Cell(
            invariant=rule.id,
            scenario=cause.id,
            severity=rule.severity,
            weight=0.0,
            outcome="fail",
            critical=rule.critical,
            params=cause.params,
            reason=trial.reason if trial else cause.reason,
            code=trial.code if trial else cause.code,
            key=trial.key if trial else (),
            fails=cause.failed,
            passes=cause.runs - cause.failed,
            met=True,
            chaos=True,
        )
        yield CellRow(cell, (replace(trial, again=again),) if trial else ())
