"""What happens to an observation: stored before judged, judged before shown."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from itertools import islice

from msgspec.structs import replace

from holdfast.judge import Judge
from holdfast.model import events
from holdfast.model.observation import FaultMet, Observation
from holdfast.model.trace import TraceEvent
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.runner.conditions import Conditions
from holdfast.runner.consultations import Consultations, Waiting
from holdfast.runner.job import Job, Listen
from holdfast.runner.kept import KeptWorlds, went_wrong
from holdfast.score import Tally
from holdfast.spec import secret_values
from holdfast.store.consulted import Consulted
from holdfast.store.mask import Masker
from holdfast.store.record import RunRecord
from holdfast.store.replay import StoredRun
from holdfast.store.rundir import RunDir
from holdfast.store.seals import Seal

BATCH = 64
"""Trials that are written in one go, ahead of their turn."""
TROUBLES = 5
"""Failures of ours that are told one by one."""
LONG = 10_000
"""Characters of an answer that any check reads in a millisecond or so."""
_PATTERNS = {"pattern", "patterns", "schema"}
"""Settings whose cost is the user's to decide."""


class Intake:
    """Takes what was seen, keeps it, judges it, adds it up and tells the listener."""

    def __init__(self, job: Job, run: RunDir, listen: Listen) -> None:
        hidden = (*secret_values(job.spec, job.environ), *job.secrets.values())
        self.masker = Masker(hidden)
        self.tally = Tally(job.spec, job.plan)
        self.controls: dict[str, Observation] = {}
        self.troubled: dict[str, int] = {}
        """What broke on our side or a provider's, and in how many trials."""
        before = run.ended()
        self.conditions = Conditions(before.isolation if before else ())
        self.kept = KeptWorlds(job.options.keep, hidden)
        self._foreseen: dict[str, tuple[Observation, list[Verdict]]] = {}
        """Of trials that are about to end, when something was asked of their worlds."""
        self._tolerant = (job.options.min_score, job.spec.scoring.min_score) != (None, None)
        self._plan = job.plan
        self._spec = job.spec
        self._judge = Judge(job.spec)
        self._consultations = Consultations(job.spec, job.environ, run)
        self._waiting = Waiting()
        agent = job.spec.agent
        self._record = RunRecord(
            run, inline=agent.in_python and agent.isolation == "inline", consults=bool(self._consultations)
        )
        self._listen = listen

    @property
    def violated(self) -> bool:
        """Whether the run is lost already, whatever is still to come: a minimum tolerates what is not critical."""
        return self.tally.lost_critical or (self.tally.lost and not self._tolerant)

    def begun(self, trials: Iterable[Trial]) -> Iterator[Trial]:
        """Trials are on disk before they run, a batch at a time: one write for many."""
        feed = iter(trials)
        while batch := tuple(islice(feed, BATCH)):
            self._record.trials(batch)
            yield from batch

    def keep(self, trial: Trial, seen: Observation) -> None:
        """A control: it is compared with, not judged."""
        self._foreseen.pop(trial.id, None)
        self.controls[trial.id] = seen
        self.kept.judged(seen)
        self.tally.saw(trial, seen)
        self._record.observation(self.masker.observation(seen))

    def store(self, trial: Trial, seen: Observation) -> None:
        """A trial that has ended: on disk before anything else is done with it."""
        shown = self.masker.observation(seen)
        if shown.error and (shown.error in self.troubled or len(self.troubled) < TROUBLES):
            self.troubled[shown.error] = self.troubled.get(shown.error, 0) + 1
        self._record.observation(shown)
        self.conditions.add(shown)
        self._listen(events.TrialEnded(trial, shown))

    async def take(self, trial: Trial, seen: Observation, *, alone: bool = False) -> None:
        """Judges it. What may take long must not hold up the other trials: their clocks run.

        Where a rule asks a model, it is judged when that has spoken; `settle` waits for all of these.
        """
        if self._consultations.wanted(self._plan.rules(trial), seen):
            await self._waiting.add(self._take_heard(trial, seen, alone=alone))
        else:
            await self._take(trial, seen, alone=alone)

    async def _take_heard(self, trial: Trial, seen: Observation, *, alone: bool) -> None:
        await self._take(trial, await self._heard(trial, seen), alone=alone)

    async def _heard(self, trial: Trial, seen: Observation) -> Observation:
        """With what models say of it, which is on disk before anything is judged by it."""
        rules = self._consultations.wanted(self._plan.rules(trial), seen)
        if not rules:
            return seen
        shown = self.masker.observation(seen)
        said = {
            id: self.masker.struct(one) for id, one in (await self._consultations.hear(rules, trial, shown)).items()
        }
        for id, evidence in said.items():
            if not evidence.error:  # a failed call is asked again when the run is judged anew
                self._record.consulted(Consulted(trial.id, id, evidence))
        return replace(seen, evidence={**seen.evidence, **said})

    async def _take(self, trial: Trial, seen: Observation, *, alone: bool) -> None:
        before, verdicts = self._foreseen.pop(trial.id, (None, []))
        if before is not None and _judged_alike(before, seen):
            pass  # they stand
        elif alone or not self._may_take_long(trial, seen):
            verdicts = self._verdicts(self._judge, trial, seen)
        else:
            verdicts = await asyncio.to_thread(self._verdicts, self._judge, trial, seen)
        self._enter(trial, seen, verdicts, masked=bool(self.masker) and self.masker.observation(seen).masked)

    def open(self) -> None:
        """To be called before an agent runs."""
        self._consultations.open()

    async def settle(self) -> None:
        """Every trial that was taken is judged."""
        await self._waiting.finish()

    async def leave(self) -> None:
        """Gives up what is not judged yet; it is stored, and judged when the run is taken up again."""
        await self._waiting.drop()
        await self._consultations.close()

    async def take_up(self, stored: StoredRun) -> None:
        """What a run that was left had seen; some of it may not have been judged before it was killed."""
        self.controls.update(stored.controls)
        judge = Judge(self._spec, stored=True)
        for trial, seen in stored.unjudged:
            await self._waiting.add(self._take_up(judge, trial, seen))
        await self.settle()

    async def _take_up(self, judge: Judge, trial: Trial, seen: Observation) -> None:
        seen = await self._heard(trial, seen)
        self._enter(trial, seen, self._verdicts(judge, trial, seen))

    def went_wrong(self, trial: Trial, seen: Observation) -> bool:
        """Whether something did, as far as it can be told before models have spoken: a rule that asks one may fail."""
        if trial.kind == "control":
            return bool(seen.error)  # it is not judged
        if self._consultations.wanted(self._plan.rules(trial), seen):
            return True
        verdicts = self._verdicts(self._judge, trial, seen)
        self._foreseen[trial.id] = seen, verdicts
        return went_wrong(seen, verdicts)

    def met(self, trial: Trial, fault: FaultMet) -> None:
        self._listen(events.FaultFired(trial, self.masker.struct(fault)))

    def saw(self, trial: Trial, event: TraceEvent) -> None:
        """A call of a trial that is under way: on disk as it happens."""
        self._record.event(trial.id, self.masker.struct(event))

    def seal(self) -> tuple[dict[str, Seal], tuple[str, ...]]:
        """The seals of the run's files, and what to say of them; to be called when no agent is left."""
        try:
            return self._record.seal()
        except OSError as broken:  # a full disk: what is there stays, without a seal
            return {}, (f"the run's files could not be sealed: {broken.strerror}",)

    def close(self) -> None:
        self._record.close()

    def _may_take_long(self, trial: Trial, seen: Observation) -> bool:
        """Rules with a pattern of the user's, and long answers."""
        return any(_PATTERNS & rule.settings.keys() for rule in self._plan.rules(trial)) or any(
            len(turn.text or "") > LONG for turn in seen.turns
        )

    def _verdicts(self, judge: Judge, trial: Trial, seen: Observation) -> list[Verdict]:
        control = self._plan.control_for(trial)
        compared = None if control is None else self.controls.get(control.id)
        return [self.masker.struct(judge.judge(rule, trial, seen, compared)) for rule in self._plan.rules(trial)]

    def _enter(self, trial: Trial, seen: Observation, verdicts: list[Verdict], *, masked: bool = False) -> None:
        self.tally.saw(trial, seen)
        self.tally.cases.add(trial, seen, verdicts)
        self.kept.judged(seen, verdicts)
        for verdict in verdicts:
            if masked:
                verdict = replace(verdict, marks=())  # they point into the text as the agent said it
            self._record.verdict(verdict)
            self._listen(events.VerdictGiven(trial, verdict))
            cell = self.tally.add(trial, seen, verdict)
            if cell is not None:
                self._listen(events.CellDecided(cell))


def _judged_alike(before: Observation, seen: Observation) -> bool:
    """Whether they differ in nothing that a rule reads."""
    return seen == replace(before, notes=seen.notes, at=seen.at, attempts=seen.attempts, duration_ms=seen.duration_ms)
