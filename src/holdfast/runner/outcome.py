"""From a finished or stored run to its score and the view that reports render."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from holdfast.folders import shorten_path
from holdfast.model.codec import encode_canonical
from holdfast.model.codes import RunNote
from holdfast.model.run import CellRow, Run
from holdfast.model.score import Case, Score
from holdfast.model.spec import Spec
from holdfast.plan import Plan, RunOptions, build_plan
from holdfast.reading.fields import convert
from holdfast.runner.run_notes import (
    build_notes,
    describe_exposure,
    describe_isolation,
    describe_stop,
    note_isolation,
    note_missing_isolation,
    note_self_reported,
)
from holdfast.runner.start import load_stored_spec
from holdfast.score import ScoreOptions, Tally
from holdfast.score.overall import combine_with_cases, combine_with_forbidden
from holdfast.score.resilience import Reason, score_contract
from holdfast.secrets.masker import Masker
from holdfast.secrets.values import list_static_values
from holdfast.store.git_commit import get_repository_path
from holdfast.store.replay import replay_verdicts
from holdfast.store.run_folders import is_written
from holdfast.store.rundir import Manifest, RunDir, RunEnd, write_json
from holdfast.store.seal_check import check
from holdfast.store.stored_records import RunRecords
from holdfast.store.view import Repetition, StoredCells, build_case_rows, build_run_command
from holdfast.version import __version__

if TYPE_CHECKING:
    from holdfast.hunt.result import HuntResult


class RunOutcome(Struct, frozen=True):
    """A run that has ended, with its score and its view for reports."""

    run: Run
    cells: StoredCells
    unwritten: tuple[str, ...] = ()
    """Why requested reports are missing."""

    @property
    def score(self) -> Score:
        return self.run.score

    def close(self) -> None:
        """Close the run's files."""
        self.cells.close()


def conclude(
    rundir: RunDir,
    spec: Spec,
    plan: Plan,
    tally: Tally,
    options: RunOptions,
    *,
    ended: RunEnd,
    verdicts: Path | None = None,
    records: RunRecords | None = None,
    foreign: Collection[str] = (),
    judged_by: str = "",
    page: Path | None = None,
) -> RunOutcome:
    """Score the tally and build the view.

    `verdicts` is the file of a rejudged run, `judged_by` names the rules used, `records` are those that were read for
    the tally, `foreign` are their trials of another spec, `page` is the path of the HTML page.
    """
    rules = build_score_options(options, ended, planned=len(plan.trials))
    contract, deciding = score_contract(tally, rules)
    cases = tuple(tally.cases.iter_cases()) if spec.by_cases else ()
    score = _compute_score(spec, tally, cases, contract, deciding, rules)
    manifest = rundir.read_manifest()
    again = _build_repetition(spec, options, manifest.options)
    cells = StoredCells(
        rundir, plan, tally, again, verdicts or rundir.get_verdict_file(), records=records, foreign=foreign
    )
    judged_from = f"{rundir.id}, judged again by {judged_by}" if verdicts else ""
    matrix = spec.matrix or not tally.decides_cases
    run = _build_view(rundir, manifest, spec, plan, score, cells if matrix else (), ended)
    run = replace(run, judged_from=judged_from, page=shorten_path(page) if page else "")
    if spec.by_cases:
        run = replace(run, cases=build_case_rows(cells, cases), contract=contract if matrix else None)
    outcome = RunOutcome(run, cells)
    return apply_hunt(outcome, rundir) if spec.part == "hunt" else outcome


def load_run(run: RunDir, *, environ: Mapping[str, str]) -> RunOutcome:
    """Return the run with its score, from its stored files; an unfinished run as far as it got."""
    manifest = run.read_manifest()
    warning = check(run)
    spec, _ = load_stored_spec(run, manifest, None, environ)
    plan = build_plan(spec, manifest.options.select, sequential=manifest.options.auto)
    tally = Tally(spec, plan)
    records = RunRecords(run, spec.scenarios, lenient=is_written(run.path))
    stored = replay_verdicts(records, plan, tally, keep_errors=True)
    page = run.path / "report.html"
    ended = run.read_end() or RunEnd(False, 0.0)
    ended = replace(ended, notes=(*ended.notes, RunNote("unsealed", warning))) if warning else ended
    return conclude(
        run,
        spec,
        plan,
        tally,
        manifest.options,
        ended=ended,
        records=records,
        foreign=stored.foreign,
        page=page if page.exists() else None,
    )


def apply_hunt(outcome: RunOutcome, rundir: RunDir, result: HuntResult | None = None) -> RunOutcome:
    """Return the outcome of a hunt, by this result, or by its stored one."""
    from holdfast.runner.hunt_view import add_hunt, read_hunt  # other runs do not need it

    run = add_hunt(outcome.run, rundir, outcome.cells, result or read_hunt(rundir))
    return replace(outcome, run=run)


def _compute_score(
    spec: Spec,
    tally: Tally,
    cases: tuple[Case, ...],
    contract: Score,
    deciding: tuple[Reason, ...],
    rules: ScoreOptions,
) -> Score:
    """Score the tasks, the cells or both, depending on the part that ran."""
    if spec.part in ("mutation", "replay"):
        from holdfast.score.task_score import score_tasks

        score = score_tasks(spec, cases, tally, rules)
    elif not tally.decides_cases:
        score = combine_with_forbidden(contract, cases, rules)
    else:
        score = combine_with_cases(contract, deciding if spec.matrix else None, cases, rules)
    if not rules.shard:
        return score
    from holdfast.score.overall import score_shard

    return score_shard(score, rules)


def _build_repetition(spec: Spec, options: RunOptions, stored: RunOptions) -> Repetition:
    """Return the command that runs a cell again."""
    again = build_run_command(
        spec.path,
        part=spec.part,
        seed=spec.seed,
        replicas=options.replicas,
        profile=options.profile,
        recording=None if stored.replay is None else shorten_path(stored.replay),
        chaos=stored.chaos,
        chaos_profile=stored.chaos_profile,
        sessions=None if stored.sessions is None else shorten_path(stored.sessions),
        live=stored.live,
        backend=stored.backend if spec.world and stored.has_option("backend") else None,
    )
    python = "" if spec.built is None else f"{spec.path}:{spec.built.line}"
    return Repetition(again, python, spec.seed, hunts=spec.part == "hunt")


def list_unrun_cases(spec: Spec, plan: Plan, why: str) -> Iterator[Case]:
    """Yield the cases of a plan that never started because the preflight failed."""
    planned = (trial for trial in plan.trials if trial.invariant == "*") if spec.by_cases else ()
    first = {(one.scenario.name, one.task, encode_canonical(one.params)): one for one in planned}
    for one in first.values():
        yield Case(one.scenario.name, "error", one.task.prompt, one.params, reason=why)


def store_score(rundir: RunDir, score: Score) -> None:
    """Write `score.json`, the score at the end of the run. Viewing or rejudging the run leaves it unchanged."""
    write_json(rundir.path / "score.json", score)


def build_score_options(options: RunOptions, ended: RunEnd, *, planned: int) -> ScoreOptions:
    """Return the options that the verdict depends on besides cells and spec."""
    left_out = {"interrupted": not ended.complete, "unrun": ended.unrun, "unasked": ended.unasked}
    return convert(ScoreOptions, options, **left_out, planned=planned, shard=str(options.select.shard or ""))


def _build_view(
    rundir: RunDir, manifest: Manifest, spec: Spec, plan: Plan, score: Score, cells: Sequence[CellRow], ended: RunEnd
) -> Run:
    stopped, backend = describe_stop(ended, score.trials, auto=manifest.options.auto), manifest.options.backend
    background = (*note_isolation(spec, backend), *ended.background, *note_missing_isolation(ended))
    stop_note = (RunNote("stopped", stopped),) if stopped else ()
    masker = Masker(list_static_values(spec.world.secrets if spec.world else ()))  # a rule may repeat one
    return Run(
        id=rundir.id,
        path=shorten_path(rundir.path),
        name=spec.name or Path(spec.path).name,
        spec_path=spec.path,
        seed=spec.seed,
        score=score,
        invariants=tuple(map(masker.mask_struct, plan.invariants)),
        scenarios=tuple(plan.scenarios),
        cells=cells,
        complete=ended.complete and not ended.unrun and not ended.unasked,
        warnings=ended.warnings,
        notes=(*build_notes(manifest.options, spec, plan, score), *ended.notes, *stop_note, *background),
        background=background,
        sandbox=describe_exposure(spec, backend),
        stateful=ended.stateful,
        stopped=stopped,
        isolation=describe_isolation(spec, manifest.options.backend),
        promises=(*ended.isolation, *note_self_reported(spec)),
        description=spec.description,
        started=manifest.started,
        duration_s=ended.duration_s,
        version=__version__,
        spec_digest=manifest.spec_digest,
        agent_digest=manifest.agent_digest,
        params=spec.params,
        source=get_repository_path(manifest.original),
        gateway=spec.agent.gateway,
        part=spec.part,
        cell_rules=frozenset(spec.cell_rules),
    )
