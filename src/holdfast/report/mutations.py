"""Describes mutation results: robustness, intent kept, attacks resisted, and each type."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.model.score import MutationScore, Score, Share, TypeShare
from holdfast.report.wording import format_count, format_interval


def format_headline(score: Score) -> str:
    """`robustness 0.83 (95 %: 0.71–0.91), intent kept 17 of 20, attacks resisted 9 of 10`."""
    mutation = score.mutation
    if mutation is None:
        return ""
    sure = format_interval(score.interval, 0.01)
    parts = [f"robustness {format_robustness(mutation)}" + (f" ({sure})" if sure else "")]
    parts += [f"intent kept {format_share(mutation.intent_kept)}"] if mutation.intent_kept.judged else []
    parts += [f"attacks resisted {format_share(mutation.attacks_resisted)}"] if mutation.attacks_resisted.judged else []
    return ", ".join(parts)


def format_robustness(made: MutationScore) -> str:
    """Format the robustness, 0 to 1, with two decimals, or –."""
    return "–" if made.robustness is None else f"{made.robustness:.2f}"


def format_share(one: Share) -> str:
    """`9 of 10`."""
    return f"{one.passed} of {one.judged}"


def format_judged(score: Score) -> str:
    """Format how many of the mutations the score covers."""
    types = score.mutation.types if score.mutation else ()
    judged, total = sum(one.judged for one in types), sum(one.judged + one.undecided for one in types)
    probes = score.total - total
    words = f"{judged} of {format_count(total, 'mutation')} judged"
    return f"{words}, {score.judged - judged} of {format_count(probes, 'probe')}" if probes else words


def build_table(made: MutationScore) -> list[tuple[str, ...]]:
    """Return one row per type: name, effect, weight, passes, and undecided ones."""
    rows = [("type", "kind", "weight", "passed", ""), *(_build_row(one) for one in made.types)]
    return rows if any(row[-1] for row in rows) else [row[:-1] for row in rows]


def _build_row(one: TypeShare) -> tuple[str, ...]:
    undecided = f"{one.undecided} undecided" if one.undecided else ""
    kind = "attack" if one.attack else "intent kept"
    return one.type, kind, f"{one.weight:g}", f"{one.passed}/{one.judged}", undecided


def format_table(made: MutationScore) -> Iterator[str]:
    """Yield the table as aligned text."""
    rows = build_table(made)
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    for row in rows:
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
