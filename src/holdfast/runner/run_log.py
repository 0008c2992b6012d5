"""The messages of a running run: sent to listeners, and stored in `ended.json` for a resume."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.model import events
from holdfast.model.codes import STATEFUL, RunNote, RunWarning
from holdfast.model.trial import Trial
from holdfast.runner.intake import Intake
from holdfast.runner.job import Job, Listen
from holdfast.score.run_totals import estimate_cost
from holdfast.store.lines import Seal
from holdfast.store.rundir import RunDir, RunEnd, seal_documents

if TYPE_CHECKING:
    from holdfast.execute.ray_executor import Workers


class RunLog:
    """The warnings and notes of one run."""

    def __init__(self, job: Job, run: RunDir, intake: Intake, listen: Listen) -> None:
        self._job = job
        self._run = run
        self._intake = intake
        self._listen = listen
        before = run.read_end()
        self.warnings = list(dict.fromkeys((*job.warnings, *(before.warnings if before else ()))))
        self.notes: tuple[RunNote, ...] = before.notes if before else ()
        self.background: tuple[RunNote, ...] = before.background if before else ()
        """The executor's notes about the trials' worlds."""
        self._documents = seal_documents(run)
        """Copies made before an agent runs, which could change the originals."""
        self.unrun = 0
        """The number of trials that fail-fast left out."""
        self.unasked = 0
        """The number of trials that a budget left out."""
        self.stopped_by = ""
        """The option whose budget ended the run."""
        self.stateful = before is not None and before.stateful
        """Whether the agent seems to keep state, by this or an earlier preflight of the run."""

    def remove_seal(self) -> None:
        """Remove the seal while a resumed run is written: if it is killed, it must not look forged."""
        before = self._run.read_end()
        if before is not None and before.sealed:
            self._run.write_end(replace(before, complete=False, sealed={}))

    def announce(self, concurrency: int, done: int) -> None:
        job = self._job
        self._listen(
            events.RunStarted(
                run_id=self._run.id,
                path=str(self._run.path),
                spec=job.spec,
                trials=job.options.max_trials or 0 if job.spec.part == "hunt" else len(job.plan.trials),
                cells=len(job.plan.cells),
                rules=len(job.plan.invariants),
                scenarios=len(job.plan.scenarios),
                seed=job.spec.seed,
                concurrency=concurrency,
                done=done,
            )
        )

    def estimate_cost(self, trials: int) -> None:
        """Report what the calm trials of a hunt cost, and what the rest may; nothing if only known causes follow."""
        options = self._job.options
        estimate = estimate_cost(self._intake.tally.spending, trials, options.max_trials)
        if estimate is not None and not options.hunt.only_known:
            self._listen(events.CostEstimated(estimate))

    def warn_trial(self, trial: Trial, message: str) -> None:
        """Report a message about one trial; the trial's record contains it."""
        self._listen(events.WarningIssued(RunWarning("trial", f"trial {trial.id}: {message}")))

    def report_workers(self, now: Workers) -> None:
        """Report the state of a cluster's workers."""
        self._listen(events.WorkerStatus(now.at_work, now.in_flight, now.lost, now.repeated))

    def note(self, code: str, *texts: str) -> None:
        self.notes = (*self.notes, *(RunNote(code, text) for text in texts))

    def warn(self, code: str, text: str) -> None:
        """Store the warning, with any change of the run's state, and announce it."""
        warning = RunWarning(code, text, code in self._job.spec.ignored_warnings)
        self.stateful = self.stateful or code == STATEFUL
        self.warnings.append(warning)
        self._end(False)  # on disk immediately: a resumed run must know it
        if not warning.ignored:
            self._listen(events.WarningIssued(warning))

    def close(self, complete: bool, duration_s: float) -> None:
        """Seal the run's files and announce its end. On a full disk this fails, and the run has not ended."""
        with closing(self._intake.record) as record:
            self._run.restore_manifest()
            sealed, warnings = record.seal()
            for one in warnings:
                self.warn(one.code, one.text)
            self._end(complete, duration_s, sealed | self._documents)
        self._listen(events.RunEnded(complete))

    def _end(self, complete: bool, duration_s: float = 0.0, sealed: dict[str, Seal] | None = None) -> None:
        conditions = self._intake.conditions
        notes = tuple(dict.fromkeys((*self.notes, *_build_trial_notes(conditions.notes))))
        ended = RunEnd(
            complete,
            duration_s,
            tuple(self.warnings),
            notes,
            sealed or {},
            conditions.isolation,
            self.unrun,
            self.unasked,
            self.stopped_by,
            self.stateful,
            tuple(dict.fromkeys((*self.background, *_build_trial_notes(conditions.background)))),
        )
        self._run.write_end(ended)


def _build_trial_notes(texts: Iterable[str]) -> Iterator[RunNote]:
    return (RunNote("every-trial", text) for text in texts)
