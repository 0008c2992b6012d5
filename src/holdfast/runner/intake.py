"""Processes each observation: stored before judged, judged before shown."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec import UNSET
from msgspec.structs import replace

from holdfast.model import events
from holdfast.model.codec import HALVES, make_storable
from holdfast.model.judged import JudgedTrial
from holdfast.model.observation import FaultMet, Observation
from holdfast.model.trace import TraceEvent
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.runner.across_trials import Conditions
from holdfast.runner.bench import Bench
from holdfast.runner.consultations import Consultations, Waiting
from holdfast.runner.job import Job, Listen
from holdfast.runner.kept import KeptWorlds, has_failed
from holdfast.score import Tally
from holdfast.secrets.masker import Masker
from holdfast.spec import read_secret_values
from holdfast.store.record import RunRecord, StoredAnswer
from holdfast.store.replay import StoredRun
from holdfast.store.rundir import RunDir

BATCH = 64
"""Trials written to disk in one write, ahead of their turn."""
TROUBLES = 5
"""Harness errors reported one by one."""
LONG = 10_000
"""Length up to which any check reads an answer in about a millisecond."""


class Intake:
    """Stores observations, judges them, adds them to the score and emits events."""

    def __init__(self, job: Job, run: RunDir, listen: Listen, *, each_trial: bool = True) -> None:
        """`each_trial`: the listener also receives events of single trials, verdicts and cells."""
        hidden = (*read_secret_values(job.spec, job.environ), *job.secrets.values())
        self.masker = Masker(hidden)
        self._masks = bool(self.masker)
        self._masked: set[str] = set()
        """Trials whose stored answers have masked secrets, until they are judged."""
        self.tally = Tally(job.spec, job.plan)
        self.troubled: dict[str, int] = {}
        """Harness and provider errors, with the number of trials they hit."""
        before = run.read_end()
        self.conditions = Conditions(before.isolation if before else ())
        self.kept = KeptWorlds(job.options.keep, run, hidden)
        self._tolerant = (job.options.min_score, job.spec.scoring.min_score) != (None, None)
        self._spec, self._plan = job.spec, job.plan
        self._consultations = Consultations(job.spec, job.environ, run)
        self._bench = Bench(job.spec, job.plan, self.masker)
        self.controls = self._bench.controls
        self._waiting = Waiting()
        agent = job.spec.agent
        self.record = RunRecord(
            run,
            job.spec.scenarios,
            inline=agent.is_python and agent.isolation == "inline",
            consults=bool(self._consultations),
        )
        self.judged: dict[str, JudgedTrial] | None = None
        """What the planner will learn about judged trials, by id; None if it does not need to know."""
        self._listen = listen if each_trial else None
        self.started = (lambda trial: listen(events.TrialStarted(trial))) if each_trial else None
        """Called when a trial begins, if there is a listener."""
        self._unwritten: OSError | None = None
        """The error of a background write of verdicts, raised by `settle`."""

    @property
    def violated(self) -> bool:
        """Whether the run has failed whatever the remaining trials do; a minimum score tolerates non-critical failures.

        If cases decide the run, other cells do not.
        """
        if self.tally.decides_cases:
            return self.tally.lost_case or (self._spec.matrix and self.tally.lost_critical)
        return self.tally.lost_case or self.tally.lost_critical or (self.tally.lost and not self._tolerant)

    def record_begun(self, trials: Iterable[Trial]) -> Iterator[Trial]:
        """Write trials to disk before they run, one batch per write."""
        feed = iter(trials)
        while batch := tuple(islice(feed, BATCH)):
            self.record.write_trials(batch)
            yield from batch

    def store_control(self, trial: Trial, observation: Observation) -> None:
        """Store a control trial. It is compared with, not judged."""
        observation, _ = self._write(observation)
        self.controls[trial.id] = observation
        self.kept.decide(observation)
        self.tally.note_trial(trial, observation)

    def store(self, trial: Trial, observation: Observation) -> Observation:
        """Store an ended trial before anything else uses it; return the observation to judge."""
        observation, masked = self._write(observation)
        if masked.masked:
            self._masked.add(trial.id)
        if masked.error and (masked.error in self.troubled or len(self.troubled) < TROUBLES):
            self.troubled[masked.error] = self.troubled.get(masked.error, 0) + 1
        if masked.isolation:
            self.conditions.add(masked)
        if trial.task.recording is not UNSET:
            self.conditions.note_replay(trial.task, masked)
        if self._listen is not None:
            self._listen(events.TrialEnded(trial, masked))
        return observation

    def _write(self, observation: Observation) -> tuple[Observation, Observation]:
        """Write an observation; return the one to judge, and the stored one with masked secrets."""
        # Lone surrogates, which no file can hold, make the write fail. Only then are they replaced, so other trials pay
        # nothing for it.
        try:
            masked = self.masker.mask_observation(observation) if self._masks else observation
            self.record.write_observation(masked)
        except UnicodeEncodeError:
            notes = tuple(dict.fromkeys((*observation.notes, HALVES)))
            return self._write(make_storable(replace(observation, notes=notes)))
        return observation, masked

    async def judge(self, trial: Trial, observation: Observation, *, alone: bool = False) -> None:
        """Judge the trial; `alone`: no other trial is running.

        A trial whose rules ask a model is judged when the model has answered; `settle` waits for these.
        """
        if self._consultations.select_rules(self._plan.get_rules(trial), observation):
            await self._waiting.add(self._consult_and_judge(trial, observation, alone=alone))
        else:
            await self._judge(trial, observation, alone=alone)

    async def _consult_and_judge(self, trial: Trial, observation: Observation, *, alone: bool) -> None:
        await self._judge(trial, await self._add_answers(trial, observation), alone=alone)

    async def _judge(self, trial: Trial, observation: Observation, *, alone: bool) -> None:
        # Judging on the event loop is fastest, but a slow check would delay the other trials and eat their timeouts.
        # So only checks that are known to be quick, on answers of bounded length, run here.
        if alone or (not self._bench.is_slow(trial) and _is_short(observation)):
            verdicts = self._bench.judge(trial, observation)
        else:
            verdicts = await asyncio.to_thread(self._bench.judge, trial, observation)
        self._record_verdicts(trial, observation, verdicts)

    async def _add_answers(self, trial: Trial, observation: Observation) -> Observation:
        """Add the models' answers to the observation; they are on disk before a verdict depends on them."""
        rules = self._consultations.select_rules(self._plan.get_rules(trial), observation)
        if not rules:
            return observation
        masked, control = self.masker.mask_observation(observation), self._bench.get_control(trial)
        calm = None if control is None else self.masker.mask_observation(control)
        unmasked = await self._consultations.ask_models(rules, trial, masked, calm)
        answers = {id: self.masker.mask_struct(one) for id, one in unmasked.items()}
        for id, evidence in answers.items():
            if not evidence.error:  # rejudging the run repeats a failed call
                self.record.write_answer(StoredAnswer(trial.id, id, evidence))
        return replace(observation, evidence={**observation.evidence, **answers})

    def open(self) -> None:
        """Call before an agent runs."""
        self._consultations.open()

    async def settle(self) -> None:
        """Wait until every trial is judged and its verdicts are written."""
        await self._waiting.finish()
        self.record.flush()
        if self._unwritten is not None:
            raise self._unwritten

    async def cancel(self) -> None:
        """Cancel pending judgments; the observations are stored and are judged when the run is resumed."""
        await self._waiting.cancel()
        await self._consultations.close()

    async def judge_stored(self, stored: StoredRun) -> None:
        """Judge stored observations that the interrupted session did not judge."""
        self.controls.update(stored.controls)

        async def judge(trial: Trial, observation: Observation) -> None:
            observation = await self._add_answers(trial, observation)
            self._record_verdicts(trial, observation, self._bench.judge(trial, observation, stored=True))

        for trial, observation in stored.unjudged:
            await self._waiting.add(judge(trial, observation))
        await self.settle()

    def has_failed(self, trial: Trial, observation: Observation) -> bool:
        """Return whether the trial failed, judged before models have answered: a rule that asks one may fail."""
        if trial.kind == "control":
            return bool(observation.error)  # controls are not judged
        if self._consultations.select_rules(self._plan.get_rules(trial), observation):
            return True
        observation = make_storable(observation)  # the form in which it will be stored
        return has_failed(observation, self._bench.judge(trial, observation))

    def report_fault(self, trial: Trial, fault: FaultMet) -> None:
        if self._listen is not None:
            self._listen(events.FaultFired(trial, self.masker.mask_struct(make_storable(fault))))

    def record_event(self, trial: Trial, event: TraceEvent) -> None:
        """Store a call of a running trial as it happens."""
        masked = self.masker.mask_struct(event)
        try:
            self.record.write_event(trial.id, masked)
        except UnicodeEncodeError:
            masked = make_storable(masked)
            self.record.write_event(trial.id, masked, changed=True)
        if self._listen is not None:
            self._listen(events.CallSeen(trial, masked))

    def _record_verdicts(self, trial: Trial, observation: Observation, verdicts: list[Verdict]) -> None:
        # The order matters after kill -9: the observation is on disk, then the verdicts, then the score and the events.
        # Verdicts are written in batches, because a lost batch is judged again from the stored observations. Masked
        # answers are the exception: the text on disk is not the text that was judged, so they are written now.
        masked = self._masked and trial.id in self._masked
        if masked:
            self._masked.discard(trial.id)
            verdicts = [replace(one, marks=()) for one in verdicts]  # marks point into the unmasked text
        if self.record.queue_verdicts(verdicts):
            asyncio.get_running_loop().call_soon(self._flush)
        if masked:  # it could not be judged again from the masked text on disk
            self.record.flush()
        if self.judged is not None:
            from holdfast.hunt.judged_trial import build_judged_trial  # only planners that ask for it need it

            self.judged[trial.id] = build_judged_trial(self.masker.mask_observation(observation), verdicts)
        decided = self.tally.add_trial(trial, observation, verdicts)
        if self.kept.wanted:
            self.kept.decide(observation, verdicts)
        if self._listen is not None:
            for verdict in verdicts:
                self._listen(events.VerdictGiven(trial, verdict))
            for position in decided:
                self._listen(events.CellDecided(self.tally.build_cell(position)))

    def take_judged(self, batch: Sequence[Trial]) -> tuple[JudgedTrial, ...]:
        """Return the judged trials of a batch in the batch's order, because the order of endings is random."""
        judged = self.judged
        if judged is None:
            return ()
        return tuple([judged.pop(trial.id) for trial in batch if trial.id in judged])

    def _flush(self) -> None:
        """Write as soon as the loop is idle, so no verdict waits for slow trials."""
        try:
            self.record.flush()
        except OSError as full:
            self._unwritten = full


def _is_short(observation: Observation) -> bool:
    """Return whether every check can read the answers quickly."""
    for turn in observation.turns:  # noqa: SIM110  # it sees every trial: a generator takes twice as long
        if turn.text is not None and len(turn.text) > LONG:
            return False
    return True
