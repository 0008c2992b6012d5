"""A comparison of two runs, as text for a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import asdict

from holdfast.report.page.values import pick
from holdfast.report.safe import Paint, to_one_line
from holdfast.report.wording import format_count
from holdfast.score.comparison import Comparison, RuleComparison

_HEAD = ("rule", "before", "after", "lost", "gained", "p", "by Holm", "")
_TONES = {"worse": "fail", "better": "pass"}


def format_comparison(comparison: Comparison, paint: Paint) -> Iterator[str]:
    """Yield a row for every rule, then what was left out and why."""
    rows = [_HEAD, *map(_build_row, comparison.rules)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD) - 1)]
    for row, one in zip(rows, (None, *comparison.rules), strict=True):
        cells = [
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=False))
        ]
        last = row[-1] if one is None else paint(row[-1], _TONES.get(one.change, ""))
        yield "   ".join([*cells, last]).rstrip()
    yield ""
    for one in comparison.rules:
        where = f"{one.part}: " if one.part else ""
        sentence = f"obeyed in run {comparison.after} and not in run {comparison.before}: {where}"
        yield from (sentence + to_one_line(attack) for attack in one.obeyed)
    yield from (f"not compared: {to_one_line(text)}" for text in comparison.left_out)
    for count, run in ((comparison.only_before, comparison.before), (comparison.only_after, comparison.after)):
        if count:
            yield f"{format_count(count, 'prompt')} decided in run {run} only: not compared"
    yield from (f"note: {to_one_line(text)}" for text in comparison.notes)
    yield format_summary(comparison)


def format_summary(comparison: Comparison) -> str:
    """`0003 → 0007: 1 rule worse, 2 better, 4 the same, 1 cannot tell`."""
    words = {"worse": "worse", "better": "better", "same": "the same", "cannot tell": "cannot tell"}
    counts = [(len([one for one in comparison.rules if one.change == change]), word) for change, word in words.items()]
    text = ", ".join(f"{count} {word}" for count, word in counts if count)
    return f"{comparison.before} → {comparison.after}: of {format_count(len(comparison.rules), 'rule')} {text}"


def format_verdict(one: RuleComparison) -> str:
    """`worse`, or `cannot tell, about 12 more prompts would`."""
    return ", ".join(filter(None, (one.change, format_outlook(one))))


def format_outlook(one: RuleComparison) -> str:
    """`about 12 more prompts would` if it is undecided; otherwise empty."""
    return "" if one.more_prompts is None else f"about {format_count(one.more_prompts, 'more prompt')} would"


def build_document(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison as JSON."""
    return {
        **pick(comparison, "before after"),
        "worse": [_format_name(one) for one in comparison.select_rules("worse")],
        "better": [_format_name(one) for one in comparison.select_rules("better")],
        "rules": [{**asdict(one), "part": one.part or None} for one in comparison.rules],
        **pick(comparison, "only_before only_after left_out notes"),
    }


def _build_row(one: RuleComparison) -> tuple[str, ...]:
    before, after = (f"{passed}/{one.pairs}" for passed in (one.passed_before, one.passed_after))
    return (
        to_one_line(_format_name(one)), before, after, str(one.lost), str(one.gained),
        _format_p(one.p), _format_p(one.p_holm), format_verdict(one),
    )  # fmt: skip


def _format_p(p: float | None) -> str:
    if p is None:
        return "exact"
    return f"{p:.3f}" if p >= 0.001 else "<0.001"


def _format_name(one: RuleComparison) -> str:
    return f"{one.part}: {one.rule}" if one.part else one.rule
