"""A summary in Markdown, for a CI job's page or a comment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import ClassVar

from holdfast.model.run import CaseRow, CellRow, ReplicaRow, Run
from holdfast.model.score import Case, MutationScore
from holdfast.report import calls, cases, mutations, standards, wording
from holdfast.report.failures import exchange, in_turn, untold
from holdfast.report.matrix import Grid, grid, legend
from holdfast.report.safe import one_line, visible

MAX_ROWS, MAX_COLUMNS, MAX_DETAILS = 40, 20, 20
"""A CI job's page takes 1 MB; a person less."""
_STRUCTURE = re.compile(r"[&<>|`*_~\[\]()\\:!{}\"'$^=@#]|(?<=www)\.")


class Markdown:
    """`report.md`: verdict, score, matrix, and each failure folded away."""

    suffix: ClassVar[str] = ".md"

    def render(self, run: Run) -> Mapping[str, Iterable[bytes]]:
        return {"report.md": map(_whole, (run,))}


def _whole(run: Run) -> bytes:
    """Small whatever the run: only the matrix and the failures that a person reads."""
    lines = [*_top(run), ""]
    if score_of_mutations := run.score.mutation:
        lines += [*_types(score_of_mutations), ""]
    elif run.by_cases:
        lines += [*_cases(run), ""]
    if wording.has_matrix(run):
        lines += [*_table(grid(run)), ""]
    lines += [*_case_failures(run), *_failures(run), *_remarks(run)]
    return ("\n".join(lines).rstrip() + "\n").encode("utf-8", "replace")


def inline(text: str) -> str:
    """Untrusted text inside a line: no markup, no link, no mention, no table cell of its own."""
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
    parts += [f"({wording.interval(score.interval)})"] if score.interval else []
    parts += [f"· calm {wording.number(score.calm)}"] if score.calm is not None else []
    parts += [f"· under chaos {wording.number(score.chaos)}"] if score.chaos is not None else []
    yield " ".join(parts)
    yield ""
    if score.paired is not None:
        yield f"**{wording.paired(score.paired)}**"
        yield ""
    sample = f" · {wording.ONE_SAMPLE}" if score.replicas == 1 else ""
    yield f"{wording.judged(score)} · seed {run.seed}{sample}"
    yield ""


def _cases(run: Run) -> Iterator[str]:
    rows = list(run.cases)
    shown = rows if len(rows) <= MAX_ROWS else [row for row in rows if cases.short(row.case)][:MAX_ROWS]
    yield "| case | status | composite | why |"
    yield "|---|---|--:|---|"
    for row in shown:
        case = row.case
        status = f"{wording.SIGNS[case.status]} {case.status}" + (", flaky" if case.flaky else "")
        why = inline(case.reason[:300])
        yield f"| {inline(cases.head(case))} | {status} | {cases.composite(case.composite)} | {why} |"
    if len(shown) < len(rows):
        yield ""
        yield f"{len(rows) - len(shown)} more cases not shown here."


def _case_failures(run: Run) -> Iterator[str]:
    rows = [row for row in cases.troubled(run) if row.case.status != "pass"]
    rules = cases.RuleFacts(run)
    for row in rows[:MAX_DETAILS]:
        one = cases.telling(row)
        if one is not None:
            yield from _folded(row, "\n".join(_case_facts(row.case, one, rules)))
    if len(rows) > MAX_DETAILS:
        yield f"and {len(rows) - MAX_DETAILS} more cases, see {inline(wording.report_path(run))}"
        yield ""


def _folded(row: CaseRow, text: str) -> Iterator[str]:
    case = row.case
    yield f"<details><summary>{wording.SIGNS[case.status]} {case.status}: case {inline(cases.head(case))}</summary>"
    yield ""
    yield block(text)
    yield ""
    yield "</details>"
    yield ""


def _case_facts(case: Case, one: ReplicaRow, rules: cases.RuleFacts) -> Iterator[str]:
    yield from (f"{label:<9} {text}" for label, text in cases.exchange(one, 1000))
    if obeyed := cases.obedience(case, one):
        yield f"obeyed    {obeyed}"
    yield from (f"forbidden {one_line(text)}" for text in cases.violations(one))
    for verdict in cases.unpassed(one):
        yield f"because   {one_line(rules.reason(verdict, one))} ({rules.place(verdict.invariant)})"
    yield from (f"met       {one_line(wording.fault(met))}" for met in one.seen.met[:10])
    if known := standards.names((*standards.of_case(case), *standards.of_faults(one.seen.met))):
        yield f"known as  {known}"
    yield f"again     {one.again}"


def _table(shown: Grid) -> Iterator[str]:
    rules = list(shown.rules)
    if len(rules) > MAX_ROWS:
        rules = [rule for rule in rules if not shown.quiet([rule], shown.heads)]
    heads = shown.heads
    if len(heads) > MAX_COLUMNS:
        heads = [head for head in heads if not shown.quiet(rules, [head])]
    yield from _rows(shown, rules[:MAX_ROWS], heads[:MAX_COLUMNS])
    off_rules, off_heads = len(shown.rules) - len(rules[:MAX_ROWS]), len(shown.heads) - len(heads[:MAX_COLUMNS])
    if off_rules or off_heads:
        yield ""
        yield f"{wording.plural(off_rules, 'rule')} and {wording.plural(off_heads, 'scenario')} not shown here."


def _rows(shown: Grid, rules: Sequence[str], heads: Sequence[str]) -> Iterator[str]:
    yield "| rule | severity | " + " | ".join(map(inline, heads)) + " |"
    yield "|---|---|" + ":-:|" * len(heads)
    for rule in rules:
        faces = [shown.face(rule, head) for head in heads]
        cells = [f"{f.text} {f.outcome}".strip() if f.outcome not in ("pass", "n/a") else f.text for f in faces]
        yield f"| {inline(rule)} | {inline(shown.rules[rule])} | " + " | ".join(cells) + " |"
    if legend(shown):
        yield ""
        yield legend(shown)


def _failures(run: Run) -> Iterator[str]:
    rows = untold(run)
    places = wording.Places(run)
    for row in rows[:MAX_DETAILS]:
        yield from _details(run, row, places)
    if len(rows) > MAX_DETAILS:
        yield f"and {len(rows) - MAX_DETAILS} more, see {inline(wording.report_path(run))}"
        yield ""


def _details(run: Run, row: CellRow, places: wording.Places) -> Iterator[str]:
    cell = row.cell
    marks = ", ".join(wording.marks(cell))
    title = f"{wording.SIGNS[cell.outcome]} {cell.outcome}: {inline(cell.invariant)} in {inline(wording.column(cell))}"
    yield f"<details><summary>{title}{f' ({marks})' if marks else ''}</summary>"
    yield ""
    yield block("\n".join(_facts(run, row, places)))
    yield ""
    yield "</details>"
    yield ""


def _facts(run: Run, row: CellRow, places: wording.Places) -> Iterator[str]:
    yield f"at        {places.of(row.cell.invariant)}"
    trial = wording.telling(row)
    if trial is not None:
        yield from (f"{label:<9} {text}" for label, text in exchange(trial, 1000))
    yield f"because   {one_line(in_turn(trial, wording.why(row)))}"
    if trial is not None:
        met = wording.met(trial.faults)
        yield from (f"met       {one_line(wording.fault(one))}" for one in met[:10])
        if known := standards.names((*standards.of_rule(run, row.cell.invariant), *standards.of_faults(met))):
            yield f"known as  {known}"
    if row.cell.outcome in ("unproven", "error"):
        yield f"next      {wording.next_step(run, row)}"
    if trial is not None and trial.again:
        yield f"again     {trial.again}"


def _remarks(run: Run) -> Iterator[str]:
    yield from (f"- warning: {inline(text)}" for text in run.warnings)
    yield from (f"- {inline(text)}" for text in run.notes)
