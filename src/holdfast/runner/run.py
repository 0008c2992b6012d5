"""The one loop: planner -> executor -> store -> judge -> events -> planner."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from msgspec.structs import replace

from holdfast.errors import AgentUnavailable, HoldfastError
from holdfast.execute.local import execute
from holdfast.execute.site import Site, open_site
from holdfast.judge import Judge
from holdfast.model import events
from holdfast.model.observation import FaultMet, Observation
from holdfast.model.trial import Trial
from holdfast.plan import FailFast, Judged, Once
from holdfast.runner.job import Job, Listen
from holdfast.runner.preflight import preflight, was_stateful
from holdfast.score import Tally
from holdfast.spec import secret_values
from holdfast.store.mask import Masker
from holdfast.store.record import Record
from holdfast.store.replay import Stored, replay
from holdfast.store.rundir import Ended, RunDir, write_json

BEAT_S = 0.2
"""A clock that moves five times a second looks alive."""


class Running:
    """One execution under way."""

    def __init__(self, job: Job, run: RunDir, listen: Listen) -> None:
        self.job = job
        self.run = run
        self.listen = listen
        before = run.ended()
        self.warnings = list(dict.fromkeys((*job.warnings, *(before.warnings if before else ()))))
        self.notes: tuple[str, ...] = before.notes if before else ()
        self.masker = Masker(secret_values(job.spec, job.environ))
        self.judge = Judge(job.spec)
        self.tally = Tally(job.spec, job.plan)
        self.controls: dict[str, Observation] = {}
        self.failed = False
        self.record = Record(run)

    async def go(self) -> bool:
        """Runs what is missing; False if it was interrupted."""
        started = time.monotonic()
        stored = replay(self.run, self.job.plan, self.tally)
        complete = False
        try:
            self._rejudge(stored)
            complete = await self._interruptible(stored)
        finally:
            self._end(complete, time.monotonic() - started)
            self.record.close()
            self.listen(events.RunEnded(complete))
        return complete

    def _end(self, complete: bool, duration_s: float = 0.0) -> None:
        write_json(self.run.path / "ended.json", Ended(complete, duration_s, tuple(self.warnings), self.notes))

    async def _interruptible(self, stored: Stored) -> bool:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
        try:
            await self._all(stored)
        except asyncio.CancelledError:
            task.uncancel()
            return False
        finally:
            loop.remove_signal_handler(signal.SIGTERM)
        return True

    async def _all(self, stored: Stored) -> None:
        job = self.job
        site = await open_site(job.spec, environ=job.environ, concurrency=job.options.concurrency)
        try:
            self.notes = site.notes
            if was_stateful(self.warnings):
                site.concurrency = 1
            self._announce(site, stored)
            await self._controls(site, stored)
            trials = [t for t in job.plan.trials if t.id not in stored.seen] if stored.seen else job.plan.trials
            planner = FailFast(trials, site.concurrency) if job.options.fail_fast else Once(trials)
            done = 0
            while batch := planner.next(Judged(done, self.failed)):
                async for trial, seen in execute(site, self._begun(batch), started=self._started, on_fault=self._met):
                    self._take(trial, seen)
                    done += 1
        finally:
            await site.close()

    async def _controls(self, site: Site, stored: Stored) -> None:
        """The preflight, then one calm answer for each task that a rule compares with."""
        self.controls.update(stored.controls)
        plan = self.job.plan
        first = plan.preflight
        if first is not None and self.job.options.preflight and first.id not in self.controls:
            self.record.trials((first,))
            self._keep(first, await preflight(site, first, self.warn))
        missing = [t for t in plan.controls if t.id not in self.controls]
        async for trial, seen in execute(site, self._begun(missing)):
            self._keep(trial, seen)

    def _keep(self, trial: Trial, seen: Observation) -> None:
        self.controls[trial.id] = seen
        self.record.observation(self.masker.observation(seen))

    def _begun(self, trials: Iterable[Trial]) -> Iterator[Trial]:
        """Trials are on disk before they run, a batch at a time: one write for many."""
        feed = iter(trials)
        while batch := tuple(islice(feed, 64)):
            self.record.trials(batch)
            yield from batch

    def _take(self, trial: Trial, seen: Observation) -> None:
        """Stored before judged, judged before shown."""
        shown = self.masker.observation(seen)
        self.record.observation(shown)
        self.listen(events.TrialEnded(trial, shown))
        self._judge(trial, seen, masked=shown.masked)

    def _judge(self, trial: Trial, seen: Observation, *, masked: bool = False) -> None:
        control = self.job.plan.control_for(trial)
        compared = None if control is None else self.controls.get(control.id)
        for rule in self.job.plan.rules(trial):
            verdict = self.masker.struct(self.judge.judge(rule, trial, seen, compared))
            if masked:
                verdict = replace(verdict, marks=())  # they point into the text as the agent said it
            self.record.verdict(verdict)
            self.failed = self.failed or verdict.outcome == "fail"
            self.listen(events.VerdictGiven(trial, verdict))
            cell = self.tally.add(trial, seen, verdict)
            if cell is not None:
                self.listen(events.CellDecided(cell))

    def _rejudge(self, stored: Stored) -> None:
        """Observations that were stored, and not judged before the run was killed."""
        self.controls.update(stored.controls)
        self.failed = stored.failed
        live, self.judge = self.judge, Judge(self.job.spec, stored=True)
        for trial, seen in stored.unjudged:
            self._judge(trial, seen)
        self.judge = live

    def _announce(self, site: Site, stored: Stored) -> None:
        job = self.job
        self.listen(
            events.RunStarted(
                run_id=self.run.id,
                path=str(self.run.path),
                spec=job.spec,
                trials=len(job.plan.trials),
                cells=len(job.plan.cells),
                seed=job.spec.seed,
                concurrency=site.concurrency,
                done=len(stored.seen),
            )
        )

    def _started(self, trial: Trial) -> None:
        self.listen(events.TrialStarted(trial))

    def _met(self, trial: Trial, fault: FaultMet) -> None:
        self.listen(events.FaultFired(trial, self.masker.struct(fault)))

    def warn(self, message: str) -> None:
        self.warnings.append(message)
        self._end(False)  # on disk at once: a run that is taken up again must know
        self.listen(events.Warned(message))


async def _go(running: Running, beat: Callable[[], None] | None) -> None:
    async def tick() -> None:
        while beat is not None:
            await asyncio.sleep(BEAT_S)
            beat()

    ticking = asyncio.create_task(tick())
    try:
        await running.go()
    finally:
        ticking.cancel()


def run(job: Job, rundir: RunDir, listen: Listen, *, beat: Callable[[], None] | None = None) -> Running:
    """Runs the job to its end or to an interrupt, from the rim: the one place that starts the loop.

    `beat` is called now and then, for a listener that shows how time passes.
    """
    running = Running(job, rundir, listen)
    try:
        asyncio.run(_go(running, beat))
    except AgentUnavailable as gone:
        raise running.masker.unavailable(gone) from None
    except KeyboardInterrupt:
        raise HoldfastError("interrupted before the run could be stored") from None
    return running
