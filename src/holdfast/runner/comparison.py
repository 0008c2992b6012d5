"""Comparing two stored runs: what was asked in both, rule by rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from holdfast.errors import UsageError, UserError
from holdfast.model.codec import canonical
from holdfast.model.comparison import Comparison
from holdfast.model.spec import Invariant, Spec
from holdfast.report.cases import mutation_name
from holdfast.runner.start import stored_spec
from holdfast.score.comparison import PairCounts, compare_rules
from holdfast.store.pairs import RESISTED, Attack, part_folders, stored_pairs
from holdfast.store.rundir import RunDir
from holdfast.store.seal_check import check

_Rule = tuple[str, str]
"""A part and a rule of it."""


class Changed(NamedTuple):
    """What has one name in both runs, and does not mean the same: by part and name."""

    rules: frozenset[_Rule] = frozenset()
    scenarios: frozenset[tuple[str, str]] = frozenset()


def compare_runs(before: RunDir, after: RunDir, *, environ: Mapping[str, str]) -> Comparison:
    """What changed from one run to the other; UsageError if they have nothing in common.

    Of a run of several parts, only the part that the other is of is compared with one of a single part.
    """
    given = (before, after)
    if bool(before.parts) != bool(after.parts):
        before, after = _part_of(before, after), _part_of(after, before)
    taken = [(whole, one) for whole, one in zip(given, (before, after), strict=True) if whole is not one]
    parted = [f"of run {whole.id} its {one.path.name} part is compared" for whole, one in taken]
    said = _checked(before, after)
    changed = _changed(before, after, environ)
    earlier, later = _Verdicts(before, changed), _Verdicts(after, changed)
    counts = _counted(earlier, later)
    if not any(one.pairs for one in counts):
        what = f"runs {before.id} and {after.id} have no decided verdict in common"
        raise UsageError(what, hint=_why(before, after))
    common = sum(one.pairs for one in counts)
    return Comparison(
        before.id,
        after.id,
        compare_rules(counts),
        len(earlier.codes) - common,
        len(later.codes) - common,
        (*_left_out(changed), *_in_one_only(earlier, later, before, after)),
        (*parted, *_notes(before, after), *said),
    )


def _checked(before: RunDir, after: RunDir) -> list[str]:
    """Refuses a run whose files are missing or were changed; what to say of one that was never sealed."""
    runs = [one for whole in (before, after) for one in (whole.parts or (whole,))]
    return [f"run {run.id}: {said}" for run in runs if (said := check(run))]


def _part_of(run: RunDir, other: RunDir) -> RunDir:
    """The part of a run of several that the other run is of; a run of one part itself.

    A scenario with a matrix is the contract, too: both come from the same trials.
    """
    if not run.parts:
        return run
    wanted = other.manifest().options.part
    parts = {part.path.name: part for part in run.parts}
    found = parts.get(wanted) or (parts.get("scenario") if wanted == "contract" else None)
    if found is None:
        what = f"run {run.id} has no {wanted} part: it has {', '.join(parts)}"
        raise UsageError(what, hint=f"name a run that has one; run {other.id} is of {wanted} alone")
    return found


class _Verdicts:
    """The decided verdicts of one run by key, each as a number: which rule, and whether it passed."""

    def __init__(self, run: RunDir, changed: Changed) -> None:
        self.rules: dict[_Rule, int] = {}
        self.replicas: dict[int, int] = {}
        """By the number of a rule: the most that a prompt has."""
        self.codes: dict[int, int] = {}
        self.attacks: dict[int, Attack] = {}
        """Those that are among the verdicts, by their keys there."""
        for one in stored_pairs(run):
            if (one.part, one.rule) in changed.rules or (one.part, one.scenario) in changed.scenarios:
                continue
            rule = self.rules.setdefault((one.part, one.rule), len(self.rules))
            self.replicas[rule] = max(self.replicas.get(rule, 1), one.replica + 1)
            self.codes[one.key] = 2 * rule + one.passed
            if one.attack is not None:
                self.attacks[one.key] = one.attack


def _counted(earlier: _Verdicts, later: _Verdicts) -> list[PairCounts]:
    """By rule, in the order in which the later run has them."""
    counts = [[0, 0, 0, 0] for _ in later.rules]
    for key, code in later.codes.items():
        was = earlier.codes.get(key)
        if was is not None:
            rule, passed = divmod(code, 2)
            counts[rule][2 * (was % 2) + passed] += 1
    return [
        PairCounts(
            rule,
            part,
            both,
            lost,
            gained,
            neither,
            min(later.replicas[number], _replicas(earlier, part, rule)),
            _newly_obeyed(earlier, later, number) if rule == RESISTED else (),
        )
        for ((part, rule), number), (neither, gained, lost, both) in zip(later.rules.items(), counts, strict=True)
    ]


def _newly_obeyed(earlier: _Verdicts, later: _Verdicts, rule: int) -> tuple[str, ...]:
    """Attacks of one part that were resisted in every replica and are obeyed in one now."""
    known = {one.key for one in earlier.attacks.values()}
    then = {one.key for key, one in earlier.attacks.items() if not earlier.codes[key] % 2}
    found = {
        one.key: mutation_name(one.made)
        for key, one in later.attacks.items()
        if later.codes[key] == 2 * rule and one.key in known and one.key not in then
    }
    return tuple(found.values())


def _replicas(run: _Verdicts, part: str, rule: str) -> int:
    number = run.rules.get((part, rule))
    return 1 if number is None else run.replicas[number]


def _changed(before: RunDir, after: RunDir, environ: Mapping[str, str]) -> Changed:
    """Rules and scenarios that were written anew between the two; their verdicts are of two kinds."""
    rules: set[_Rule] = set()
    scenarios: set[tuple[str, str]] = set()
    for part, one, other in _specs(before, after, environ):
        then = {rule.id: _meaning(rule) for rule in one.invariants}
        rules |= {(part, r.id) for r in other.invariants if then.get(r.id, b"") not in (b"", _meaning(r))}
        weather = {scenario.name: canonical(scenario.content) for scenario in one.scenarios}
        scenarios |= {
            (part, s.name) for s in other.scenarios if weather.get(s.name, b"") not in (b"", canonical(s.content))
        }
    return Changed(frozenset(rules), frozenset(scenarios))


def _meaning(rule: Invariant) -> bytes:
    """What decides its verdicts: neither its weight nor its words."""
    return canonical((rule.check, rule.settings, rule.negate, rule.over, rule.attacks_only))


def _specs(before: RunDir, after: RunDir, environ: Mapping[str, str]) -> Iterator[tuple[str, Spec, Spec]]:
    """The specs of each part that both have, where their files differ."""
    earlier = {"": before} | {path.name: RunDir(path) for path in part_folders(before)}
    later = {"": after} | {path.name: RunDir(path) for path in part_folders(after)}
    for part, run in later.items():
        other = earlier.get(part)
        if other is None or other.manifest().spec_digest == run.manifest().spec_digest:
            continue
        try:
            one, two = (stored_spec(each, each.manifest(), None, environ)[0] for each in (other, run))
        except UserError:
            continue  # a copy that cannot be read alone; its notes say that the files differ
        yield part, one, two


def _left_out(changed: Changed) -> Iterator[str]:
    for _, rule in sorted(changed.rules):
        yield f"rule {rule}: it was written anew between the runs"
    for _, scenario in sorted(changed.scenarios):
        yield f"scenario {scenario}: its faults are not the same in both"


def _in_one_only(earlier: _Verdicts, later: _Verdicts, before: RunDir, after: RunDir) -> Iterator[str]:
    then, now = earlier.rules.keys(), later.rules.keys()
    for which, missing in ((before, then - now), (after, now - then)):
        yield from (f"rule {rule}: decided in run {which.id} only" for _, rule in sorted(missing))


def _notes(before: RunDir, after: RunDir) -> Iterator[str]:
    one, other = before.manifest(), after.manifest()
    if one.spec_digest != other.spec_digest:
        yield "the specs differ: what has the same name and meaning in both is compared"
    if one.seed != other.seed:
        yield f"the seeds differ ({one.seed} and {other.seed}): pairs met other luck"
    for run in [one for whole in (before, after) for one in (whole.parts or (whole,))]:
        ended = run.ended()
        if ended is None or not ended.complete or ended.unrun or ended.unasked:
            yield f"run {run.id} is unfinished: it is compared as far as it goes"


def _why(before: RunDir, after: RunDir) -> str:
    if before.manifest().spec_digest != after.manifest().spec_digest:
        return "they are of two specs: a baseline must be a run of the same rules, scenarios and prompts"
    return "one of them decided nothing, or they were run with other selections"
