"""Describes the agent's calls: one per line, their total usage, and the success of attacks."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.model.score import Attacks, CostEstimate, Interval, Score, Spent
from holdfast.model.trace import TraceEvent
from holdfast.report.safe import to_one_line
from holdfast.report.wording import format_count

SHOWN = 40
"""Calls of one trial that a report shows; the run's folder has the rest."""
PLACES = 6
"""Script rules that the block of a failure names."""


def format_call(event: TraceEvent) -> str:
    """Return one call on one line: `0.011 s  tool search  6 ms  503 InjectedError  retry 1  120 tokens  [error]`."""
    phase = "" if event.phase == "done" else event.phase
    parts = (
        f"{event.ts:.3f} s",
        f"{event.plane} {event.tool}".strip(),
        f"{event.duration_ms:.0f} ms",
        f"{event.times} times" if event.times > 1 else "",
        " ".join(part for part in (str(event.status or ""), event.error_type, phase) if part),
        f"retry {event.retry}" if event.retry else "",
        f"{event.tokens} tokens" if event.tokens else "",
        f"script {event.script}" if event.script else "",
        f"[{event.fault}]" if event.fault else "",
    )
    return "  ".join(part for part in parts if part)


def format_script(trace: Sequence[TraceEvent]) -> str:
    """`script model.yaml:7, model.yaml:2`: the script rules that gave a trial's replies, in order."""
    places = list(dict.fromkeys(event.script for event in trace if event.script))
    more = f" and {len(places) - PLACES} more" if len(places) > PLACES else ""
    return f"script {', '.join(places[:PLACES])}{more}" if places else ""


def format_attacks(attacks: Attacks) -> str:
    """`attack success 2 of 10 trials (95 %: 6–51 %)   utility under attack 11 of 14 verdicts (95 %: 52–92 %)`."""
    attempts = format_count(attacks.attacked - attacks.asked, "trial")
    won = f"attack success {attacks.succeeded} of {attempts} ({format_percent(attacks.interval)})"
    if attacks.asked:
        won += f", in {attacks.asked} more it is unknown"
    useful = attacks.utility
    if not useful.judged or useful.interval is None:
        return f"{won}   utility under attack: no verdict"
    passed = f"{useful.passed} of {format_count(useful.judged, 'verdict')}"
    return f"{won}   utility under attack {passed} ({format_percent(useful.interval)})"


def format_attack_success(score: Score) -> str:
    """`attacks succeeded in 4 of 4 trials`, with a note that no rule fails for it; empty if none succeeded."""
    attacks = score.attacks
    if attacks is None or not attacks.succeeded:
        return ""
    unjudged = "" if score.exit_code else ", and no rule fails on that"
    attempts = format_count(attacks.attacked - attacks.asked, "trial")
    return f"attacks succeeded in {attacks.succeeded} of {attempts}{unjudged}"


def format_percent(interval: Interval) -> str:
    """Return the interval of a rate, such as `95 %: 6–51 %`."""
    return f"95 %: {100 * interval.low:.0f}–{100 * interval.high:.0f} %"


def format_usage(spent: Spent | None) -> str:
    """`28 calls, 3 retries   12,345 tokens   about $0.0123`; empty if no model reported its usage."""
    if spent is None or not spent.tokens:
        return ""
    retries = f", {spent.retries} {'retry' if spent.retries == 1 else 'retries'}" if spent.retries else ""
    parts = [f"{format_count(spent.calls, 'call')}{retries}"]
    parts.append(f"{spent.tokens:,} tokens ({spent.input_tokens:,} in, {spent.output_tokens:,} out)")
    if spent.cost_usd is not None:
        parts.append(f"about {format_money(spent.cost_usd)}")
    if spent.unpriced:
        parts.append(f"price not known: {', '.join(spent.unpriced)}")
    return "   ".join(parts)


def describe_estimate(cost: CostEstimate) -> str:
    """`4 calm trials: 12,310 tokens, about $0.0547 · up to 300 trials, about $4.10; --max-cost limits it`."""
    unpriced = f" (price not known: {', '.join(map(to_one_line, cost.unpriced))})" if cost.unpriced else ""
    paid = "" if cost.calm_usd is None else f", about {format_money(cost.calm_usd)}"
    calm = f"{format_count(cost.calm_trials, 'calm trial')}: {cost.calm_tokens:,} tokens{paid}{unpriced}"
    if cost.max_trials is None:
        return calm
    amount = f"{cost.estimated_tokens:,} tokens" if cost.estimated_usd is None else format_money(cost.estimated_usd)
    limit = "--max-trials limits it" if cost.estimated_usd is None else "--max-cost limits it"
    return f"{calm} · up to {format_count(cost.max_trials, 'trial')}, about {amount}; {limit}"


def format_money(usd: float) -> str:
    """Format an amount with enough digits to be visible."""
    return f"${usd:,.2f}" if usd >= 1 or not usd else f"${usd:.4f}" if usd >= 0.001 else f"${usd:.6f}"


def format_usage_so_far(spent: Spent | None) -> str:
    """`12,345 tokens, $0.02` for a running run; empty if no model reported its usage."""
    if spent is None or not spent.tokens:
        return ""
    return f"{spent.tokens:,} tokens" + ("" if spent.cost_usd is None else f", {format_money(spent.cost_usd)}")
