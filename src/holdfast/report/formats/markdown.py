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
from holdfast.report.causes.case_causes import CaseCause, case_causes
from holdfast.report.causes.cell_causes import Cause, causes
from holdfast.report.facts import Facts, case_facts, cell_facts
from holdfast.report.safe import one_line, visible
from holdfast.report.terminal.failures import unexplained
from holdfast.report.terminal.matrix import Grid, grid, legend

MAX_ROWS, MAX_COLUMNS, MAX_DETAILS = 40, 20, 20
"""A CI job's page takes 1 MB; a person less."""
ROOM = 1000
"""Characters of an answer."""
_STRUCTURE = re.compile(r"[&<>|`*_~\[\]()\\:!{}\"'$^=@#]|(?<=www)\.")


class Markdown:
    """`report.md`: verdict, score, matrix, and each failure collapsed."""

    suffix: ClassVar[str] = ".md"

    def render(self, run: Run) -> Mapping[str, Iterable[bytes]]:
        return {"report.md": map(_whole, (run,))}


def _whole(run: Run) -> bytes:
    """The complete summary, small for any run: only the matrix and the failures that a person reads."""
    lines = [*_top(run), "", *_case_failures(run), *_failures(run)]
    if score_of_mutations := run.score.mutation:
        lines += [*_types(score_of_mutations), ""]
    elif run.by_cases:
        lines += [*_cases(run), ""]
    if wording.has_matrix(run):
        lines += [*_table(grid(run)), ""]
    lines += _remarks(run)
    return ("\n".join(lines).rstrip() + "\n").encode("utf-8", "replace")


def inline(text: str) -> str:
    """Escape untrusted text inside a line: no markup, link, mention or table cell."""
    return _STRUCTURE.sub(_spelled, one_line(text))


def _spelled(match: re.Match[str]) -> str:
    # An entity alone would still become a mention after rendering; a zero-width space breaks it.
    return f"&#{ord(match[0])};" + ("&#8203;" if match[0] in "@#" else "")


def block(text: str) -> str:
    """Untrusted text as a preformatted block: only its end tag closes it, and mentions do not work inside."""
    return f"<pre>{escape(visible(text, keep=chr(10) + chr(9)))}</pre>"


def _top(run: Run) -> Iterator[str]:
    score = run.score
    word = wording.verdict(score)
    yield f"## {wording.verdict_sign(score)} {word}: {inline(run.name or run.spec_path)}"
    yield ""
    if score.mutation is not None:
        yield f"**{mutations.headline(score)}** · {mutations.judged(score)} · seed {run.seed}"
        yield ""
    elif run.by_cases:
        sample = f" · {cases.ONE_SAMPLE}" if score.replicas == 1 and not wording.has_matrix(run) else ""
        yield f"**{cases.counted(run)}** · seed {run.seed}{sample}"
        yield ""
    if wording.has_matrix(run):
        yield from _numbers(run)
    for line in (calls.attacks(score.attacks) if score.attacks else "", calls.used(score.spent)):
        if line:
            yield inline(line.replace("   ", " · "))
            yield ""
    for reason in score.reasons:
        yield f"- {inline(reason)}"


def _types(made: MutationScore) -> Iterator[str]:
    head, *rows = mutations.table(made)
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _numbers(run: Run) -> Iterator[str]:
    score = run.score
    parts = [f"**Resilience {wording.number(score.value)}**"]
    parts += [f"({sure})"] if (sure := wording.interval(score.interval)) else []
    parts += [f"· {name} {value}" for name, value in wording.calm_and_chaos(score)]
    yield " ".join(parts)
    yield ""
    if cost := wording.paired(score):
        yield f"**{cost}**"
        yield ""
    sample = f" · {wording.ONE_SAMPLE}" if score.replicas == 1 else ""
    yield f"{wording.judged(score)} · seed {run.seed}{sample}"
    yield ""


def _cases(run: Run) -> Iterator[str]:
    rows = list(run.cases)
    visible = rows if len(rows) <= MAX_ROWS else [row for row in rows if cases.short(row.case)][:MAX_ROWS]
    yield "| case | status | composite | why |"
    yield "|---|---|--:|---|"
    for row in visible:
        case = row.case
        outcome = cases.outcome(case)
        status = f"{wording.SIGNS[outcome]} {outcome}" + (", flaky" if case.flaky else "")
        why = inline(case.reason[:300])
        yield f"| {inline(cases.head(case))} | {status} | {cases.composite(case.composite)} | {why} |"
    if len(visible) < len(rows):
        yield ""
        yield f"{len(rows) - len(visible)} more cases not shown here."


def _case_failures(run: Run) -> Iterator[str]:
    every_cause = case_causes(run) if run.by_cases else []
    rules = cases.RuleFacts(run)
    for cause in every_cause[:MAX_DETAILS]:
        if (one := cases.telling(cause.first)) is not None:
            facts = case_facts(cause.first.case, one, rules, room=ROOM)
            known = standards.names(standards.of_case_cause(cause))
            yield from _folded(run, cause, "\n".join((*_cases_of(cause), *_fact_lines(facts, known))))
    if len(every_cause) > MAX_DETAILS:
        yield f"and {sum(len(one.members) for one in every_cause[MAX_DETAILS:])} more cases, see {_path(run)}"
        yield ""


def _folded(run: Run, cause: CaseCause, text: str) -> Iterator[str]:
    case, many = cause.first.case, len(cause.members)
    named = wording.plural(many, cases.noun(run)) if many > 1 else inline(cases.marked_head(case))
    yield f"<details><summary>{wording.SIGNS[cause.outcome]} {cause.outcome}: {named}</summary>"
    yield ""
    yield block(text)
    yield ""
    yield "</details>"
    yield ""


def _fact_lines(facts: Facts, known: str) -> Iterator[str]:
    yield from (f"{label:<10} {text}" for label, text in facts)
    if known:
        yield f"{'known as':<10} {known}"


def _cases_of(cause: CaseCause) -> Iterator[str]:
    if len(cause.members) > 1:
        yield from _column([cases.head(row.case) for row in cause.members[:MAX_ROWS]], len(cause.members))
        if other := cause_words.others(cause.reasons[0], cause.reasons):
            yield f"{'also':<10} {other}"


def _column(names: Sequence[str], total: int) -> Iterator[str]:
    """One name per line, and the number of others."""
    yield from (f"{'' if n else 'in':<10} {one_line(name)}" for n, name in enumerate(names))
    if total > len(names):
        yield f"{'':<10} and {total - len(names)} more"


def _path(run: Run) -> str:
    return inline(wording.report_path(run))


def _table(matrix: Grid) -> Iterator[str]:
    rules = list(matrix.rules)
    if len(rules) > MAX_ROWS:
        rules = [rule for rule in rules if not matrix.quiet([rule], matrix.heads)]
    heads = matrix.heads
    if len(heads) > MAX_COLUMNS:
        heads = [head for head in heads if not matrix.quiet(rules, [head])]
    yield from _rows(matrix, rules[:MAX_ROWS], heads[:MAX_COLUMNS])
    off_rules, off_heads = len(matrix.rules) - len(rules[:MAX_ROWS]), len(matrix.heads) - len(heads[:MAX_COLUMNS])
    if off_rules or off_heads:
        yield ""
        yield f"{wording.plural(off_rules, 'rule')} and {wording.plural(off_heads, 'scenario')} not shown here."


def _rows(matrix: Grid, rules: Sequence[str], heads: Sequence[str]) -> Iterator[str]:
    yield "| rule | severity | " + " | ".join(map(inline, heads)) + " |"
    yield "|---|---|" + ":-:|" * len(heads)
    for rule in rules:
        faces = [matrix.face(rule, head) for head in heads]
        cells = [f"{f.text} {f.outcome}".strip() if f.outcome not in ("pass", "n/a") else f.text for f in faces]
        yield f"| {inline(rule)} | {inline(matrix.rules[rule])} | " + " | ".join(cells) + " |"
    if legend(matrix):
        yield ""
        yield legend(matrix)


def _failures(run: Run) -> Iterator[str]:
    every_cause = causes(run, unexplained(run))
    for cause in every_cause[:MAX_DETAILS]:
        yield from _details(run, cause)
    if len(every_cause) > MAX_DETAILS:
        yield f"{cause_words.left_out(every_cause[MAX_DETAILS:])}, see {_path(run)}"
        yield ""


def _details(run: Run, cause: Cause) -> Iterator[str]:
    where = inline(cause_words.where(cause))
    title = f"{wording.SIGNS[cause.outcome]} {cause.outcome}: {inline(cause_words.subject(cause))} · {where}"
    marks = ", ".join(wording.marks(cause.first.cell)) if cause.cells == 1 else cause_words.marks(cause)
    yield f"<details><summary>{title}{f' ({marks})' if marks else ''}</summary>"
    yield ""
    yield block("\n".join(_facts(run, cause)))
    yield ""
    yield "</details>"
    yield ""


def _facts(run: Run, cause: Cause) -> Iterator[str]:
    yield f"{'at':<10} {cause.place}"
    facts: Facts = cell_facts(run, cause.first, wording.telling(cause.first), room=ROOM)
    if cause.cells > 1:
        yield from _column(cause.heads[:MAX_ROWS], len(cause.heads))
        facts = cause_words.facts(cause, facts)
    yield from _fact_lines(facts, standards.names(standards.of_cause(run, cause)))


def _remarks(run: Run) -> Iterator[str]:
    yield from (f"- warning: {inline(one.text)}" for one in run.warnings if not one.ignored)
    if ignored := sum(one.ignored for one in run.warnings):
        yield f"- {wording.plural(ignored, 'warning')} ignored"
    yield from (f"- {inline(note.text)}" for note in run.notes)
