"""Describes a cause: where it occurred, under which faults, and its representative cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from holdfast.model.shorten import shorten
from holdfast.report import wording
from holdfast.report.causes.case_causes import CaseCause
from holdfast.report.causes.cell_causes import Cause
from holdfast.report.safe import to_one_line

FAULTS = 4
"""Sets of faults that are named; the others are counted."""


_NAMED = 3
"""Rules of one cause that a title names; if there are more, it shows their number."""
_OTHER = 100
"""Characters of another reason."""


def format_start(cause: Cause) -> str:
    """`✘ never-fabricate · 12 scenarios`, the start of a title."""
    return f"{wording.SIGNS[cause.outcome]} {to_one_line(format_subject(cause))} · {format_where(cause)}"


def format_subject(cause: Cause) -> str:
    """Return the rules, or how many an ending broke: `answers, ? true-price`, `4 rules, ? 1 more`."""
    if len(cause.rules) <= _NAMED:
        return ", ".join(mark_rules(cause))
    alike = sum(cause.outcomes[rule] == cause.outcome for rule in cause.rules)
    others = Counter(outcome for outcome in cause.outcomes.values() if outcome != cause.outcome)
    more = [f"{wording.SIGNS[outcome]} {count} more" for outcome, count in others.items()]
    return ", ".join((wording.format_count(alike, "rule"), *more))


def mark_rules(cause: Cause) -> list[str]:
    """Return the rules, first those with the outcome of the cause; the others with their own sign."""
    rules = sorted(cause.rules, key=lambda rule: wording.TROUBLE[cause.outcomes[rule]])
    signs = {
        rule: "" if outcome == cause.outcome else f"{wording.SIGNS[outcome]} "
        for rule, outcome in cause.outcomes.items()
    }
    return [f"{signs[rule]}{rule}" for rule in rules]


def format_where(cause: Cause) -> str:
    """`12 scenarios`, plus the trials if there are more; the name if there is one; cells if a scenario has several."""
    columns = len(cause.heads)
    noun = "scenario" if len({member.scenario for member in cause.members}) == columns else "cell"
    trials = f" ({wording.format_count(cause.trials, 'trial')})" if cause.trials > columns else ""
    return (to_one_line(cause.heads[0]) if columns == 1 else wording.format_count(columns, noun)) + trials


def format_marks(cause: Cause) -> str:
    """`2 × flaky, simulated`; a mark that all cells have needs no number."""
    texts = [mark if count == cause.cells else f"{count} × {mark}" for mark, count in cause.marks.items()]
    return ", ".join(texts)


def format_faults(cause: Cause | CaseCause) -> str:
    """`4 × error on tool search, 2 × rate_limit on llm`; empty if all cells have the same faults."""
    by_count = sorted(cause.faults, key=lambda entry: -entry[1])
    if len(by_count) < 2:
        return ""
    texts = [
        f"{count} × {' + '.join(fault.text for fault in names) or 'none met'}" for names, count in by_count[:FAULTS]
    ]
    return to_one_line(", ".join(texts) + (f", and {len(by_count) - FAULTS} more" if len(by_count) > FAULTS else ""))


def format_because(cause: Cause) -> str:
    """Return what to add to the shown reason; for an ending nothing, because each rule words it differently."""
    text = format_also(cause)
    return f"   ({text})" if text else ""


def format_also(cause: Cause) -> str:
    """Format how many other reasons the cells give."""
    if len(cause.rules) > 1 and not cause.mixed:
        return ""
    return format_others(cause.reason, cause.reasons, "other reason" if cause.mixed else "other wording")


def format_others(first: str, reasons: Iterable[str], noun: str = "other wording") -> str:
    """Return the number of reasons other than the shown one, with an example if it differs in more than numbers."""
    rest = [reason for reason in dict.fromkeys(reasons) if reason != first]
    if not rest:
        return ""
    unlike = next((reason for reason in rest if _keep_letters(reason) != _keep_letters(first)), "")
    return wording.format_count(len(rest), noun) + (f", as: {to_one_line(shorten(unlike, _OTHER))}" if unlike else "")


def _keep_letters(reason: str) -> str:
    """Return the letters of a reason: differences in numbers do not count."""
    return "".join(filter(str.isalpha, reason))


def list_facts(cause: Cause, of_first: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the facts of a cause, around those of its first cell."""
    if len(cause.rules) > _NAMED:
        yield "rules", to_one_line(", ".join(mark_rules(cause)))
    elif cause.description:
        yield "rule", to_one_line(cause.description)
    under = format_faults(cause)
    for label, text in of_first:
        if label in ("next", "reproduce") and under:
            yield "faults", under
            under = ""
        yield label, text + format_because(cause) if label == "because" else text
    if under:
        yield "faults", under


def format_left_out(causes: Sequence[Cause]) -> str:
    """`and 3 more causes (12 cells)`; for single cells only their number."""
    if all(cause.cells == 1 for cause in causes):
        return f"and {len(causes)} more"
    cells = len(
        {(rule, one.head) for cause in causes for rule, one in zip(cause.member_rules, cause.members, strict=True)}
    )
    return f"and {wording.format_count(len(causes), 'more cause')} ({wording.format_count(cells, 'cell')})"
