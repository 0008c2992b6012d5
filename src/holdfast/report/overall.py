"""Describes the overall score: one line per part, the number, the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from shlex import quote
from typing import Any

from holdfast.model.codec import JSON
from holdfast.model.codes import STATEFUL, RunWarning
from holdfast.model.run import Overall, PartResult
from holdfast.report import wording
from holdfast.report.mutations import format_robustness
from holdfast.report.page.values import pick
from holdfast.report.safe import Paint, get_painter, to_one_line
from holdfast.store.run_folders import format_name

_COUNTED = "cases-failed"
"""The code of a reason that repeats the count of passes before it: `15 of 24 mutations passed`."""
_WARNINGS = 3
"""Lines of warnings below the verdict."""


def format_word(part: PartResult, whole: Overall) -> str:
    """Return a part's verdict in one word."""
    return wording.format_exit_code(part.exit_code, is_shard=bool(whole.shard)) if part.ran else "not run"


def get_sign(part: PartResult, whole: Overall) -> str:
    """Return the sign of a part's verdict."""
    return wording.VERDICT_SIGNS.get(format_word(part, whole), "!") if part.ran else "–"


def format_score(part: PartResult) -> str:
    """Format the score with two decimals; for mutations also on a scale from 0 to 1."""
    if part.mutation is not None and part.score is not None:
        return f"{part.score:.2f} ({format_robustness(part.mutation)})"
    return wording.format_number(part.score)


def format_share(part: PartResult) -> str:
    """Return its weight in the overall score."""
    return f"{part.share * 100:.0f} %" if part.share else "–"


def format_result(part: PartResult) -> str:
    """Return the result, or why the part did not run."""
    if not part.ran:
        return f"not run: {part.skipped}"
    coded = zip_longest(part.reasons, part.reason_codes, fillvalue="") if part.exit_code else ()
    reasons = [text for text, code in coded if code != _COUNTED]
    return "; ".join(text for text in (part.said, *reasons) if text)


def build_rows(whole: Overall) -> list[tuple[str, ...]]:
    """Return a row for each part that ran, without colour."""
    head = ("", "part", "score", "share", "")
    ran = (part for part in whole.parts if part.ran)
    return [
        head,
        *((get_sign(p, whole), p.part, format_score(p), format_share(p), to_one_line(format_result(p))) for p in ran),
    ]


def format_not_run(whole: Overall) -> str:
    """`not run: scenario (add task: …), replay (add replays: …)`; empty if every part ran."""
    parts = [f"{part.part} ({to_one_line(part.skipped)})" for part in whole.parts if not part.ran]
    return f"not run: {', '.join(parts)}" if parts else ""


def format_summary(
    whole: Overall,
    *,
    color: bool,
    quiet: bool = False,
    verbose: bool = False,
    page: str = "",
    sandbox: str = "",
    running: bool = False,
) -> str:
    """Return every part, the verdict and notes, for a terminal or a pipe."""
    paint = get_painter(color)
    failed = [f"{get_sign(part, whole)} {part.part}" for part in whole.parts if part.ran and part.exit_code]
    lines = failed if quiet else [*_format_table(whole), ""]
    if running:
        lines.append(wording.format_running(paint))
    else:
        lines.append(_format_verdict_line(whole, paint, page))
        context = " · ".join(to_one_line(text) for text in (page, sandbox) if text)
        lines += [f"      {context}"] if context and not quiet else []
    lines += [f"note: {to_one_line(note)}" for note in whole.notes]
    lines += (
        []
        if quiet
        else [paint(wording.format_warning(one), "warning") for one in select_warnings(whole, verbose=verbose)]
    )
    return "\n".join(lines) + "\n"


def select_warnings(whole: Overall, *, verbose: bool = False) -> list[RunWarning]:
    """Return the warnings of the parts on at most three lines, the last for the rest; all of them with `verbose`."""
    warnings = [one for one in whole.warnings if verbose or not one.ignored]
    if verbose or len(warnings) <= _WARNINGS:
        return warnings
    # Document 001 requires the warning about state in any case.
    visible = sorted(warnings, key=lambda one: one.code != STATEFUL)[: _WARNINGS - 1]
    hidden = wording.format_count(len(warnings) - len(visible), "more warning")
    return [*visible, RunWarning("more-warnings", f"{hidden}: -v, or the report")]


def _format_verdict_line(whole: Overall, paint: Paint, page: str) -> str:
    """`FAIL  contract: 2 critical cells failed · overall 46.67`."""
    word = wording.format_verdict(whole)
    resume = quote(format_name(Path(page).parent)) if page else whole.run
    parts = (
        ", ".join(to_one_line(reason) for reason in whole.reasons),
        paint(format_headline(whole), "bold"),
        f"resume: holdfast ci --resume {resume}" if whole.exit_code == 2 else "",
    )
    return f"{paint(word, word)}  {' · '.join(filter(None, parts))}"


def format_headline(whole: Overall) -> str:
    """`overall 82.50 (minimum 80)`."""
    least = f" (minimum {whole.min_score:g})" if whole.min_score is not None else ""
    return f"overall {wording.format_number(whole.score)}{least}"


def _format_table(whole: Overall) -> Iterator[str]:
    cells = build_rows(whole)
    widths = [max(len(row[n]) for row in cells) for n in range(4)]
    for row in cells:
        start = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        yield f"  {start}  {row[4]}".rstrip()
    if missing := format_not_run(whole):
        yield f"  {missing}"


def build_document(whole: Overall) -> dict[str, Any]:
    """Return the overall score for programs, then each part."""
    return {
        "format": JSON,
        **pick(whole, "score passed exit_code seed min_score reasons notes warnings"),
        "run_id": whole.run,
        **pick(whole, "name spec_path started duration_s"),
        **({"shard": whole.shard} if whole.shard else {}),
        "parts": {part.part: _build_part(part, whole) for part in whole.parts},
    }


def _build_part(part: PartResult, whole: Overall) -> dict[str, Any]:
    return {
        "ran": part.ran,
        "skipped": part.skipped or None,
        "score": part.score,
        "robustness": part.mutation.robustness if part.mutation else None,
        "interval": part.interval and pick(part.interval, "low high"),
        "weight": part.weight,
        "share": part.share,
        "passed": (part.passed and not whole.shard) if part.ran else None,
        "exit_code": part.exit_code if part.ran else None,
        **pick(part, "reasons reason_codes said trials"),
        "run_id": part.run or None,
        "report": part.page or None,
    }


def format_markdown(whole: Overall) -> str:
    """Return a table for a CI job's page."""
    from holdfast.report.formats.markdown import escape_inline

    headline = escape_inline(format_headline(whole))
    word = wording.format_verdict(whole)
    title = f"## {wording.VERDICT_SIGNS.get(word, '!')} {word}: {escape_inline(whole.name or whole.spec_path)}"
    reasons = escape_inline(", ".join(whole.reasons))
    lines = [title, "", f"**{headline[:1].upper()}{headline[1:]}** · {reasons}", ""]
    head, *body = build_rows(whole)
    lines += ["| " + " | ".join(cell or " " for cell in head) + " |", "|---" * len(head) + "|"]
    lines += ["| " + " | ".join(escape_inline(cell) for cell in row) + " |" for row in body]
    lines += ["", escape_inline(format_not_run(whole))] if format_not_run(whole) else []
    lines += ["", *(f"- {escape_inline(note)}" for note in whole.notes)]
    lines += [f"- warning: {escape_inline(one.text)}" for one in select_warnings(whole)]
    return "\n".join(lines) + "\n"
