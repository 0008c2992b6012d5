"""Compares two stored runs, rule by rule, on the prompts that both contain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from typing import NamedTuple

from holdfast import plugins
from holdfast.errors import UsageError, UserError
from holdfast.model.codec import create_decoder, encode_canonical
from holdfast.model.score import Score
from holdfast.model.spec import Aggregation, Invariant, Spec
from holdfast.model.task import Variation
from holdfast.model.verdict import Judgement
from holdfast.plan.checks import get_traits
from holdfast.report.cases import format_mutation
from holdfast.runner.start import load_stored_spec
from holdfast.runner.whole import read_overall
from holdfast.score.cell import count_needed, decide_prompt
from holdfast.score.comparison import Comparison, PairCounts, PromptPairs, compare_rules
from holdfast.store.pairs import RESISTED, StoredPair, list_part_folders, read_pairs
from holdfast.store.rundir import RunDir, read_json
from holdfast.store.seal_check import check

_Rule = tuple[str, str]
"""A part and one of its rules."""


class RulePlan(NamedTuple):
    """How to count the pairs of one rule."""

    how: Aggregation = Aggregation()
    exact: bool = False


class PairingPlan(NamedTuple):
    """The rules to compare, and the method, by part and name."""

    rules: Mapping[_Rule, RulePlan] = {}
    changed_rules: frozenset[_Rule] = frozenset()
    """Rules whose name stayed while their meaning changed."""
    changed_scenarios: frozenset[tuple[str, str]] = frozenset()

    def get_rule(self, rule: _Rule) -> RulePlan:
        return self.rules.get(rule, RulePlan())


def compare_runs(before: RunDir, after: RunDir, *, environ: Mapping[str, str]) -> Comparison:
    """Return what changed between two runs; raise UsageError if they have nothing in common.

    If only one run has several parts, only the matching part is compared.
    """
    runs = (before, after)
    for run in runs:
        read_overall(run)
    if bool(before.parts) != bool(after.parts):
        before, after = _get_matching_part(before, after), _get_matching_part(after, before)
    reduced = [(whole, one) for whole, one in zip(runs, (before, after), strict=True) if whole is not one]
    parted = [f"only the {one.path.name} part of run {whole.id} is compared" for whole, one in reduced]
    compared = [*(before.parts or (before,)), *(after.parts or (after,))]
    # A run whose files are missing or changed is rejected; one that was never sealed gets a note.
    unsealed = [f"run {run.id}: {warning}" for run in compared if (warning := check(run))]
    plan = _build_plan(before, after, environ)
    earlier, later = (Outcomes(read_pairs(run), plan) for run in (before, after))
    counts, paired = count_pairs(earlier, later, plan)
    if not paired:
        problem = f"runs {before.id} and {after.id} have no decided prompt in common"
        hint = "one of them decided nothing, or they were run with other selections"
        if before.read_manifest().spec_digest != after.read_manifest().spec_digest:
            hint = "they belong to two specs: a baseline must have the same rules, scenarios and prompts"
        raise UsageError(problem, code="runs-incomparable", hint=hint)
    return Comparison(
        before.id,
        after.id,
        compare_rules(counts),
        earlier.count_uncompared(paired, plan),
        later.count_uncompared(paired, plan),
        (*_describe_changed(plan), *_describe_unmatched(earlier, later, before, after)),
        (*parted, *_build_notes(before, after, compared), *unsealed),
    )


def _get_matching_part(run: RunDir, other: RunDir) -> RunDir:
    """Return the part of a multi-part run that matches the other run; a run of one part is returned as is.

    A scenario with a matrix matches the contract, because both come from the same trials.
    """
    if not run.parts:
        return run
    wanted = other.read_manifest().options.part
    parts = {part.path.name: part for part in run.parts}
    match = parts.get(wanted) or (parts.get("scenario") if wanted == "contract" else None)
    if match is None:
        problem = f"run {run.id} has no {wanted} part: it has {', '.join(parts)}"
        raise UsageError(
            problem, code="runs-incomparable", hint=f"name a run that has one; run {other.id} is of {wanted} alone"
        )
    return match


class _Replicas(NamedTuple):
    """One rule in one scenario on one prompt."""

    rule: _Rule
    prompt: int
    outcomes: dict[int, Judgement]
    """By replica."""

    def combine(self, how: Aggregation, replicas: Collection[int]) -> bool | None:
        """Return whether these replicas pass together; None if undecided."""
        count = Counter(self.outcomes[replica] for replica in replicas)
        n = len(replicas)
        outcome = decide_prompt(count["pass"], count["fail"], count["error"], n, count_needed(how, n))
        return None if outcome in ("error", "unproven") else outcome == "pass"


class Outcomes:
    """The verdicts of one run, by rule, scenario, prompt and replica."""

    def __init__(self, pairs: Iterable[StoredPair], plan: PairingPlan) -> None:
        self.rules: dict[_Rule, None] = {}
        """The rules with a decided verdict, in the order of the run."""
        self.prompts: dict[int, _Replicas] = {}
        self.attacks: dict[int, Variation] = {}
        for one in pairs:
            rule = one.part, one.rule
            if rule in plan.changed_rules or (one.part, one.scenario) in plan.changed_scenarios:
                continue
            if one.outcome in ("pass", "fail"):
                self.rules[rule] = None
            self.prompts.setdefault(one.key, _Replicas(rule, one.prompt, {})).outcomes[one.replica] = one.outcome
            if one.attack is not None:
                self.attacks[one.key] = one.attack

    def count_uncompared(self, paired: Set[int], plan: PairingPlan) -> int:
        """Count the prompts that are decided here but were not compared."""
        rest = (one for key, one in self.prompts.items() if key not in paired)
        return sum(one.combine(plan.get_rule(one.rule).how, one.outcomes) is not None for one in rest)


def count_pairs(earlier: Outcomes, later: Outcomes, plan: PairingPlan) -> tuple[list[PairCounts], set[int]]:
    """Count pairs by rule, in the order of the later run, and return the keys of everything that could be paired.

    Only replicas that both runs have are combined: with more replicas, more prompts would fail.
    """
    by_prompt: dict[_Rule, dict[int, Counter[str]]] = {rule: {} for rule in later.rules}
    paired: set[int] = set()
    for key, now in later.prompts.items():
        then = earlier.prompts.get(key)
        if then is None or now.rule not in by_prompt:
            continue
        # Replicas pair by their number. A prompt with five replicas then and one now is compared on that one: five have
        # more chances to fail than one, which would look like a change of the agent.
        both, how = then.outcomes.keys() & now.outcomes.keys(), plan.get_rule(now.rule).how
        was, is_now = then.combine(how, both), now.combine(how, both)
        if not both or was is None or is_now is None:
            continue
        paired.add(key)
        by_prompt[now.rule].setdefault(now.prompt, Counter())[_PAIRS[was, is_now]] += 1
    return [
        PairCounts(
            rule,
            part,
            [PromptPairs(**counts) for counts in prompts.values()],
            _find_newly_obeyed(earlier, later, part) if rule == RESISTED else (),
            plan.get_rule((part, rule)).exact,
        )
        for (part, rule), prompts in by_prompt.items()
    ], paired


_PAIRS = {(True, True): "both", (True, False): "lost", (False, True): "gained", (False, False): "neither"}


def _find_newly_obeyed(earlier: Outcomes, later: Outcomes, part: str) -> tuple[str, ...]:
    """List the attacks that every replica resisted before and at least one obeys now."""
    obeyed = {
        key: format_mutation(attack)
        for key, attack in later.attacks.items()
        if later.prompts[key].rule[0] == part
        and "fail" in later.prompts[key].outcomes.values()
        and key in earlier.attacks
        and "fail" not in earlier.prompts[key].outcomes.values()
    }
    return tuple(obeyed.values())


def _build_plan(before: RunDir, after: RunDir, environ: Mapping[str, str]) -> PairingPlan:
    """Plan how to count each rule; rules and scenarios whose meaning changed are left out."""
    rules: dict[_Rule, RulePlan] = {}
    changed: set[_Rule] = set()
    scenarios: set[tuple[str, str]] = set()
    earlier = {"": before} | {path.name: RunDir(path) for path in list_part_folders(before)}
    later = {"": after} | {path.name: RunDir(path) for path in list_part_folders(after)}
    for part in [part for part in later if part in earlier]:
        runs = earlier[part], later[part]
        manifests = [run.read_manifest() for run in runs]
        try:
            specs = [load_stored_spec(run, manifests[n], None, environ)[0] for n, run in enumerate(runs)]
        except UserError:
            continue  # a copy of the spec that cannot be read; a note says that the files differ
        (one, two), (old, new) = manifests, specs
        # If both runs are repeatable with the same random seed, only the agent can differ. An unchanged agent with
        # different results is not deterministic.
        has_changed = one.agent_digest != two.agent_digest
        pairs = zip(runs, specs, strict=True)
        fixed = one.seed == two.seed and all(_is_fixed(run, spec if has_changed else None) for run, spec in pairs)
        rules[part, RESISTED] = RulePlan(exact=fixed)
        for rule in new.invariants:
            rules[part, rule.id] = RulePlan(new.get_aggregation(rule), fixed and _is_repeatable(rule))
        if one.spec_digest == two.spec_digest:
            continue
        then = {rule.id: _digest_rule(rule) for rule in old.invariants}
        changed |= {(part, r.id) for r in new.invariants if then.get(r.id, b"") not in (b"", _digest_rule(r))}
        weather = {scenario.name: encode_canonical(scenario.content) for scenario in old.scenarios}
        scenarios |= {
            (part, s.name) for s in new.scenarios if weather.get(s.name, b"") not in (b"", encode_canonical(s.content))
        }
    return PairingPlan(rules, frozenset(changed), frozenset(scenarios))


def _is_repeatable(rule: Invariant) -> bool:
    """Return whether the same answer always gets the same verdict: the rule uses neither the clock nor a model."""
    if plugins.find("checks", rule.check) is None:
        return False
    traits = get_traits(rule)
    return traits.reads != "latency" and not traits.asks_model


def _digest_rule(rule: Invariant) -> bytes:
    """Digest what decides the rule's verdicts; weight and wording do not."""
    return encode_canonical((rule.check, rule.settings, rule.negate, rule.over, rule.attacks_only))


def _is_fixed(run: RunDir, spec: Spec | None) -> bool:
    """Return whether the run is repeatable: every model reply was recorded or scripted, or no model was asked.

    Replicas that disagree nevertheless show that the agent samples.
    """
    recorded = run.read_manifest().options.replay is not None
    path = run.path / "score.json"
    score = read_json(path, create_decoder(Score)) if path.is_file() else None
    if score is None:
        return recorded
    if score.flaky:
        return False
    spent = score.spent
    if recorded or (spent is not None and spent.is_only_scripted):
        return True
    return spec is not None and _is_deterministic(run, spec, score)


_REPETITIONS = 5
"""Repeated cells without a difference that make an agent count as deterministic: a fair coin would agree in 3 %."""


def _is_deterministic(run: RunDir, spec: Spec, score: Score) -> bool:
    """Return whether an agent in Holdfast's own processes asked no model and gave the same answer on every
    repetition.
    """
    spent, ended = score.spent, run.read_end()
    asked_model = spent is not None and (spent.tokens or spent.cost_usd is not None or spent.unpriced)
    if spec.agent.type != "python" or spec.world is not None or asked_model or ended is None:
        return False
    # One repetition of one prompt proves little: an agent that samples agrees with itself half of the time.
    repeated = (score.replicas - 1) * score.judged >= _REPETITIONS
    differs = ended.stateful or any(warning.code == "answers-differ" for warning in ended.warnings)
    return repeated and not differs


def _describe_changed(plan: PairingPlan) -> Iterator[str]:
    for _, rule in sorted(plan.changed_rules):
        yield f"rule {rule}: its definition changed between the runs"
    for _, scenario in sorted(plan.changed_scenarios):
        yield f"scenario {scenario}: its faults are not the same in both"


def _describe_unmatched(earlier: Outcomes, later: Outcomes, before: RunDir, after: RunDir) -> Iterator[str]:
    then, now = earlier.rules.keys(), later.rules.keys()
    for which, missing in ((before, then - now), (after, now - then)):
        yield from (f"rule {rule}: decided in run {which.id} only" for _, rule in sorted(missing))


def _build_notes(before: RunDir, after: RunDir, compared: Iterable[RunDir]) -> Iterator[str]:
    one, other = before.read_manifest(), after.read_manifest()
    if one.spec_digest != other.spec_digest:
        yield "the specs differ: only rules and scenarios that are the same in both are compared"
    if one.seed != other.seed:
        yield f"the seeds differ ({one.seed} and {other.seed}): the two runs drew different faults and mutations"
    for run in compared:
        ended = run.read_end()
        if ended is None or not ended.complete or ended.unrun or ended.unasked:
            yield f"run {run.id} is unfinished: only its finished trials are compared"
