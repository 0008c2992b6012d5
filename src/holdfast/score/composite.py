"""Combines the verdicts of one trial into one number: weights, gates, forbidden rules. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from holdfast.model.observation import ForbiddenResult
from holdfast.model.score import CellCause, Replica
from holdfast.model.spec import SEVERITY_WEIGHTS, Invariant, Scoring
from holdfast.model.trial import Trial
from holdfast.model.verdict import CauseKey, Verdict

GATE_NOT_FULL = "case-gate-not-full"
SLACK = 1e-9
"""Tolerance for rounding errors: 0.1 + 0.2 counts as 0.3."""


UNMET = CellCause("passed, but the fault was never met: nothing is proven", "fault-unmet")
_Causes = list[tuple[str, CauseKey]]
"""Each reason as a sentence and as values."""


def get_weight(rule: Invariant) -> float:
    """Return a rule's weight in the composite: its own, otherwise its severity's."""
    return SEVERITY_WEIGHTS[rule.severity] if rule.weight is None else rule.weight


def score_trial(
    trial: Trial,
    rules: Sequence[Invariant],
    verdicts: Mapping[str, Verdict],
    forbidden: Sequence[ForbiddenResult],
    scoring: Scoring,
) -> Replica:
    """Return the trial's composite and status, and why it is not a pass."""
    unknown = _find_unjudged(rules, verdicts, forbidden)
    if unknown:
        return Replica(trial.id, "error", None, trial.replica, *join_causes(unknown))
    broken = find_forbidden_actions(forbidden)
    closed = [why for rule in rules if (why := _find_closed_gate(rule, verdicts[rule.id], scoring))]
    value = 0.0 if broken or closed else _compute_mean(rules, verdicts)
    reason, causes = (
        join_causes(broken + closed) if broken or closed else _explain_shortfall(value, rules, verdicts, scoring)
    )
    return Replica(trial.id, "fail" if reason else "pass", value, trial.replica, reason, causes)


def join_causes(causes: _Causes) -> tuple[str, tuple[CauseKey, ...]]:
    """Join several reasons into one."""
    return "; ".join(why for why, _ in causes), tuple(cause for _, cause in causes)


def find_forbidden_actions(forbidden: Iterable[ForbiddenResult]) -> _Causes:
    """Return the agent's actions that the spec forbids."""
    done = [one for one in forbidden if one.violated and not one.error]
    return [(f"forbidden: {one.rule} ({'; '.join(one.details)})", CauseKey(one.rule, "case-forbidden")) for one in done]


def find_unknown_actions(forbidden: Iterable[ForbiddenResult]) -> _Causes:
    """Return the forbidden actions that the agent may or may not have done."""
    unknown = [one for one in forbidden if one.error]
    return [(f"forbidden {one.rule}: {one.error}", CauseKey(one.rule, "case-forbidden-unknown")) for one in unknown]


def discount_unproven(
    judged: Replica,
    rules: Sequence[Invariant],
    verdicts: Mapping[str, Verdict],
    unproven: Mapping[str, CellCause],
    scoring: Scoring,
) -> Replica:
    """Return the trial's result if rules that passed without proof score nothing; `unproven` says why, by rule.

    A trial that passes no other way is an error; its composite is the one without these rules.
    """
    if judged.composite is None:
        return judged
    idle = [rule.id for rule in rules if rule.id in unproven and verdicts[rule.id].outcome == "pass"]
    if not idle:
        return judged
    # The composite is computed again with these rules at 0. If the trial then no longer passes, it owed its pass to
    # rules that prove nothing, and the result is an error instead of a failure: nobody has shown that the agent did
    # wrong.
    counted = {**verdicts, **{rule: replace(verdicts[rule], outcome="unproven", score=0.0) for rule in idle}}
    closed = any(_find_closed_gate(rule, counted[rule.id], scoring) for rule in rules)
    value = 0.0 if closed or not judged.composite else _compute_mean(rules, counted)
    short, causes = _explain_shortfall(value, rules, counted, scoring)
    if judged.status == "pass" and (closed or short):
        reason, causes = explain_unproven(idle, unproven)
        return replace(judged, status="error", composite=value, reason=reason, causes=causes)
    if not judged.composite:
        return replace(judged, composite=value)
    return replace(judged, composite=value, reason=short, causes=causes)


def explain_unproven(rules: Iterable[str], reasons: Mapping[str, CellCause]) -> tuple[str, tuple[CauseKey, ...]]:
    """Return the rules grouped by reason, as a sentence and as values."""
    by_reason: dict[str, list[str]] = {}
    for rule in rules:
        by_reason.setdefault(reasons[rule].reason, []).append(rule)
    words = "; ".join(f"{', '.join(some)}: {why}" for why, some in by_reason.items())
    return words, tuple(CauseKey(rule, reasons[rule].code, reasons[rule].key) for rule in rules)


def _find_unjudged(
    rules: Sequence[Invariant], verdicts: Mapping[str, Verdict], forbidden: Sequence[ForbiddenResult]
) -> _Causes:
    """Return why there is no composite; empty if there is one."""
    errors = [(f"{v.invariant}: {v.reason}", v.cause) for v in verdicts.values() if v.outcome == "error"]
    missing = [rule.id for rule in rules if rule.id not in verdicts]
    errors += [(f"{rule} was not judged", CauseKey(rule, "not-run")) for rule in missing]
    return errors + find_unknown_actions(forbidden)


def _find_closed_gate(rule: Invariant, verdict: Verdict, scoring: Scoring) -> tuple[str, CauseKey] | None:
    """Return why a gate forces the composite to 0; None if it does not."""
    if not rule.gate:
        return None
    if scoring.gate_on == "passed":
        if verdict.outcome == "pass":
            return None
        return f"gate {rule.id} did not pass: {verdict.reason}", verdict.cause
    # With `gate_on: score` a gate needs a full score. A script may print `passed: false` with a score of 1.0; such a
    # contradiction closes the gate, because a gate must not open on doubtful evidence.
    scored = _get_score(verdict)
    if verdict.outcome == "fail" and scored >= 1.0 - SLACK:  # a script may contradict itself
        return f"gate {rule.id} failed, although it scored {scored:g}: {verdict.reason}", verdict.cause
    if scored >= 1.0 - SLACK:
        return None
    cause = CauseKey(rule.id, GATE_NOT_FULL) if verdict.outcome == "pass" else verdict.cause
    return f"gate {rule.id} needs 1.0; scored {scored:g}: {verdict.reason}", cause


def _get_score(verdict: Verdict) -> float:
    """Return the score of a verdict; an unproven rule scores nothing."""
    return 0.0 if verdict.outcome == "unproven" else verdict.score


def _compute_mean(rules: Sequence[Invariant], verdicts: Mapping[str, Verdict]) -> float:
    total = sum(get_weight(rule) for rule in rules)
    if not total:  # `when` may leave only rules without weight
        return min(_get_score(verdicts[rule.id]) for rule in rules)
    return sum(get_weight(rule) * _get_score(verdicts[rule.id]) for rule in rules) / total


def _explain_shortfall(
    value: float, rules: Sequence[Invariant], verdicts: Mapping[str, Verdict], scoring: Scoring
) -> tuple[str, tuple[CauseKey, ...]]:
    """Return why a composite is not a pass; empty if it is one."""
    failed = [rule.id for rule in rules if verdicts[rule.id].outcome != "pass"]
    causes = tuple(verdicts[rule].cause for rule in failed)
    if scoring.pass_threshold is None:
        return (f"not passed: {', '.join(failed)}" if failed else ""), causes
    if value >= scoring.pass_threshold - SLACK:
        return "", ()
    failed_rules = f" ({', '.join(failed)})" if failed else ""
    why = f"composite {value:.3f} is below {scoring.pass_threshold:g}{failed_rules}"
    return why, (CauseKey("", "case-score"), *causes)
