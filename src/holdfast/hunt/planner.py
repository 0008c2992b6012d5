"""The planner of a hunt: calm trials first, then rounds of invented scenarios until the search has no more questions.

It is pure. A hunt that is resumed makes the same planner and shows it the stored trials again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from msgspec import Struct

from holdfast.hunt.evidence import STEP_FAILS, STEP_RUNS
from holdfast.hunt.outcomes import Failure, Plan, PlanOutcome
from holdfast.hunt.points import CALM_AGAIN, HuntSite, Points, list_boundaries
from holdfast.hunt.search import Search, count_runs_for_fixed
from holdfast.hunt.trial_reader import TrialReader, collect_rule_errors, describe_shape
from holdfast.model.codec import digest, encode_canonical
from holdfast.model.judged import CallSite, JudgedTrial, JudgingProgress
from holdfast.model.scenario import Scenario
from holdfast.model.spec import Spec
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.plan import encode_agent, encode_identity, get_traits
from holdfast.plan.options import HuntOptions
from holdfast.plan.select import Shard
from holdfast.plan.serving import EVERY_RULE
from holdfast.spec.references import format_param

MOST_SITES = 40
"""Call sites of one prompt whose points are tried; the points of further ones stay open."""
MOST_BREAKS = 3
"""Trials of a plan that end in a harness error before the plan is given up: what it would show stays open."""
BROKEN_ROUNDS = 3
"""After this many consecutive rounds of harness errors, a calm trial is run. If it breaks, too, the hunt ends."""
LATER_CALLS = 2
"""How many calls more than in calm a target may have, for the further ones to be sites: an agent that retries for ever
does not fill the plan."""


class Tried(Struct, frozen=True):
    """One trial of a plan, and what came of it."""

    trial: str
    outcome: PlanOutcome
    reasons: dict[str, str] = {}


class CalmGroup(NamedTuple):
    """A task with its params, and its calm trials."""

    task: Task
    params: dict[str, Any]
    trials: list[JudgedTrial]


class TaskHunt:
    """The hunt on one task with its params: its points, its search, and what was tried."""

    def __init__(self, calm: CalmGroup, points: Points, search: Search, left_out: int = 0) -> None:
        self.task = calm.task
        self.params = calm.params
        self.calm = calm.trials
        self.points = points
        self.search = search
        self.tried: list[Tried] = []
        self.left_out = left_out
        """Points of call sites beyond the limit."""
        self.ordinals = Counter[tuple[str, str]]()
        """By plane and target: calls of a calm trial."""
        self.plans: list[Plan] = []
        """Of the round that is under way."""
        self.repeats = Counter[Plan]()
        self.breaks = Counter[Plan]()
        """Trials with a harness error."""
        self.known: dict[Plan, str] = {}
        """The causes of earlier hunts, with their names."""

    def ask(self, outcomes: Sequence[PlanOutcome]) -> list[Plan]:
        """Return the next plans of the search. It counts a plan that was given up as tried without a result."""
        plans = self.search.next(outcomes)
        while given_up := [plan for plan in plans if self.breaks[plan] >= MOST_BREAKS]:
            plans = self.search.next([self.search.trials.build_broken(plan) for plan in given_up])
        return plans

    def find_runs(self, plan: Plan) -> list[PlanOutcome]:
        """Return the outcomes of the trials of exactly this plan."""
        return [one.outcome for one in self.tried if one.outcome.plan == plan]


class HuntPlanner:
    """Calm first; then the task with the most call sites, then the others for what is new in them."""

    detailed = True

    def __init__(
        self,
        spec: Spec,
        calm: Sequence[Trial],
        options: HuntOptions,
        *,
        named: Sequence[str] = (),
        shard: Shard | None = None,
        joined: Iterable[tuple[Trial, JudgedTrial]] = (),
    ) -> None:
        """`calm`: the trials that every hunt begins with; `named`: rules that are hunted for by name; `joined`: the
        trials of the shards from which the hunt was merged, known before its first round.
        """
        self.shard = shard
        self._joined = list(joined)
        self._goal = Failure(*options.failure)
        """Of a shrink: the failure to look for."""
        self._spec = spec
        self._calm = {trial.id: trial for trial in calm}
        self.options = options
        self.reader = TrialReader(spec, named)
        self._agent = encode_agent(spec.agent)
        self._begun = False
        severe = [rule for rule in spec.invariants if rule.critical or rule.severity == "high"]
        self._severe = [name for rule in severe for _, name in get_traits(rule).tools]
        self.hunts: list[TaskHunt] = []
        self._waiting: dict[str, Trial] = {}
        """By id: the trials of the round that is under way."""
        self.calm: list[JudgedTrial] = []
        self.noisy = False
        self.unstable: tuple[CallSite, ...] = ()
        """Call sites that only some of the calm trials of one task reached."""
        self.done = False
        """There is nothing left to try."""
        self.broken = False
        """Holdfast or a provider failed in every trial of several rounds in a row, or no rule could be judged."""
        self._broken_rounds = 0
        self.rule_errors = Counter[str]()
        """By rule: trials in which its check ended in an error."""

    def next(self, judged: JudgingProgress) -> Sequence[Trial]:
        if not self._begun:
            self._begun = True
            return tuple(self._calm.values())
        if not self.calm:
            self.calm = list(judged.trials)
            if self.broken_in_calm or (self.failing_in_calm and self.options.purpose != "map"):
                self.done = True
                return ()
            self._start()
            if self.options.purpose == "map":
                self.done = True
                return ()
            return self._plan_round(())
        return self._plan_round(judged.trials)

    # -- calm ---------------------------------------------------------------------------------------------------------
    @property
    def failing_in_calm(self) -> tuple[tuple[str, JudgedTrial], ...]:
        """Rules that fail in most calm trials of a task, each with such a trial."""
        failing = []
        for group in self._group_calm():
            for rule in self._spec.invariants:
                failed = [one for one in group.trials if _has_failed(one, rule.id)]
                if len(failed) * 2 > len(group.trials):
                    failing.append((rule.id, failed[0]))
        return tuple(failing)

    @property
    def broken_in_calm(self) -> bool:
        """Whether Holdfast could not observe a calm trial."""
        return any(one.error for one in self.calm) or len(self.calm) < len(self._calm)

    @property
    def calm_total(self) -> int:
        """How many trials the hunt begins with."""
        return len(self._calm)

    def _group_calm(self) -> list[CalmGroup]:
        groups: dict[tuple[Task, bytes], CalmGroup] = {}
        for one in self.calm:
            trial = self._calm[one.trial]
            key = trial.task, encode_canonical(trial.params)
            groups.setdefault(key, CalmGroup(trial.task, trial.params, [])).trials.append(one)
        return list(groups.values())

    def choose_calm_trials(self) -> list[tuple[str, JudgedTrial]]:
        """Return what was asked, with the calm trial that made the most calls."""
        groups = self._group_calm()
        return [(format_question(one.task, one.params), max(one.trials, key=_count_calls)) for one in groups]

    def _start(self) -> None:
        groups = self._group_calm()
        self.noisy = not all(one.scripted for one in self.calm) or any(
            len({describe_shape(one) for one in group.trials}) > 1 for group in groups
        )
        self.unstable = tuple(site for group in groups for site in _find_unstable_sites(group.trials))
        if self.options.shrink:
            for form in self.options.shrink:
                calm = [one.trials for one in groups if (one.task, one.params) == (form.task, form.params)]
                self._add_shrink(form.scenario, CalmGroup(form.task, form.params, calm[0] if calm else []))
            return
        known: set[CallSite] = set()
        # The sort is stable, so the order of the file decides a tie.
        for group in sorted(groups, key=lambda group: -max(map(_count_calls, group.trials))):
            self._add_hunt(group, known)
            known |= {call for one in group.trials for call in one.calls}

    def _add_shrink(self, scenario: Scenario, calm: CalmGroup) -> None:
        points = Points(self._spec)
        plan, made = points.build_plan(scenario, with_shorter=True)
        for site in self._merge_sites(calm.trials):
            made += points.add(site)
        rules = {plan: (self._goal.rule,)}
        search = Search(made, noisy=self.noisy, order=0, known=rules, only=self._goal)
        self.hunts.append(TaskHunt(calm, points, search))

    def _add_hunt(self, calm: CalmGroup, known: set[CallSite]) -> None:
        options, points = self.options, Points(self._spec, self.options.sweep)
        made, left_out = [], 0
        for site in self._merge_sites(calm.trials):
            if site.call not in known and len(points.sites) < MOST_SITES:
                made += points.add(site)
            elif site.call not in known:
                left_out += len(Points(self._spec, self.options.sweep).add(site))
        earlier, rules = dict[Plan, str](), dict[Plan, tuple[str, ...]]()
        for one in options.known:
            if (one.prompt, one.params) == (calm.task.prompt, calm.params):
                plan, added = points.build_plan(one.scenario)
                made += added
                earlier[plan], rules[plan] = one.scenario.name, one.rules
        shard = (self.shard.number - 1, self.shard.of) if self.shard else (0, 1)
        search = Search(made, noisy=self.noisy, order=options.order, known=rules, shard=shard)
        hunt = TaskHunt(calm, points, search, left_out)
        hunt.known = earlier
        for call in (call for one in calm.trials for call in one.calls):
            hunt.ordinals[call.plane, call.target] = max(hunt.ordinals[call.plane, call.target], call.ordinal)
        self.hunts.append(hunt)

    def _merge_sites(self, trials: Sequence[JudgedTrial]) -> Iterator[HuntSite]:
        """Yield the call sites of calm trials, in the order of the trial with the most; then those of others."""
        longest = max(trials, key=_count_calls, default=None)
        if longest is None:
            return
        for one in (longest, *(other for other in trials if other is not longest)):
            writes = self.reader.list_writes(one)
            last = max(writes, default=len(one.calls))
            feeding = {feed.source for feed in one.feeds if feed.target in writes or feed.kind in ("file", "row")}
            for number, call in enumerate(one.calls):
                severe = any(fnmatchcase(call.target, glob) for glob in self._severe)
                yield HuntSite(call, number in writes or number > last, number in feeding, severe)
        if self._spec.world is not None and self._spec.agent.isolation != "inline":
            yield from (HuntSite(call, write=True) for call in list_boundaries(longest))

    # -- rounds -------------------------------------------------------------------------------------------------------
    def _plan_round(self, trials: Sequence[JudgedTrial]) -> Sequence[Trial]:
        for hunt in self.hunts:
            if hunt.plans or not hunt.tried:
                outcomes = self._collect_outcomes(hunt, trials if hunt.plans else ())
                if self.broken:
                    return ()
                if self._broken_rounds >= BROKEN_ROUNDS:  # is it these faults, or Holdfast and its provider?
                    hunt.plans = [0]
                    return self._build_trials(hunt, hunt.plans)
                if self.noisy:
                    hunt.search.expect_noise()
                hunt.plans = hunt.ask(outcomes)
                self.noisy = hunt.search.trials.noisy
                if self.options.shrink:
                    hunt.plans = self._ask_calm_first(hunt)
                if self.options.only_known:
                    hunt.plans = self._list_known_plans(hunt)
                if hunt.plans:
                    return self._build_trials(hunt, hunt.plans)
            if self.options.shrink and hunt.search.causes:
                break  # a simpler form of the trial fails, too
        is_observed = any(one.outcome.plan for hunt in self.hunts for one in hunt.tried)
        self.broken = not is_observed and any(hunt.breaks for hunt in self.hunts)
        self.done = True
        return ()

    def _ask_calm_first(self, hunt: TaskHunt) -> list[Plan]:
        """Return the next trials of a shrink: none if the rule fails without any fault."""
        if not hunt.search.trials.of_plan.get(0):
            return [0]
        return [] if self.fails_in_calm(hunt) else hunt.plans

    def fails_in_calm(self, hunt: TaskHunt) -> bool:
        """Whether what a failed trial asked breaks the rule without any fault."""
        return hunt.search.trials.has_failed(0, self._goal)

    def _list_known_plans(self, hunt: TaskHunt) -> list[Plan]:
        """Return the known causes that need more trials: one that failed once may be flaky if the agent is."""
        plans = []
        for plan in hunt.known:
            runs = hunt.find_runs(plan)
            is_unsure = self.noisy and 0 < sum(bool(one.failures) for one in runs) < STEP_FAILS
            wanted = self.options.confirm_live or (STEP_RUNS if is_unsure else count_runs_for_fixed(self.noisy))
            plans += [plan] * (wanted - len(runs) if hunt.breaks[plan] < MOST_BREAKS else 0)
        return plans

    def _collect_outcomes(self, hunt: TaskHunt, trials: Sequence[JudgedTrial]) -> list[PlanOutcome]:
        is_broken = bool(trials) and all(one.error for one in trials)
        self._broken_rounds = self._broken_rounds + 1 if is_broken else 0
        self.broken = self._broken_rounds > BROKEN_ROUNDS and hunt.plans == [0]
        before = any(one.outcome.judged for other in self.hunts for one in other.tried if one.outcome.plan)
        earlier = [] if hunt.tried or self._waiting else [*hunt.calm, *self._list_joined(hunt)]
        outcomes = []
        for one in (*earlier, *trials):
            self._add_late_sites(hunt, one)
            trial = self._waiting.get(one.trial)
            if one.error:
                hunt.breaks[hunt.points.build_plan(trial.scenario)[0] if trial else 0] += 1
                continue
            outcome = self.reader.read_outcome(hunt.points, trial.scenario if trial else CALM_AGAIN, one)
            hunt.tried.append(Tried(one.trial, outcome, one.reasons))
            outcomes.append(outcome)
            self.rule_errors.update(collect_rule_errors(one))
        self.broken |= bool(trials) and not is_broken and not before and all(map(_is_broken, trials))
        self._waiting = {}
        return outcomes

    def _list_joined(self, hunt: TaskHunt) -> list[JudgedTrial]:
        """Return the trials of all shards of a merged hunt on this task, as if one round had run them."""
        calm = {one.trial for one in self.calm}
        asked = hunt.task, hunt.params
        joined = [pair for pair in self._joined if (pair[0].task, pair[0].params) == asked and pair[0].id not in calm]
        for trial, _ in joined:
            plan, added = hunt.points.build_plan(trial.scenario)
            hunt.search.add_points(added)
            hunt.repeats[plan] = max(hunt.repeats[plan], trial.replica + 1)
            self._waiting[trial.id] = trial
        return [one for _, one in joined]

    def _add_late_sites(self, hunt: TaskHunt, one: JudgedTrial) -> None:
        """Add sites that only a fault brings about: retries and fallbacks."""
        if self.options.shrink or self.options.only_known:
            return
        for call in one.calls:
            usual = hunt.ordinals[call.plane, call.target]
            if call.ordinal <= usual + LATER_CALLS and len(hunt.points.sites) < MOST_SITES:
                added = hunt.points.add(HuntSite(call))
                if added:
                    hunt.search.add_points(added)

    def _build_trials(self, hunt: TaskHunt, plans: Iterable[Plan]) -> Sequence[Trial]:
        trials = []
        for plan in plans:
            trial = self._build_trial(hunt, hunt.points.build_scenario(plan), hunt.repeats[plan])
            hunt.repeats[plan] += 1
            self._waiting[trial.id] = trial
            trials.append(trial)
        return trials

    def _build_trial(self, hunt: TaskHunt, scenario: Scenario, replica: int) -> Trial:
        task, params, seed = hunt.task, hunt.params, self._spec.seed
        id = digest(encode_identity("contract", scenario, task, params, replica, EVERY_RULE, self._agent, seed))
        return Trial(id, "contract", scenario, task, replica, params, EVERY_RULE, seed)


def format_question(task: Task, params: Mapping[str, Any]) -> str:
    """`Pay for room 118. [lang=en]`."""
    params_text = ", ".join(f"{name}={format_param(value)}" for name, value in params.items())
    return f"{task.prompt} [{params_text}]" if params_text else task.prompt


def _count_calls(one: JudgedTrial) -> int:
    return len(one.calls)


def _has_failed(one: JudgedTrial, rule: str) -> bool:
    return any(verdict.rule == rule and verdict.outcome == "fail" for verdict in one.verdicts)


def _find_unstable_sites(trials: Sequence[JudgedTrial]) -> list[CallSite]:
    counts = Counter(call for one in trials for call in one.calls)
    return sorted(
        (call for call, count in counts.items() if count < len(trials)),
        key=lambda one: (one.plane, one.target, one.ordinal),
    )


def _is_broken(one: JudgedTrial) -> bool:
    """Whether Holdfast, a provider or the checks failed, so that no rule was judged."""
    judged = any(verdict.outcome in ("pass", "fail") for verdict in one.verdicts)
    return one.error or (bool(collect_rule_errors(one)) and not judged)
