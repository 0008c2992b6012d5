"""What is said of a run while it is under way: to whoever listens, and in `ended.json` for who takes it up again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.model import events
from holdfast.model.run_warning import STATEFUL, RunNote, RunWarning
from holdfast.model.trial import Trial
from holdfast.runner.intake import Intake
from holdfast.runner.job import Job, Listen
from holdfast.store.rundir import RunDir, RunEnd
from holdfast.store.seals import Seal

if TYPE_CHECKING:
    from holdfast.execute.ray_executor import Workers


class RunLog:
    """The warnings and notes of one run."""

    def __init__(self, job: Job, run: RunDir, intake: Intake, listen: Listen) -> None:
        self._job = job
        self._run = run
        self._intake = intake
        self._listen = listen
        before = run.ended()
        self.warnings = list(dict.fromkeys((*job.warnings, *(before.warnings if before else ()))))
        self.notes: tuple[RunNote, ...] = before.notes if before else ()
        self.background: tuple[RunNote, ...] = before.background if before else ()
        """What the executor says of the world of its trials."""
        self._documents = run.sealed_documents()
        """As they are before an agent runs, which could change them."""
        self.unrun = 0
        """Trials that fail-fast left out."""
        self.unasked = 0
        """Trials that a budget left out."""
        self.stopped_by = ""
        """The option whose budget ended the run."""
        self.stateful = before is not None and before.stateful
        """The agent seems to keep state, now or when an earlier preflight of the run asked."""

    def unseal(self) -> None:
        """A run that is taken up is not sealed while it is written: killed then, it must not look forged."""
        before = self._run.ended()
        if before is not None and before.sealed:
            self._run.end(replace(before, complete=False, sealed={}))

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

    def aside(self, trial: Trial, message: str) -> None:
        """Said while the trial runs, and not of the run: its own record has it."""
        self._listen(events.Warned(RunWarning("trial", f"trial {trial.id}: {message}")))

    def workers(self, now: Workers) -> None:
        """What goes on at a cluster."""
        self._listen(events.WorkersAtWork(now.at_work, now.in_flight, now.lost, now.repeated))

    def note(self, code: str, *texts: str) -> None:
        self.notes = (*self.notes, *(RunNote(code, text) for text in texts))

    def warn(self, code: str, text: str) -> None:
        """Stores the warning and announces it. What it says of the run's state is stored with it."""
        warning = RunWarning(code, text, code in self._job.spec.ignored_warnings)
        self.stateful = self.stateful or code == STATEFUL
        self.warnings.append(warning)
        self._end(False)  # on disk at once: a run that is taken up again must know
        if not warning.ignored:
            self._listen(events.Warned(warning))

    def close(self, complete: bool, duration_s: float) -> None:
        """The run's files are sealed, and its end is told."""
        self._run.restore()
        sealed, warnings = self._intake.record.seal()
        for one in warnings:
            self.warn(one.code, one.text)
        if sealed:
            sealed |= self._documents
        self._end(complete, duration_s, sealed)
        self._intake.record.close()
        self._listen(events.RunEnded(complete))

    def _end(self, complete: bool, duration_s: float = 0.0, sealed: dict[str, Seal] | None = None) -> None:
        conditions = self._intake.conditions
        notes = tuple(dict.fromkeys((*self.notes, *_of_trials(conditions.notes))))
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
            tuple(dict.fromkeys((*self.background, *_of_trials(conditions.background)))),
        )
        self._run.end(ended)


def _of_trials(texts: Iterable[str]) -> Iterator[RunNote]:
    return (RunNote("every-trial", text) for text in texts)
