"""The resilience of a contract: its cells as one number with an interval, and the verdict with its reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import fsum
from typing import Any, NamedTuple

from msgspec import Struct

from holdfast.model.score import Cell, Interval, Score
from holdfast.model.verdict import OUTCOMES
from holdfast.reading.words import format_plural
from holdfast.score import intervals
from holdfast.score.cell import Tries
from holdfast.score.summary import Summary
from holdfast.score.tally import Tally
from holdfast.spec.references import format_param

HELD, VIOLATED, INTERRUPTED, BROKEN, UNPROVEN = 0, 1, 2, 3, 5


class Reason(NamedTuple):
    """A reason for the verdict: its exit code, a sentence for people, and a code of `verdicts` in `codes.toml`."""

    exit_code: int
    text: str
    code: str


PRECEDENCE = (INTERRUPTED, VIOLATED, BROKEN, UNPROVEN, HELD)
"""Exit codes in order of precedence."""


class ScoreOptions(Struct, frozen=True):
    """The caller's options for a score."""

    min_score: float | None = None
    """0 to 100; None: the spec's."""
    strict: bool = False
    """Any unproven cell gives exit code 5."""
    allow_vacuous: bool = False
    max_errors: int = 0
    interrupted: bool = False
    unrun: int = 0
    """Trials that fail-fast left out: they may have failed."""
    unasked: int = 0
    """Trials that a budget left out: their cells are unproven, and the rest decides."""
    planned: int = 0
    """All trials of the plan, including these."""
    shard: str = ""
    """`2/4`: what was left out belongs to another shard."""


class Ruling(NamedTuple):
    """A verdict with its exit code; the reasons are in order of importance."""

    exit_code: int
    reasons: tuple[str, ...]
    reason_codes: tuple[str, ...]

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of a Score that it decides."""
        return {"passed": self.exit_code == HELD, **self._asdict()}


def decide(reasons: Iterable[Reason], held: Sequence[str]) -> Ruling:
    """Return the verdict that these reasons add up to; `held` says why it is a pass if there are none."""
    # The sort is stable: the first reason of the highest precedence decides the exit code and is named first.
    ordered = sorted(reasons, key=lambda one: PRECEDENCE.index(one.exit_code))
    texts, codes = tuple(one.text for one in ordered), tuple(one.code for one in ordered)
    return Ruling(ordered[0].exit_code if ordered else HELD, texts or tuple(held), codes)


def _iter_cell_reasons(
    summary: Summary, vacuous: Sequence[str], least: float | None, options: ScoreOptions
) -> Iterator[Reason]:
    """Yield the reasons that decide a contract, even if cases have the verdict: not those of ordinary cells."""
    if summary.critical:
        text = (
            f"{format_plural(len(summary.critical), 'critical cell')} failed{_note_outside(summary.critical, summary)}"
        )
        yield Reason(VIOLATED, text, "critical-cells-failed")
    yield from report_harness_errors(summary.errors, "cell", options)
    if summary.all.score is not None:
        yield from report_below_minimum(summary.all.score, summary.all.best, least, "score")
    yield from report_uncounted("cell", summary.uncounted, counted=summary.count("pass", "fail") > 0)
    yield from report_vacuous(vacuous, options)
    yield from report_strict(summary.count("unproven"), "cell", options)


def report_interruption(options: ScoreOptions) -> Iterator[Reason]:
    """Yield the reason that the run was interrupted."""
    if options.interrupted:
        yield Reason(INTERRUPTED, "the run was interrupted", "interrupted")


def report_left_out(options: ScoreOptions) -> Iterator[Reason]:
    """Yield the reason that trials were left out: they may have failed."""
    if options.unrun:
        were = "was" if options.unrun == 1 else "were"
        text = f"{options.unrun} of {format_plural(options.planned, 'trial')} {were} not run"
        yield Reason(UNPROVEN, text, "trials-not-run")


def report_harness_errors(count: int, noun: str, options: ScoreOptions) -> Iterator[Reason]:
    """Yield the reason that more harness errors happened than are allowed."""
    if count > options.max_errors:
        text = f"{format_plural(count, noun)} could not be judged: harness error"
        yield Reason(BROKEN, text, "harness-errors")


def report_uncounted(noun: str, rules: Iterable[str], *, counted: bool) -> Iterator[Reason]:
    """Yield the reasons that nothing counted, or nothing that a critical rule judges."""
    if not counted:
        yield Reason(UNPROVEN, f"no {noun} counted", "nothing-counted")
    for name in rules if counted else ():
        yield Reason(UNPROVEN, f"critical rule {name}: none of its {noun}s counted", "critical-rule-uncounted")


def report_strict(unproven: int, noun: str, options: ScoreOptions) -> Iterator[Reason]:
    """Yield the reason that something is unproven although `strict` allows nothing to be."""
    if options.strict and unproven:
        text = f"{format_plural(unproven, noun)} unproven, but none is allowed (strict)"
        yield Reason(UNPROVEN, text, "unproven-strict")


def report_vacuous(scenarios: Iterable[str], options: ScoreOptions) -> Iterator[Reason]:
    """Yield a reason for each scenario in which no fault was met."""
    for name in () if options.allow_vacuous else scenarios:
        yield Reason(UNPROVEN, f"scenario {name} met none of its faults", "vacuous-scenario")


def report_below_minimum(value: float | None, best: float | None, least: float | None, name: str) -> Iterator[Reason]:
    """Yield the reason that the score, as shown with two decimals, is below the minimum.

    `best` is the score if every harness error had passed.

    """
    if least is not None and value is None:
        text = f"there is no {name} to compare with the minimum {least:g}: nothing that counts was decided"
        yield Reason(UNPROVEN, text, "no-score")
    if least is None or value is None or not _is_below(value, least):
        return
    short = f"{name} {value:.2f} is below the minimum {least:g}"
    if best is not None and not _is_below(best, least):
        # Harness errors may be tolerated, but not if they decide the verdict.
        yield Reason(BROKEN, f"{short}, but harness errors may be the reason", "below-minimum")
    else:
        yield Reason(VIOLATED, short, "below-minimum")


def _note_outside(failed: Sequence[Cell], summary: Summary) -> str:
    """Return how many of the failed cells the score does not count: without it, passes and failures do not add up."""
    count = sum(cell.scenario in summary.outside_scenarios for cell in failed)
    return f" ({count} in calm, outside the score)" if count else ""


def _explain_pass(tolerated: int, errors: int, least: float | None, options: ScoreOptions) -> tuple[str, ...]:
    words = []
    if tolerated and least is not None:
        words.append(f"{format_plural(tolerated, 'failed cell')} within the minimum {least:g}")
    if errors:
        words.append(f"{format_plural(errors, 'error cell')} of at most {options.max_errors} allowed")
    return tuple(words) or ("every cell that counted passed",)


def _is_below(score: float | None, least: float) -> bool:
    """Return whether the score is below the minimum, also with the two decimals shown."""
    return score is not None and score < least and round(score, 2) < least


def format_cell_name(cell: Cell) -> str:
    """Return the name of a cell in the verdict: `rule in scenario (region=eu)`."""
    params = f" ({', '.join(f'{k}={format_param(v)}' for k, v in cell.params.items())})" if cell.params else ""
    return f"{cell.invariant} in {cell.scenario}{params}"


def score_contract(tally: Tally, options: ScoreOptions) -> tuple[Score, tuple[Reason, ...]]:
    """Return the contract's score with its verdict, and the reasons that still decide when cases have the verdict."""
    summary, replicas = Summary(tally), tally.spec.replicas
    sums = summary.all
    vacuous = tally.find_vacuous_scenarios(unasked=options.unasked > 0)
    least = options.min_score if options.min_score is not None else tally.spec.scoring.min_score
    deciding = tuple(_iter_cell_reasons(summary, vacuous, least, options))
    tolerated = summary.ordinary if least is not None and not _is_below(sums.score, least) else []
    reasons = [*report_interruption(options), *deciding]
    if summary.ordinary and least is None:
        which = format_plural(len(summary.ordinary), "other cell" if summary.critical else "cell")
        text = f"{which} failed{_note_outside(summary.ordinary, summary)}"
        reasons.append(Reason(VIOLATED, text, "cells-failed"))
    reasons += report_left_out(options)
    ruling = decide(reasons, _explain_pass(len(tolerated), summary.count("error"), least, options))
    score = Score(
        **ruling.fields,
        value=_round_score(sums.score),
        interval=_compute_interval(tally, summary),
        calm=_round_score(summary.calm.score),
        chaos=_round_score(summary.sum_weights("chaos").score),
        rules=len(summary.rules),
        paired=summary.comparison.compute_difference() if summary.comparison is not None else None,
        judged=summary.count("pass", "fail"),
        total=summary.count("pass", "fail", "error", "unproven"),
        counts={outcome: summary.count(outcome) for outcome in OUTCOMES},
        trials=tally.trials,
        replicas=replicas,
        unasked=options.unasked,
        critical_failed=tuple(map(format_cell_name, summary.critical)),
        tolerated=tuple(map(format_cell_name, tolerated)),
        vacuous=vacuous,
        flaky=summary.flaky,
        pass_hat=_compute_pass_hats(summary.tries, replicas) if summary.tries else {},
        min_score=least,
        best=_round_score(sums.best) if summary.count("error") else None,
        attacks=tally.attacks.build_result(),
        spent=tally.spending.build_result(),
    )
    return score, deciding


def _round_score(score: float | None) -> float | None:
    return None if score is None else round(score, 2)


def _compute_interval(tally: Tally, summary: Summary) -> Interval | None:
    """Return the interval by prompts if there are enough, otherwise Wilson's interval with Kish's effective n.

    Cells that share trials count as one: until one has failed, nobody knows whether a bad trial fails them all.
    """
    score, plan = summary.all.score, tally.plan
    if score is None:
        return None
    # The unit of independence is a group of cells that share trials, because one bad trial may fail them all. From
    # eight prompts on the interval says what a new run would give; below that there are too few different prompts for
    # it, and the exact limits for a few cells are wider.
    n = intervals.compute_effective_n(list(Counter(summary.group_weights).items()))
    prompts = len({task for rule in summary.rules for task in plan.get_tasks(rule)})
    if prompts >= intervals.PROMPTS_FOR_BOOTSTRAP and plan.whole:
        low, high = intervals.compute_next_run_interval(score / 100.0, n)
        return intervals.round_interval(100.0 * low, 100.0 * high, prompts)
    low, high = intervals.compute_few_cells_interval(score / 100.0, n, summary.failed_groups, summary.count("pass"))
    return Interval(round(100.0 * low, 2), round(100.0 * high, 2), "kish", prompts)


def _compute_pass_hats(alike: Mapping[Tries, int], replicas: int) -> dict[str, float]:
    """Return pass^k for every k: the mean over a cell's prompts, then over the cells that have k tries."""
    tried = [pair for tries in alike for pair, _ in tries]
    # pass^k is the probability that k replicas in a row pass. Per prompt it is unbiased over all ways to choose k of
    # its n replicas; prompts are averaged within a cell first, so a cell with many prompts does not outweigh the
    # others.
    if all(c == n for c, n in tried):
        return {str(k): 1.0 for k in range(1, min(replicas, max((n for _, n in tried), default=0)) + 1)}
    by_k = {}
    cells = sorted(alike.items())
    for k in range(1, replicas + 1):
        means = [(m, count) for tries, count in cells if (m := _compute_mean_pass_hat(tries, k)) is not None]
        if means:
            by_k[str(k)] = fsum([m * count for m, count in means]) / sum([count for _, count in means])
    return by_k


def _compute_mean_pass_hat(tries: Tries, k: int) -> float | None:
    fit = [(intervals.compute_pass_hat(c, n, k), prompts) for (c, n), prompts in tries if n >= k]
    total = sum([prompts for _, prompts in fit])
    return fsum([value * prompts for value, prompts in fit]) / total if total else None
