"""Shrinks a plan that failed to the smallest set of faults that still fails, and tests it against calm.

Each step is a function of the trials alone. It keeps no state, so a hunt that was killed continues where it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Literal

from msgspec import Struct

from holdfast.hunt.evidence import STEP_RUNS, Trials
from holdfast.hunt.outcomes import Failure, Plan, Point, list_bits

SINGLE = 4
"""How much likelier a cause is a particular single fault than a particular pair."""
AGAIN = 8
"""How much likelier a suspect becomes with each failed trial that it was met in."""
UNLIKELY = 0.1
"""How much less likely a suspect is if faults that look alike held."""
MISSES = 0.3
"""With noise: how often a cause that was met does not fail the trial."""
LARGEST_HALVED = 10
"""Plans with more faults are halved by position: they have too many parts to weigh each."""
PROOF_RUNS = 2
"""Without noise: runs of a minimal plan itself. All of them must fail."""


class ShrinkStep(Struct, frozen=True):
    """The next trials of a shrink, or its result."""

    points: Plan
    """The smallest set that is known to fail."""
    plans: Sequence[Plan] = ()
    """Trials to run next."""
    result: Literal["", "minimal", "flaky"] = ""
    is_large: bool = False
    """Whether the cause has more faults than the hunt looks for."""


def plan_next_step(trials: Trials, points: Plan, failure: Failure, most: int = 2) -> ShrinkStep:
    """Remove faults from a plan until each that is left is necessary; `most`: the faults of a cause to look for."""
    points = _find_smallest_failing(trials, points, failure)
    if trials.noisy and not trials.has_failed(points, failure):
        # One failure may be chance: the plan must fail again before it passes twice.
        failed, runs = trials.count(points, failure)
        return ShrinkStep(points, result="flaky") if runs - failed >= 2 else ShrinkStep(points, [points])
    numbers = list(list_bits(points))
    rests = list_smaller(points)
    open_rests = [rest for rest in rests if not trials.has_passed(rest, failure)]
    if not open_rests:
        return _prove(trials, points, rests, failure)
    if suspects := _list_suspects(trials, numbers, failure):
        small = {plan: chance for plan, chance in suspects.items() if plan.bit_count() <= most}
        return ShrinkStep(points, [_choose_half(trials, numbers, small or suspects, failure)], is_large=not small)
    # No pair is left, so the cause is larger: remove one fault at a time.
    return ShrinkStep(points, open_rests[:1], is_large=most < len(numbers))


def list_smaller(points: Plan) -> list[Plan]:
    """Return the plans with one fault less; a single fault has none."""
    return [rest for number in list_bits(points) if (rest := points & ~(1 << number))]


def _find_smallest_failing(trials: Trials, points: Plan, failure: Failure) -> Plan:
    """Return the smallest part of the plan that failed. Only points that were met count."""
    if trials.noisy:
        parts = [plan for plan in trials.of_plan if plan and not plan & ~points and trials.has_failed(plan, failure)]
    else:
        failed = (one.met for one in trials.outcomes if failure in one.failures)
        parts = [met for met in failed if met and not met & ~points]
    return min([points, *parts], key=lambda part: (part.bit_count(), part))


def _prove(trials: Trials, points: Plan, rests: list[Plan], failure: Failure) -> ShrinkStep:
    """Prove that the set fails by itself; with noise, also try every set with one fault less by itself."""
    failed, runs = trials.count(points, failure)
    if not runs:
        return ShrinkStep(points, [points])
    if trials.noisy:
        missing = [plan for plan in rests if plan not in trials.of_plan]
        return ShrinkStep(points, missing) if missing else ShrinkStep(points, result="minimal")
    if failed < runs:
        return ShrinkStep(points, result="flaky")
    confirmed = sum(failure in one.failures and not points & ~one.met for one in trials.outcomes) >= PROOF_RUNS
    return ShrinkStep(points, result="minimal") if confirmed else ShrinkStep(points, [points])


def _list_suspects(trials: Trials, numbers: list[int], failure: Failure) -> dict[Plan, float]:
    """Return the single faults and pairs that may be the cause, and how likely each is."""
    singles = [1 << number for number in numbers]
    small = singles + ([one | other for one, other in combinations(singles, 2)] if len(numbers) > 2 else [])
    failed = [one.met for one in trials.outcomes if failure in one.failures]
    return {
        plan: SINGLE ** (2 - plan.bit_count())
        * AGAIN ** sum(not plan & ~met for met in failed)
        * (MISSES ** trials.count_passes(plan, failure) if trials.noisy else 1)
        * (UNLIKELY if _has_similar_held(trials, plan) else 1)
        for plan in small
        if not trials.has_passed(plan, failure)
    }


def _has_similar_held(trials: Trials, plan: Plan) -> bool:
    """Whether points that look like those of the plan held (together)."""
    first = (plan & -plan).bit_length() - 1
    rest = plan & plan - 1
    similar = trials.similar
    return bool(rest & similar.held_with[first] if rest else trials.held[0] & similar.of[first])


def _choose_half(trials: Trials, numbers: list[int], suspects: dict[Plan, float], failure: Failure) -> Plan:
    """Return the part of a plan that contains the cause with a chance closest to one half.

    Each such trial halves the suspects. Removing one fault at a time would take a trial per fault.
    """
    target = sum(suspects.values()) / 2
    best, distance = 0, float("inf")
    for part in _list_parts(numbers):
        weight = sum(chance for plan, chance in suspects.items() if not plan & ~part)
        if weight and abs(weight - target) < distance - 1e-9 and not _is_settled(trials, part, failure):
            best, distance = part, abs(weight - target)
    return best or max(suspects, key=lambda plan: (suspects[plan], -plan))


def _list_parts(numbers: list[int]) -> Iterable[Plan]:
    if len(numbers) > LARGEST_HALVED:
        middle = len(numbers) // 2
        quarters = (numbers[:middle], numbers[middle:], numbers[::2], numbers[1::2], numbers[:-1], numbers[1:])
        yield from (sum(1 << number for number in part) for part in quarters)
        return
    for size in range(1, len(numbers)):
        for part in combinations(numbers, size):
            yield sum(1 << number for number in part)


def _is_settled(trials: Trials, part: Plan, failure: Failure) -> bool:
    """Whether another trial of the part would say nothing new."""
    if trials.noisy:
        _, runs = trials.count(part, failure)
        return runs >= STEP_RUNS or trials.has_passed(part, failure) or trials.has_failed(part, failure)
    return any(not part & ~one.plan and (part & ~one.met or part == one.plan) for one in trials.outcomes)


def weaken(trials: Trials, points: Plan, failure: Failure, causes: Iterable[Plan]) -> ShrinkStep:
    """Replace each fault by the weakest of its site that still fails; by bisection, because a ladder is in order."""
    changed = True
    while changed:
        changed = False
        for number in list_bits(points):
            rest = points & ~(1 << number)
            point = trials.points[number]
            ladder = trials.ladders[point.site, point.works]
            low, high = 0, ladder.index(number)
            while low < high:
                middle = (low + high) // 2
                plan = rest | 1 << ladder[middle]
                if _has_other_cause(trials, plan, failure, causes) or trials.has_passed(plan, failure):
                    low = middle + 1
                elif not trials.has_failed(plan, failure):
                    return ShrinkStep(points, [plan])
                elif unproven := _find_unproven_part(trials, plan, failure):
                    return ShrinkStep(points, unproven)
                else:
                    high = middle
            if ladder[high] != number:
                points, changed = rest | 1 << ladder[high], True
                break
    return ShrinkStep(points, result="minimal")


def _find_unproven_part(trials: Trials, plan: Plan, failure: Failure) -> list[Plan]:
    """Return a plan with one fault less that was not seen to pass; with noise the final test decides instead."""
    return [] if trials.noisy else [p for p in list_smaller(plan) if not trials.has_passed(p, failure)][:1]


def _has_other_cause(trials: Trials, plan: Plan, failure: Failure, causes: Iterable[Plan]) -> bool:
    """Whether the plan fails because of a part of it: another known cause, or a set of the same classes."""
    alike = [one | other for one, other in zip(trials.classes.of, trials.similar.of, strict=True)]
    smaller_causes = (cause for cause in causes if cause.bit_count() < plan.bit_count())
    contained = any(all(alike[number] & plan for number in list_bits(cause)) for cause in smaller_causes)
    return contained or any(trials.has_failed(part, failure) for part in list_smaller(plan))


def is_stronger(points: Sequence[Point], plan: Plan, cause: Plan) -> bool:
    """Whether the plan has a fault of the same kind at each site of the cause, and it is at least as strong."""
    rungs = {(points[number].site, points[number].works): points[number].rung for number in list_bits(plan)}
    wanted = (points[number] for number in list_bits(cause))
    return all(rungs.get((one.site, one.works), -1) >= one.rung for one in wanted)
