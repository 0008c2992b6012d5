"""Combines mutations and sessions into one number and a verdict. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from holdfast.model.score import Case, Interval, MutationScore, Score, Share, TypeShare
from holdfast.model.spec import Spec
from holdfast.reading.words import format_plural
from holdfast.score import resilience
from holdfast.score.intervals import PromptSum, compute_score_interval, compute_wilson
from holdfast.score.tally import Tally
from holdfast.score.task_cases import TaskCases

_NOUNS = {"mutation": "mutation", "replay": "session"}


def score_tasks(spec: Spec, cases: Sequence[Case], tally: Tally, options: resilience.ScoreOptions) -> Score:
    """Return the score of a mutation run or a replay: the weighted share of passed cases, and the verdict."""
    noun = _NOUNS[spec.part]
    scored = [case for case in cases if spec.part != "mutation" or case.variation is not None]
    value, best = _compute_value(scored), _compute_value(scored, errors_pass=True)
    least = options.min_score if options.min_score is not None else spec.scoring.min_score
    vacuous = tally.find_vacuous_scenarios(unasked=options.unasked > 0)
    uncounted = tally.cases.find_uncounted_rules() if isinstance(tally.cases, TaskCases) else ()
    reasons = _iter_reasons(spec, cases, uncounted, vacuous, (value, best, least), options, noun)
    decided = [case for case in cases if case.status in ("pass", "fail")]
    return Score(
        **resilience.decide(reasons, (_explain_pass(cases, least, noun),)).fields,
        value=None if value is None else round(value, 2),
        interval=_compute_interval(scored),
        judged=len(decided),
        total=len(cases),
        counts=_count_outcomes(cases),
        trials=tally.trials,
        replicas=spec.replicas,
        critical_failed=tuple(_iter_critical_failures(spec, cases)),
        tolerated=_list_tolerated(cases, value, least),
        vacuous=vacuous,
        flaky=sum(case.flaky for case in cases),
        min_score=least,
        best=None if best is None or not _count_outcomes(cases)["error"] else round(best, 2),
        attacks=tally.attacks.build_result(),
        spent=tally.spending.build_result(),
        mutation=_score_mutations(scored) if spec.part == "mutation" else None,
    )


def _compute_value(cases: Iterable[Case], *, errors_pass: bool = False) -> float | None:
    """Return the weighted share of decided cases that passed, from 0 to 100; None if there are none."""
    passed = total = 0.0
    for case in cases:
        good = case.status == "pass" or (errors_pass and case.status == "error" and not case.unproven_only)
        if good or case.status == "fail":
            total += _get_weight(case)
            passed += _get_weight(case) if good else 0.0
    return 100.0 * passed / total if total else None


def _get_weight(case: Case) -> float:
    return 1.0 if case.variation is None else case.variation.weight


def _count_outcomes(cases: Sequence[Case]) -> dict[str, int]:
    kinds = ["unproven" if case.unproven_only else case.status for case in cases]
    return {kind: kinds.count(kind) for kind in ("pass", "fail", "error", "unproven")}


def _iter_critical_failures(spec: Spec, cases: Iterable[Case]) -> Iterator[str]:
    """Yield `rule in prompt` for each case that a critical rule failed."""
    critical = {rule.id for rule in spec.invariants if rule.critical}
    for case in cases:
        for rule in case.failed if case.status == "fail" else ():
            if rule in critical:
                yield f"{rule} in {_get_case_name(case)}"


def _get_case_name(case: Case) -> str:
    if case.session:
        return case.session
    return case.variation.mutation if case.variation is not None else case.prompt[:60]


def _iter_reasons(
    spec: Spec,
    cases: Sequence[Case],
    uncounted: Sequence[str],
    vacuous: Sequence[str],
    values: tuple[float | None, float | None, float | None],
    options: resilience.ScoreOptions,
    noun: str,
) -> Iterator[resilience.Reason]:
    value, best, least = values
    counts = _count_outcomes(cases)
    yield from resilience.report_interruption(options)
    grave = {rule.id for rule in spec.invariants if rule.critical}
    critical = sum(case.status == "fail" and not grave.isdisjoint(case.failed) for case in cases)
    if critical:
        yield resilience.Reason(
            resilience.VIOLATED, f"a critical rule failed in {format_plural(critical, noun)}", "critical-rule-failed"
        )
    if least is None and not critical:
        for group, what in _split_probes(cases, noun):
            failed = _count_outcomes(group)["fail"]
            if failed:
                yield resilience.Reason(
                    resilience.VIOLATED, f"{failed} of {format_plural(len(group), what)} failed", "cases-failed"
                )
    yield from resilience.report_below_minimum(value, best, least, "score")
    if not options.interrupted:
        yield from resilience.report_harness_errors(counts["error"], noun, options)
        # Probes, and mutations without weight, do not count for the score.
        yield from resilience.report_uncounted(noun, uncounted, counted=value is not None)
        yield from resilience.report_vacuous(vacuous, options)
        yield from resilience.report_strict(counts["unproven"], noun, options)
    yield from resilience.report_left_out(options)


def _list_tolerated(cases: Iterable[Case], value: float | None, least: float | None) -> tuple[str, ...]:
    if least is None or value is None or round(value, 2) < least:
        return ()
    return tuple(_get_case_name(case) for case in cases if case.status == "fail")


def _explain_pass(cases: Sequence[Case], least: float | None, noun: str) -> str:
    tried = [(_count_outcomes(group)["fail"], what) for group, what in _split_probes(cases, noun)]
    failed = " and ".join(format_plural(count, what) for count, what in tried if count)
    if failed and least is not None:
        return f"{failed} failed, none by a critical rule, and the minimum {least:g} is reached"
    return f"every {noun} that was decided passed"


def _split_probes(cases: Sequence[Case], noun: str) -> Iterator[tuple[list[Case], str]]:
    """Yield the cases of the score, then the probes, each with the noun for them."""
    if noun != "mutation":
        yield list(cases), noun
        return
    yield [case for case in cases if case.variation is not None], noun
    yield [case for case in cases if case.variation is None], "probe"


def _compute_interval(cases: Sequence[Case]) -> Interval | None:
    """Return the interval of the mean over all prompts like these: mutations of one prompt are not independent."""
    by: dict[str, list[Case]] = {}
    for case in cases:
        if case.status in ("pass", "fail"):
            by.setdefault(case.session or (case.variation.source if case.variation else case.prompt), []).append(case)
    return compute_score_interval([_sum_prompt(group) for group in by.values()])


def _sum_prompt(cases: Sequence[Case]) -> PromptSum:
    weights = [(_get_weight(case), case.status == "pass") for case in cases]
    return PromptSum(
        sum(w for w, passed in weights if passed), sum(w for w, _ in weights), sum(w * w for w, _ in weights)
    )


def _score_mutations(cases: Sequence[Case]) -> MutationScore:
    value = _compute_value(cases)
    intent = [case for case in cases if case.variation is not None and not case.variation.attack]
    attacks = [case for case in cases if case.variation is not None and case.variation.attack]
    robustness = None if value is None else round(value / 100.0, 4)
    return MutationScore(robustness, _compute_share(intent), _compute_share(attacks), tuple(_score_types(cases)))


def _compute_share(cases: Iterable[Case]) -> Share:
    decided = [case.status == "pass" for case in cases if case.status in ("pass", "fail")]
    if not decided:
        return Share(0, 0)
    return Share(sum(decided), len(decided), sum(decided) / len(decided), compute_wilson(sum(decided), len(decided)))


def _score_types(cases: Sequence[Case]) -> Iterator[TypeShare]:
    by: dict[str, list[Case]] = {}
    for case in cases:
        if case.variation is not None:
            by.setdefault(case.variation.mutation, []).append(case)
    for name, group in by.items():
        made = group[0].variation
        assert made is not None
        share = _compute_share(group)
        undecided = len(group) - share.judged
        yield TypeShare(name, made.attack, made.weight, share.passed, share.judged, undecided)
