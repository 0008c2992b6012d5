"""What happens to an observation: stored before judged, judged before shown."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec import UNSET
from msgspec.structs import replace

from holdfast.model import events
from holdfast.model.codec import HALVES, carried
from holdfast.model.judged import JudgedTrial
from holdfast.model.observation import FaultMet, Observation
from holdfast.model.trace import TraceEvent
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.runner.bench import Bench
from holdfast.runner.conditions import Conditions
from holdfast.runner.consultations import Consultations, Waiting
from holdfast.runner.job import Job, Listen
from holdfast.runner.kept import KeptWorlds, went_wrong
from holdfast.score import Tally
from holdfast.secrets.masker import Masker
from holdfast.spec import secret_values
from holdfast.store.record import Consulted, RunRecord
from holdfast.store.replay import StoredRun
from holdfast.store.rundir import RunDir

BATCH = 64
"""Trials that are written in one go, ahead of their turn."""
TROUBLES = 5
"""Failures of ours that are told one by one."""
LONG = 10_000
"""Characters of an answer that any check reads in a millisecond or so."""


class Intake:
    """Takes what was seen, keeps it, judges it, adds it up and tells the listener."""

    def __init__(self, job: Job, run: RunDir, listen: Listen, *, each_trial: bool = True) -> None:
        """`each_trial`: the listener hears of single trials, verdicts and cells, too."""
        hidden = (*secret_values(job.spec, job.environ), *job.secrets.values())
        self.masker = Masker(hidden)
        self._masks = bool(self.masker)
        self._masked: set[str] = set()
        """Trials whose answers are not stored as they were given, until they are judged."""
        self.tally = Tally(job.spec, job.plan)
        self.troubled: dict[str, int] = {}
        """What broke on our side or a provider's, and in how many trials."""
        before = run.ended()
        self.conditions = Conditions(before.isolation if before else ())
        self.kept = KeptWorlds(job.options.keep, run, hidden)
        self._foreseen: dict[str, tuple[Observation, list[Verdict]]] = {}
        """Of trials that are about to end, when something was asked of their worlds."""
        self._tolerant = (job.options.min_score, job.spec.scoring.min_score) != (None, None)
        self._spec = job.spec
        self._consultations = Consultations(job.spec, job.environ, run)
        self._bench = Bench(job.spec, job.plan, self._consultations, self.masker)
        self.controls = self._bench.controls
        self._waiting = Waiting()
        agent = job.spec.agent
        self.record = RunRecord(
            run,
            job.spec.scenarios,
            inline=agent.in_python and agent.isolation == "inline",
            consults=bool(self._consultations),
        )
        self.judged: dict[str, JudgedTrial] | None = None
        """By id: what the planner is to learn of trials that were judged; None: it does not ask."""
        self._listen = listen if each_trial else None
        self.started = (lambda trial: listen(events.TrialStarted(trial))) if each_trial else None
        """To be called when a trial begins, where somebody listens."""
        self._unwritten: OSError | None = None
        """Why verdicts could not be written while nobody waited for it."""

    @property
    def violated(self) -> bool:
        """Whether the run is lost already, whatever is still to come: a minimum tolerates what is not critical.

        Where cases decide, other cells do not.
        """
        if self.tally.decides_cases:
            return self.tally.lost_case or (self._spec.matrix and self.tally.lost_critical)
        return self.tally.lost_case or self.tally.lost_critical or (self.tally.lost and not self._tolerant)

    def begun(self, trials: Iterable[Trial]) -> Iterator[Trial]:
        """Trials are on disk before they run, a batch at a time: one write for many."""
        feed = iter(trials)
        while batch := tuple(islice(feed, BATCH)):
            self.record.trials(batch)
            yield from batch

    def keep(self, trial: Trial, seen: Observation) -> None:
        """A control: it is compared with, not judged."""
        self._foreseen.pop(trial.id, None)
        try:
            self.record.observation(self.masker.observation(seen))
        except UnicodeEncodeError:
            seen = _carried(seen)
            self.record.observation(self.masker.observation(seen))
        self.controls[trial.id] = seen
        self.kept.judged(seen)
        self.tally.saw(trial, seen)

    def store(self, trial: Trial, seen: Observation) -> Observation:
        """A trial that has ended: on disk before anything else is done with it. What it is judged by: as it is stored.

        Halves of characters, which no file can hold, are found by the writing itself: nothing looks for them before.
        """
        try:
            shown = self.masker.observation(seen) if self._masks else seen
            self.record.observation(shown)
        except UnicodeEncodeError:
            seen = _carried(seen)
            shown = self.masker.observation(seen)
            self.record.observation(shown)
        if shown.masked:
            self._masked.add(trial.id)
        if shown.error and (shown.error in self.troubled or len(self.troubled) < TROUBLES):
            self.troubled[shown.error] = self.troubled.get(shown.error, 0) + 1
        if shown.isolation:
            self.conditions.add(shown)
        if trial.task.recording is not UNSET:
            self.conditions.replayed(trial.task, shown)
        if self._listen is not None:
            self._listen(events.TrialEnded(trial, shown))
        return seen

    def take_at_once(self, trial: Trial, seen: Observation, *, alone: bool = False) -> bool:
        """Judges it where that takes no time; whether it did. `alone`: no other trial is under way."""
        served = self._bench.serving(trial)
        if served.asks or self._foreseen or not (alone or (not served.slow and _short(seen))):
            return False
        self._enter(trial, seen, self._bench.verdicts(trial, seen))
        return True

    async def take(self, trial: Trial, seen: Observation, *, alone: bool = False) -> None:
        """Judges it. What may take long must not hold up the other trials: their clocks run.

        Where a rule asks a model, it is judged when that has spoken; `settle` waits for all of these.
        """
        rules = self._bench.serving(trial).rules
        work = self._take(trial, seen, alone=alone)
        await (self._waiting.add(work) if self._consultations.wanted(rules, seen) else work)

    async def _heard(self, trial: Trial, seen: Observation) -> Observation:
        """With what models say of it, which is on disk before anything is judged by it."""
        rules = self._consultations.wanted(self._bench.serving(trial).rules, seen)
        if not rules:
            return seen
        shown, control = self.masker.observation(seen), self._bench.compared(trial)
        calm = None if control is None else self.masker.observation(control)
        heard = await self._consultations.hear(rules, trial, shown, calm)
        said = {id: self.masker.struct(one) for id, one in heard.items()}
        for id, evidence in said.items():
            if not evidence.error:  # a failed call is asked again when the run is judged anew
                self.record.consulted(Consulted(trial.id, id, evidence))
        return replace(seen, evidence={**seen.evidence, **said})

    async def _take(self, trial: Trial, seen: Observation, *, alone: bool) -> None:
        seen = await self._heard(trial, seen)
        before, verdicts = self._foreseen.pop(trial.id, (None, []))
        if before is not None and _judged_alike(before, seen):
            pass  # they stand
        elif alone or (not self._bench.serving(trial).slow and _short(seen)):
            verdicts = self._bench.verdicts(trial, seen)
        else:
            verdicts = await asyncio.to_thread(self._bench.verdicts, trial, seen)
        self._enter(trial, seen, verdicts)

    def open(self) -> None:
        """To be called before an agent runs."""
        self._consultations.open()

    async def settle(self) -> None:
        """Every trial that was taken is judged, and its verdicts are written."""
        await self._waiting.finish()
        self.record.flush()
        if self._unwritten is not None:
            raise self._unwritten

    async def leave(self) -> None:
        """Gives up what is not judged yet; it is stored, and judged when the run is taken up again."""
        await self._waiting.drop()
        await self._consultations.close()

    async def take_up(self, stored: StoredRun) -> None:
        """What a run that was left had seen; some of it may not have been judged before it was killed."""
        self.controls.update(stored.controls)
        for trial, seen in stored.unjudged:
            await self._waiting.add(self._take_up(trial, seen))
        await self.settle()

    async def _take_up(self, trial: Trial, seen: Observation) -> None:
        seen = await self._heard(trial, seen)
        self._enter(trial, seen, self._bench.verdicts(trial, seen, stored=True))

    def went_wrong(self, trial: Trial, seen: Observation) -> bool:
        """Whether something did, as far as it can be told before models have spoken: a rule that asks one may fail."""
        if trial.kind == "control":
            return bool(seen.error)  # it is not judged
        if self._consultations.wanted(self._bench.serving(trial).rules, seen):
            return True
        seen = carried(seen)  # as it will be stored
        verdicts = self._bench.verdicts(trial, seen)
        self._foreseen[trial.id] = seen, verdicts
        return went_wrong(seen, verdicts)

    def met(self, trial: Trial, fault: FaultMet) -> None:
        if self._listen is not None:
            self._listen(events.FaultFired(trial, self.masker.struct(carried(fault))))

    def saw(self, trial: Trial, event: TraceEvent) -> None:
        """A call of a trial that is under way: on disk as it happens."""
        masked = self.masker.struct(event)
        try:
            self.record.event(trial.id, masked)
        except UnicodeEncodeError:
            masked = carried(masked)
            self.record.event(trial.id, masked, changed=True)
        if self._listen is not None:
            self._listen(events.CallSeen(trial, masked))

    def _enter(self, trial: Trial, seen: Observation, verdicts: list[Verdict]) -> None:
        masked = self._masked and trial.id in self._masked
        if masked:
            self._masked.discard(trial.id)
            verdicts = [replace(one, marks=()) for one in verdicts]  # they point into the text as the agent said it
        if self.record.hold(verdicts):
            asyncio.get_running_loop().call_soon(self._flush)
        if masked:  # from what is stored it could not be judged again
            self.record.flush()
        if self.judged is not None:
            from holdfast.hunt.sites import judged_trial  # only planners that ask for it need it

            self.judged[trial.id] = judged_trial(self.masker.observation(seen), verdicts)
        decided = self.tally.take(trial, seen, verdicts)
        if self.kept.wanted:
            self.kept.judged(seen, verdicts)
        if self._listen is not None:
            for verdict in verdicts:
                self._listen(events.VerdictGiven(trial, verdict))
            for position in decided:
                self._listen(events.CellDecided(self.tally.cell(position)))

    def judged_of(self, batch: Sequence[Trial]) -> tuple[JudgedTrial, ...]:
        """What the planner learns of a batch, in the batch's order: the order in which trials end is not repeatable."""
        judged = self.judged
        if judged is None:
            return ()
        return tuple([judged.pop(trial.id) for trial in batch if trial.id in judged])

    def _flush(self) -> None:
        """As soon as the loop has a moment: trials that wait for something leave no verdict waiting."""
        try:
            self.record.flush()
        except OSError as full:
            self._unwritten = full


def _carried(seen: Observation) -> Observation:
    """What was seen, with text that can be stored, and a note of that."""
    return carried(replace(seen, notes=tuple(dict.fromkeys((*seen.notes, HALVES)))))


def _short(seen: Observation) -> bool:
    """Whether any check reads the answers in no time."""
    for turn in seen.turns:  # noqa: SIM110  # it sees every trial: a generator takes twice as long
        if turn.text is not None and len(turn.text) > LONG:
            return False
    return True


def _judged_alike(before: Observation, seen: Observation) -> bool:
    """Whether they differ in nothing that a rule reads."""
    return seen == replace(before, notes=seen.notes, at=seen.at, attempts=seen.attempts, duration_ms=seen.duration_ms)
