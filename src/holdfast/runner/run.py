"""The one loop: planner -> executor -> store -> judge -> events -> planner."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import aclosing
from typing import TYPE_CHECKING

from holdfast.errors import AgentUnavailable
from holdfast.execute.plane_needs import warn_unmet_recordings, warn_unused_proxy
from holdfast.execute.resolved_spec import ModelOptions
from holdfast.model.judged import JudgingProgress
from holdfast.model.trial import Trial
from holdfast.plan import FailFastPlanner, OncePlanner, RoundsPlanner, RunOptions
from holdfast.processes.scratch import sweep
from holdfast.reading.words import format_plural
from holdfast.runner.across_trials import CalledTools, start_comparison
from holdfast.runner.executors import choose_loop_factory, open_executor
from holdfast.runner.intake import Intake
from holdfast.runner.interrupts import Interrupts
from holdfast.runner.job import Job, Listen
from holdfast.runner.past.hunted import build_hunt_planner, read_judged
from holdfast.runner.preflight import run_preflight
from holdfast.runner.run_log import RunLog
from holdfast.store.replay import StoredRun, replay_verdicts
from holdfast.store.rundir import RunDir
from holdfast.store.stored_records import RunRecords

if TYPE_CHECKING:
    from holdfast.protocols.executor import Executor
    from holdfast.protocols.planner import Planner


class Budget:
    """Starts trials while the budget lasts; trials already running finish."""

    def __init__(
        self, options: RunOptions, done: int, spent_usd: Callable[[], float], clock: Callable[[], float]
    ) -> None:
        """`done` trials count already: a resumed run continues with the trials and money it has used."""
        self._options = options
        self._started = done
        self._spent_usd = spent_usd
        self._clock = clock
        self._began = clock()
        self.ended_by = ""
        """The option that ended the run; empty if none has."""

    def limit_trials(self, trials: Iterable[Trial]) -> Iterator[Trial]:
        """Yield the trials that the budget allows."""
        feed = iter(trials)
        while not self.is_used_up():
            trial = next(feed, None)
            if trial is None:
                return
            self._started += 1
            yield trial
        if next(feed, None) is None:
            self.ended_by = ""  # nothing was left out

    def is_used_up(self) -> bool:
        """Return whether the budget allows no further trial."""
        options = self._options
        if options.max_trials is not None and self._started >= options.max_trials:
            self.ended_by = f"--max-trials {options.max_trials}"
        elif options.max_cost is not None and self._spent_usd() >= options.max_cost:
            self.ended_by = f"--max-cost {options.max_cost:g}"
        elif options.max_time_s is not None and self._clock() - self._began >= options.max_time_s:
            self.ended_by = f"--max-time {options.max_time_s:g}s"
        return bool(self.ended_by)


BEAT_S = 0.2
"""Seconds between beats: a clock that moves five times a second looks alive."""


class RunInProgress:
    """One execution in progress."""

    def __init__(
        self, job: Job, run: RunDir, listen: Listen, *, each_trial: bool = True, interrupts: Interrupts | None = None
    ) -> None:
        self.job = job
        self.run = run
        self._interrupts = interrupts or Interrupts()
        self.intake = Intake(job, run, listen, each_trial=each_trial)
        self.log = RunLog(job, run, self.intake, listen)
        self.foreign: frozenset[str] = frozenset()
        """Stored trials of another spec, which a forced resume found."""

    async def run_missing(self) -> None:
        """Run the missing trials, to the end or to an interrupt."""
        started = time.monotonic()
        complete = False
        with self._interrupts as interrupts:
            try:
                # A resumed run is written again, so its old seal goes first: killed from here on, it counts as unsealed
                # and not as forged. Then what is stored is added up, and only the rest is asked.
                self.log.remove_seal()
                records = RunRecords(self.run, self.job.spec.scenarios)
                stored = replay_verdicts(records, self.job.plan, self.intake.tally)
                self.foreign = stored.foreign
                complete = await interrupts.run_to_end(self._run_executor(stored))
            finally:
                await self.intake.cancel()
                self.log.close(complete, time.monotonic() - started)

    async def _run_executor(self, stored: StoredRun) -> None:
        job, intake, options = self.job, self.intake, self.job.options
        intake.open()
        await intake.judge_stored(stored)
        models = ModelOptions(options.record, options.replay, intake.masker.mask_text)
        async with open_executor(job, intake, self.run, self.log, models) as executor:
            self.log.notes, self.log.background = (), executor.notes
            if self.log.stateful:
                executor.use_one_slot()
            planner = self._build_planner(stored, executor.concurrency)
            intake.judged = read_judged(self.run, job.plan) if planner.detailed else None
            # A hunt invents most of its trials: they are not in the plan that `stored` is about.
            done = stored.done if intake.judged is None else len(intake.judged) + len(stored.controls)
            self.log.announce(executor.concurrency, done)
            for warning in (warn_unused_proxy(job.spec, job.environ, models), warn_unmet_recordings(job.spec)):
                if warning is not None and warning not in self.log.warnings:
                    self.log.warn(warning.code, warning.text)
            await self._run_controls(executor)
            await self._run_trials(executor, stored, planner)

    async def _run_trials(self, executor: Executor, stored: StoredRun, planner: Planner) -> None:
        """Run all trials without a record, batch by batch, and describe how the run ended."""
        intake = self.intake
        budget = self._build_budget(stored.done)
        calm, called = start_comparison(self.job, intake.controls), CalledTools(self.job.spec)
        alone = executor.concurrency == 1
        judged, done, planned = JudgingProgress(0, intake.violated), 0, 0
        # Every planner is asked the same way: it gets what was judged, and returns the next trials, or none at the end.
        # A plain run has one batch; a hunt invents each batch from the verdicts on the last one.
        while batch := planner.next(judged):
            if judged.trials and done == len(judged.trials) and not stored.done:  # only the calm trials of a hunt ran
                self.log.estimate_cost(done)
            # A planner that invents trials plans them again when it is resumed: those with a record are not run again.
            due = [trial for trial in batch if trial.id not in intake.judged] if intake.judged is not None else batch
            planned = done + len(due)
            ended = executor.execute(
                budget.limit_trials(intake.record_begun(due)),
                started=intake.started,
                on_fault=intake.report_fault,
                on_call=intake.record_event,
                store=intake.store,
            )
            async with aclosing(ended):  # whatever happens here, the executor's slots are closed
                async for trial, observation in ended:
                    await intake.judge(trial, observation, alone=alone)
                    called.add(observation)
                    if calm is not None:
                        calm.add(trial, observation)
                    done += 1
            await intake.settle()
            if budget.ended_by:
                break
            judged = JudgingProgress(done, intake.violated, intake.take_judged(batch))
        self._describe_end(stored, budget, done, planned)
        if calm is not None and calm.warning:
            self.log.warn("answers-differ", intake.masker.mask_text(calm.warning))
        # The tools called in stored trials are unknown here, and an interrupted run says nothing about the rest.
        if done and done == len(stored.left) and not stored.done:
            for warning in called.build_warnings():
                self.log.warn(warning.code, intake.masker.mask_text(warning.text))

    def _describe_end(self, stored: StoredRun, budget: Budget, done: int, planned: int) -> None:
        """Record why trials did not run and which broke. `planned` is the number of planned trials."""
        job, intake = self.job, self.intake
        self.log.note("world-kept", *intake.kept.notes)
        self.log.note("bad-endings", *intake.tally.endings.describe_endings(intake.tally.trials))
        if job.options.max_cost is not None:
            self._warn_of_unpriced()
        if budget.ended_by:
            self.log.unasked = (planned if job.options.auto or intake.judged is not None else len(stored.left)) - done
            self.log.stopped_by = budget.ended_by
        elif job.options.auto:
            self._note_replicas(done + stored.done)
        elif done < len(stored.left):
            self.log.unrun = len(stored.left) - done
            self.log.note("fail-fast", f"stopped at the first failure: {done} of {len(stored.left)} trials were run")
        for why, count in intake.troubled.items():
            self.log.warn(
                "harness-trouble",
                f"Holdfast or a provider failed in {format_plural(count, 'trial')}, where only passes count: {why}",
            )

    def _build_planner(self, stored: StoredRun, concurrency: int) -> Planner:
        options = self.job.options
        if self.job.spec.part == "hunt":
            return build_hunt_planner(self.run, self.job.plan, options)
        if options.auto:
            return RoundsPlanner(stored.left, self.intake.tally.needs_trial, fail_fast=options.fail_fast)
        return FailFastPlanner(stored.left, concurrency) if options.fail_fast else OncePlanner(stored.left)

    def _build_budget(self, done: int) -> Budget:
        options, tally = self.job.options, self.intake.tally
        if self.intake.judged is not None:  # of a hunt every trial counts, the preflight included
            done = len(self.intake.judged) + len(self.intake.controls)
        return Budget(options, done, lambda: tally.spending.usd + tally.control_spending.usd, time.monotonic)

    def _note_replicas(self, planned: int) -> None:
        """Note how many replicas were enough; after fail-fast some are missing."""
        plan = self.job.plan
        self.log.note("replicas", f"replicas auto: {planned} of at most {len(plan.trials)} trials decided")
        from holdfast.score.sequential import warn_too_few_replicas

        self.log.note("replicas", *warn_too_few_replicas(self.intake.tally.spec))
        if self.job.options.fail_fast and self.intake.violated:
            self.log.unrun = len(plan.trials) - planned
            self.log.note("fail-fast", "stopped at the first failure")

    def _warn_of_unpriced(self) -> None:
        """Warn about unpriced models: the budget cannot see what they cost."""
        spent = self.intake.tally.spending.build_result()
        if spent is None or (spent.cost_usd is None and not spent.unpriced):
            elsewhere = "money that the agent spends elsewhere is not counted"
            self.log.warn("cost-unseen", f"--max-cost: no call with a known price was seen; {elsewhere}")
        elif spent.unpriced:
            unpriced = ", ".join(spent.unpriced)
            self.log.warn("cost-unpriced", f"--max-cost: the price of {unpriced} is not known, and was not counted")

    async def _run_controls(self, executor: Executor) -> None:
        """Run the preflight, then one calm trial for each task that a rule compares with."""
        intake, first = self.intake, self.job.preflight_trial
        if first is not None and first.id not in intake.controls:
            for trial in intake.record_begun((first,)):
                intake.store_control(trial, await run_preflight(executor, self.job.spec, trial, self.log.warn))
        missing = [trial for trial in self.job.plan.controls if trial.id not in intake.controls]
        async with aclosing(executor.execute(intake.record_begun(missing))) as ended:
            async for trial, observation in ended:
                intake.store_control(trial, observation)


async def _run_with_ticks(running: RunInProgress, beat: Callable[[], None] | None) -> None:
    async def tick() -> None:
        while beat is not None:
            await asyncio.sleep(BEAT_S)
            beat()

    ticking = asyncio.create_task(tick())
    try:
        await running.run_missing()
    finally:
        ticking.cancel()


def run(
    job: Job,
    rundir: RunDir,
    listen: Listen,
    *,
    beat: Callable[[], None] | None = None,
    each_trial: bool = True,
    interrupts: Interrupts | None = None,
) -> RunInProgress:
    """Run the job to its end or to an interrupt. This is the one place that starts the event loop.

    `beat` is called regularly, so a listener can show elapsed time; `each_trial` asks for events of single trials,
    verdicts and cells; `interrupts` can be stopped from another thread.
    """
    sweep()  # files that a killed run left: certificates, prompts, MCP configurations
    running = RunInProgress(job, rundir, listen, each_trial=each_trial, interrupts=interrupts)
    factory = choose_loop_factory(job.environ)
    try:
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(_run_with_ticks(running, beat))
    except AgentUnavailable as gone:
        raise running.intake.masker.mask_error(gone) from None
    except KeyboardInterrupt:
        if rundir.read_end() is None:
            raise  # there was nothing to store yet
    return running
