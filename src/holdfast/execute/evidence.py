"""The evidence of a trial: what its checks record while its world is alive, and what it did that is forbidden."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from holdfast.errors import HarnessError, HoldfastError, place_of
from holdfast.model.observation import Answer, ForbiddenResult, Observation
from holdfast.model.scenario import Scenario
from holdfast.model.spec import Invariant, Spec
from holdfast.model.trial import Trial
from holdfast.model.when import applies
from holdfast.model.world import Evidence
from holdfast.plan.checks import make_check
from holdfast.plan.params import with_params
from holdfast.planes.describe import said
from holdfast.protocols.check import Check, ForeseeingCheck, GatheringCheck, check_traits
from holdfast.protocols.trial import WorldFindings
from holdfast.protocols.world import World
from holdfast.world.boxed_world import BoxedWorld
from holdfast.world.forbidden import forbidden


def checks_of(spec: Spec, trial: Trial, scenario: Scenario) -> Iterator[tuple[str, Check]]:
    """The checks that the trial serves, by rule."""
    own = frozenset(spec.cell_rules)
    for rule in spec.invariants if trial.kind != "control" else ():
        shared = trial.invariant == "*" and rule.id not in own and not rule.probes
        if (shared or trial.invariant == rule.id) and applies(rule.when, scenario):
            yield rule.id, make_check(_filled(rule, trial))


async def foresee(world: World, checks: Mapping[str, Check]) -> None:
    """HarnessError if a rule could never be judged: told before the agent starts."""
    for rule, check in checks.items():
        if isinstance(check, ForeseeingCheck):
            try:
                await check.foresee(world)
            except HoldfastError as broken:
                raise HarnessError(f"{rule} could never be judged: {broken}") from broken


def programs_of(spec: Spec, trial: Trial, checks: Mapping[str, Check]) -> tuple[str, ...]:
    """The programs that the trial's checks run; of a control trial, which serves no rule, those of every rule."""
    every = [make_check(_filled(rule, trial)) for rule in spec.invariants] if trial.kind == "control" else ()
    asked = every or checks.values()
    return tuple(sorted({name for check in asked for name in check_traits(check).programs}))


async def found_in(
    world: BoxedWorld,
    answer: Answer,
    checks: Mapping[str, Check],
    secrets: Mapping[str, str],
    missing_programs: tuple[str, ...] = (),
) -> WorldFindings:
    """What the agent left, as every check wants it recorded."""
    seen = Observation(
        world.trial.id,
        turns=answer.turns,
        output=answer.output,
        trace=tuple(world.context.traced()),
        audit=tuple(world.audit()),
        missing_programs=missing_programs,
    )
    evidence = await gathered(checks, world, seen)
    broken = _forbidden(world, seen, secrets)
    return WorldFindings(evidence, seen.audit, world.isolation, broken, missing_programs)


async def gathered(checks: Mapping[str, Check], world: World, seen: Observation) -> dict[str, Evidence]:
    """What every check records, by rule; those that run programs inside come last."""
    last = sorted(checks.items(), key=lambda one: check_traits(one[1]).runs_inside)
    return {rule: await _gathered(check, world, seen) for rule, check in last if isinstance(check, GatheringCheck)}


def _forbidden(world: BoxedWorld, seen: Observation, secrets: Mapping[str, str]) -> tuple[ForbiddenResult, ...]:
    rules = world.spec.forbidden
    if not rules.rules:
        return ()
    if rules.http_except is not None:  # a service may be reached by other names
        led = world.spec.network.dns_overrides.items()
        also = tuple(host for host, service in led if service in rules.http_except)
        rules = replace(rules, http_except=(*rules.http_except, *also))
    answers = "\n".join(turn.text or "" for turn in seen.turns)
    overheard = "\n".join(secrets[name] for name in sorted(world.overheard.names))
    printed = {"its answer": answers, "its output": f"{seen.output}\n{overheard}"}
    found = forbidden(rules, seen.audit, printed, secrets, world.unseen)
    beside = world.context.side_calls
    return tuple([_with_side_calls(one, beside) for one in found]) if beside else found


def _with_side_calls(result: ForbiddenResult, beside: str) -> ForbiddenResult:
    """What was tried beside the work reached nobody, and is no violation; it stands there all the same."""
    if result.rule != "http_except" or result.error:
        return result
    return replace(result, details=(*result.details, f"{beside}: not counted"))


def _filled(rule: Invariant, trial: Trial) -> Invariant:
    return with_params(rule, trial.params) if trial.params else rule


async def _gathered(check: GatheringCheck, world: World, seen: Observation) -> Evidence:
    """What a check records; where it cannot, why: an error of that rule alone."""
    try:
        return await check.gather(world, seen)
    except Exception as broken:  # a bug of ours or of a plug-in is one rule's error, not the trial's
        return Evidence(error=str(broken) if isinstance(broken, HoldfastError) else said(broken) + place_of(broken))
