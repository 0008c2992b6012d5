"""A Markdown summary for a CI job's page or a comment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import ClassVar

from holdfast.model.run import Run
from holdfast.model.score import MutationScore
from holdfast.report import calls, cases, mutations, standards, wording
from holdfast.report.causes import cause_words
from holdfast.report.causes.case_causes import CaseCause, group_cases
from holdfast.report.causes.cell_causes import Cause, group_cells
from holdfast.report.facts import Facts, list_case_facts, list_cell_facts
from holdfast.report.safe import make_visible, to_one_line
from holdfast.report.terminal.failures import list_unexplained
from holdfast.report.terminal.matrix import Grid, build_grid, format_legend

MAX_ROWS, MAX_COLUMNS, MAX_DETAILS = 40, 20, 20
"""A CI job's page takes 1 MB; a person less."""
ROOM = 1000
"""Characters of an answer."""
_STRUCTURE = re.compile(r"[&<>|`*_~\[\]()\\:!{}\"'$^=@#]|(?<=www)\.")


class Markdown:
    """`report.md`: verdict, score, matrix, and each failure collapsed."""

    suffix: ClassVar[str] = ".md"

    def render(self, run: Run) -> Mapping[str, Iterable[bytes]]:
        return {"report.md": map(_render, (run,))}


def _render(run: Run) -> bytes:
    """Return the complete summary, small for any run: only the matrix and the failures that a person reads."""
    lines = [*_format_top(run), "", *_format_case_failures(run), *_format_failures(run)]
    if score_of_mutations := run.score.mutation:
        lines += [*_format_types(score_of_mutations), ""]
    elif run.by_cases:
        lines += [*_format_cases(run), ""]
    if wording.has_matrix(run):
        lines += [*_format_table(build_grid(run)), ""]
    lines += _format_remarks(run)
    return ("\n".join(lines).rstrip() + "\n").encode("utf-8", "replace")


def escape_inline(text: str) -> str:
    """Escape untrusted text inside a line: no markup, link, mention or table cell."""
    return _STRUCTURE.sub(_escape_match, to_one_line(text))


def _escape_match(match: re.Match[str]) -> str:
    # An entity alone would still become a mention after rendering; a zero-width space breaks it.
    return f"&#{ord(match[0])};" + ("&#8203;" if match[0] in "@#" else "")


def block(text: str) -> str:
    """Untrusted text as a preformatted block: only its end tag closes it, and mentions do not work inside."""
    return f"<pre>{escape(make_visible(text, keep=chr(10) + chr(9)))}</pre>"


def _format_top(run: Run) -> Iterator[str]:
    score = run.score
    word = wording.format_verdict(score)
    yield f"## {wording.VERDICT_SIGNS.get(word, '!')} {word}: {escape_inline(run.name or run.spec_path)}"
    yield ""
    if score.mutation is not None:
        yield f"**{mutations.format_headline(score)}** · {mutations.format_judged(score)} · seed {run.seed}"
        yield ""
    elif run.by_cases:
        sample = f" · {cases.ONE_SAMPLE}" if score.replicas == 1 and not wording.has_matrix(run) else ""
        yield f"**{cases.format_counts(run)}** · seed {run.seed}{sample}"
        yield ""
    if wording.has_matrix(run):
        yield from _format_numbers(run)
    for line in (calls.format_attacks(score.attacks) if score.attacks else "", calls.format_usage(score.spent)):
        if line:
            yield escape_inline(line.replace("   ", " · "))
            yield ""
    for reason in score.reasons:
        yield f"- {escape_inline(reason)}"


def _format_types(made: MutationScore) -> Iterator[str]:
    head, *rows = mutations.build_table(made)
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _format_numbers(run: Run) -> Iterator[str]:
    score = run.score
    parts = [f"**Resilience {wording.format_number(score.value)}**"]
    parts += [f"({sure})"] if (sure := wording.format_interval(score.interval)) else []
    parts += [f"· {name} {value}" for name, value in wording.list_calm_and_chaos(score)]
    yield " ".join(parts)
    yield ""
    if cost := wording.format_paired(score):
        yield f"**{cost}**"
        yield ""
    sample = f" · {wording.ONE_SAMPLE}" if score.replicas == 1 else ""
    yield f"{wording.format_judged(score)} · seed {run.seed}{sample}"
    yield ""


def _format_cases(run: Run) -> Iterator[str]:
    rows = list(run.cases)
    visible = rows if len(rows) <= MAX_ROWS else [row for row in rows if cases.is_imperfect(row.case)][:MAX_ROWS]
    yield "| case | status | composite | why |"
    yield "|---|---|--:|---|"
    for row in visible:
        case = row.case
        outcome = cases.get_outcome(case)
        status = f"{wording.SIGNS[outcome]} {outcome}" + (", flaky" if case.flaky else "")
        reason = escape_inline(case.reason[:300])
        name, composite = escape_inline(cases.format_head(case)), cases.format_composite(case.composite)
        yield f"| {name} | {status} | {composite} | {reason} |"
    if len(visible) < len(rows):
        yield ""
        yield f"{len(rows) - len(visible)} more cases not shown here."


def _format_case_failures(run: Run) -> Iterator[str]:
    every_cause = group_cases(run) if run.by_cases else []
    rules = cases.RuleFacts(run)
    for cause in every_cause[:MAX_DETAILS]:
        if (one := cases.find_telling(cause.first)) is not None:
            facts = list_case_facts(cause.first.case, one, rules, room=ROOM)
            names = standards.format_names(standards.list_for_case_cause(cause))
            yield from _format_case_cause(run, cause, "\n".join((*_list_cases(cause), *_format_facts(facts, names))))
    if len(every_cause) > MAX_DETAILS:
        yield f"and {sum(len(one.members) for one in every_cause[MAX_DETAILS:])} more cases, see {_format_path(run)}"
        yield ""


def _format_case_cause(run: Run, cause: CaseCause, text: str) -> Iterator[str]:
    case, many = cause.first.case, len(cause.members)
    subject = (
        wording.format_count(many, cases.get_noun(run)) if many > 1 else escape_inline(cases.format_marked_head(case))
    )
    yield from _format_details(f"{wording.SIGNS[cause.outcome]} {cause.outcome}: {subject}", text)


def _format_details(title: str, text: str) -> tuple[str, ...]:
    return f"<details><summary>{title}</summary>", "", block(text), "", "</details>", ""


def _format_facts(facts: Facts, known: str) -> Iterator[str]:
    yield from (f"{label:<10} {text}" for label, text in facts)
    if known:
        yield f"{'known as':<10} {known}"


def _list_cases(cause: CaseCause) -> Iterator[str]:
    if len(cause.members) > 1:
        yield from _format_names([cases.format_head(row.case) for row in cause.members[:MAX_ROWS]], len(cause.members))
        if other := cause_words.format_others(cause.reasons[0], cause.reasons):
            yield f"{'also':<10} {other}"


def _format_names(names: Sequence[str], total: int) -> Iterator[str]:
    """Yield one name per line, and the number of others."""
    yield from (f"{'' if n else 'in':<10} {to_one_line(name)}" for n, name in enumerate(names))
    if total > len(names):
        yield f"{'':<10} and {total - len(names)} more"


def _format_path(run: Run) -> str:
    return escape_inline(wording.format_report_path(run))


def _format_table(matrix: Grid) -> Iterator[str]:
    # A large matrix shows where something happened: quiet rules are dropped first, then quiet scenarios.
    rules = list(matrix.rules)
    if len(rules) > MAX_ROWS:
        rules = [rule for rule in rules if not matrix.is_quiet([rule], matrix.heads)]
    heads = matrix.heads
    if len(heads) > MAX_COLUMNS:
        heads = [head for head in heads if not matrix.is_quiet(rules, [head])]
    yield from _format_rows(matrix, rules[:MAX_ROWS], heads[:MAX_COLUMNS])
    off_rules, off_heads = len(matrix.rules) - len(rules[:MAX_ROWS]), len(matrix.heads) - len(heads[:MAX_COLUMNS])
    if off_rules or off_heads:
        yield ""
        scenarios = wording.format_count(off_heads, "scenario")
        yield f"{wording.format_count(off_rules, 'rule')} and {scenarios} not shown here."


def _format_rows(matrix: Grid, rules: Sequence[str], heads: Sequence[str]) -> Iterator[str]:
    yield "| rule | severity | " + " | ".join(map(escape_inline, heads)) + " |"
    yield "|---|---|" + ":-:|" * len(heads)
    for rule in rules:
        faces = [matrix.get_face(rule, head) for head in heads]
        cells = [f"{f.text} {f.outcome}".strip() if f.outcome not in ("pass", "n/a") else f.text for f in faces]
        yield f"| {escape_inline(rule)} | {escape_inline(matrix.rules[rule])} | " + " | ".join(cells) + " |"
    if format_legend(matrix):
        yield ""
        yield format_legend(matrix)


def _format_failures(run: Run) -> Iterator[str]:
    every_cause = group_cells(run, list_unexplained(run))
    for cause in every_cause[:MAX_DETAILS]:
        yield from _format_cause(run, cause)
    if len(every_cause) > MAX_DETAILS:
        yield f"{cause_words.format_left_out(every_cause[MAX_DETAILS:])}, see {_format_path(run)}"
        yield ""


def _format_cause(run: Run, cause: Cause) -> Iterator[str]:
    where = escape_inline(cause_words.format_where(cause))
    title = (
        f"{wording.SIGNS[cause.outcome]} {cause.outcome}: {escape_inline(cause_words.format_subject(cause))} · {where}"
    )
    marks = ", ".join(wording.list_marks(cause.first.cell)) if cause.cells == 1 else cause_words.format_marks(cause)
    yield from _format_details(f"{title} ({marks})" if marks else title, "\n".join(_list_facts(run, cause)))


def _list_facts(run: Run, cause: Cause) -> Iterator[str]:
    yield f"{'at':<10} {cause.place}"
    facts: Facts = list_cell_facts(run, cause.first, wording.find_telling(cause.first), room=ROOM)
    if cause.cells > 1:
        yield from _format_names(cause.heads[:MAX_ROWS], len(cause.heads))
        facts = cause_words.list_facts(cause, facts)
    yield from _format_facts(facts, standards.format_names(standards.list_for_cause(run, cause)))


def _format_remarks(run: Run) -> Iterator[str]:
    yield from (f"- warning: {escape_inline(one.text)}" for one in run.warnings if not one.ignored)
    if ignored := sum(one.ignored for one in run.warnings):
        yield f"- {wording.format_count(ignored, 'warning')} ignored"
    yield from (f"- {escape_inline(note.text)}" for note in run.notes)
