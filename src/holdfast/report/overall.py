"""Describes the overall score: one line per part, the number, the verdict."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import Any

from msgspec.structs import replace

from holdfast.model.format_numbers import JSON
from holdfast.model.overall import Overall, PartResult
from holdfast.model.run_warning import STATEFUL, RunWarning
from holdfast.report import wording
from holdfast.report.mutations import robustness
from holdfast.report.paint import Paint, painter
from holdfast.report.safe import ascii_only, one_line
from holdfast.store.run_names import name_here

_COUNTED = re.compile(r"\d+ of \d+ \w+ failed")
"""Says again what stands before it: `15 of 24 mutations passed`."""
_WARNINGS = 3
"""Lines of warnings below the verdict."""
_SIGNS = {"PASS": "✔", "FAIL": "✘", "UNPROVEN": "?", "SHARD": "–", "not run": "–"}


def verdict(found: Overall) -> str:
    """The verdict in one word; a shard without failures has no verdict of its own."""
    return "SHARD" if found.shard and not found.exit_code else wording.VERDICTS.get(found.exit_code, "ERROR")


def word(part: PartResult, found: Overall) -> str:
    """A part's verdict in one word."""
    return verdict(replace(found, exit_code=part.exit_code)) if part.ran else "not run"


def sign(part: PartResult, found: Overall) -> str:
    """The sign of a part's verdict."""
    return _SIGNS.get(word(part, found), "!")


def score(part: PartResult) -> str:
    """Two decimals; for mutations also from 0 to 1."""
    if part.mutation is not None and part.score is not None:
        return f"{part.score:.2f} ({robustness(part.mutation)})"
    return wording.number(part.score)


def share(part: PartResult) -> str:
    """Its weight in the overall score."""
    return f"{part.share * 100:.0f} %" if part.share else "–"


def result_words(part: PartResult) -> str:
    """The result, or why the part did not run."""
    if not part.ran:
        return f"not run: {part.skipped}"
    reasons = [reason for reason in part.reasons if not _COUNTED.fullmatch(reason)] if part.exit_code else []
    return "; ".join(text for text in (part.said, *reasons) if text)


def rows(found: Overall) -> list[tuple[str, ...]]:
    """A row for each part that ran, without colour."""
    head = ("", "part", "score", "share", "")
    ran = (part for part in found.parts if part.ran)
    return [head, *((sign(p, found), p.part, score(p), share(p), one_line(result_words(p))) for p in ran)]


def not_run(found: Overall) -> str:
    """`not run: scenario (add task: …), replay (add replays: …)`; empty if every part ran."""
    parts = [f"{part.part} ({one_line(part.skipped)})" for part in found.parts if not part.ran]
    return f"not run: {', '.join(parts)}" if parts else ""


def summary(
    found: Overall,
    *,
    color: bool,
    quiet: bool = False,
    verbose: bool = False,
    unicode: bool = True,
    page: str = "",
    sandbox: str = "",
    running: bool = False,
) -> str:
    """Every part, the verdict and notes, for a terminal or a pipe."""
    paint = painter(color)
    failed = [f"{sign(part, found)} {part.part}" for part in found.parts if part.ran and part.exit_code]
    lines = failed if quiet else [*_table(found), ""]
    if running:
        lines.append(wording.running(paint))
    else:
        lines.append(_verdict_line(found, paint, page))
        context = " · ".join(one_line(text) for text in (page, sandbox) if text)
        lines += [f"      {context}"] if context and not quiet else []
    lines += [f"note: {one_line(note)}" for note in found.notes]
    lines += (
        []
        if quiet
        else [paint(wording.format_warning(one), "warning") for one in shown_warnings(found, verbose=verbose)]
    )
    text = "\n".join(lines) + "\n"
    return text if unicode else ascii_only(text)


def shown_warnings(found: Overall, *, verbose: bool = False) -> list[RunWarning]:
    """The warnings of the parts on at most three lines, the last for the rest; all of them with `verbose`."""
    warnings = [one for one in found.warnings if verbose or not one.ignored]
    if verbose or len(warnings) <= _WARNINGS:
        return warnings
    # Document 001 requires the warning about state in any case.
    shown = sorted(warnings, key=lambda one: one.code != STATEFUL)[: _WARNINGS - 1]
    left = wording.plural(len(warnings) - len(shown), "more warning")
    return [*shown, RunWarning("more-warnings", f"{left}: -v, or the report")]


def _verdict_line(found: Overall, paint: Paint, page: str) -> str:
    """`FAIL  overall 46.67 · contract: 2 critical cells failed`."""
    word_shown = verdict(found)
    resume = quote(name_here(Path(page).parent)) if page else found.run
    parts = (
        paint(headline(found), "bold"),
        ", ".join(one_line(reason) for reason in found.reasons),
        f"resume: holdfast ci --resume {resume}" if found.exit_code == 2 else "",
    )
    return f"{paint(word_shown, word_shown)}  {' · '.join(filter(None, parts))}"


def headline(found: Overall) -> str:
    """`overall 82.50 (minimum 80)`."""
    least = f" (minimum {found.min_score:g})" if found.min_score is not None else ""
    return f"overall {wording.number(found.score)}{least}"


def _table(found: Overall) -> Iterator[str]:
    cells = rows(found)
    widths = [max(len(row[n]) for row in cells) for n in range(4)]
    for row in cells:
        start = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        yield f"  {start}  {row[4]}".rstrip()
    if missing := not_run(found):
        yield f"  {missing}"


def document(found: Overall) -> dict[str, Any]:
    """The overall score for programs, then each part."""
    return {
        "format": JSON,
        "score": found.score,
        "passed": found.passed,
        "exit_code": found.exit_code,
        "seed": found.seed,
        "min_score": found.min_score,
        "reasons": found.reasons,
        "notes": found.notes,
        "warnings": found.warnings,
        "run_id": found.run,
        "name": found.name,
        "spec_path": found.spec_path,
        "started": found.started,
        "duration_s": found.duration_s,
        **({"shard": found.shard} if found.shard else {}),
        "parts": {part.part: _part(part, found) for part in found.parts},
    }


def _part(part: PartResult, found: Overall) -> dict[str, Any]:
    return {
        "ran": part.ran,
        "skipped": part.skipped or None,
        "score": part.score,
        "robustness": part.mutation.robustness if part.mutation else None,
        "interval": part.interval and {"low": part.interval.low, "high": part.interval.high},
        "weight": part.weight,
        "share": part.share,
        "passed": (part.passed and not found.shard) if part.ran else None,
        "exit_code": part.exit_code if part.ran else None,
        "reasons": part.reasons,
        "said": part.said,
        "trials": part.trials,
        "run_id": part.run or None,
        "report": part.page or None,
    }


def markdown(found: Overall) -> str:
    """A table for a CI job's page."""
    from holdfast.report.markdown import inline

    bold = headline(found)
    title = f"## {verdict(found)}: {inline(found.name or found.spec_path)}"
    lines = [title, "", f"**{inline(bold[:1].upper() + bold[1:])}**", ""]
    head, *body = rows(found)
    lines += ["| " + " | ".join(cell or " " for cell in head) + " |", "|---" * len(head) + "|"]
    lines += ["| " + " | ".join(inline(cell) for cell in row) + " |" for row in body]
    lines += ["", inline(not_run(found))] if not_run(found) else []
    lines += ["", *(f"- {inline(reason)}" for reason in found.reasons), *(f"- {inline(note)}" for note in found.notes)]
    lines += [f"- warning: {inline(one.text)}" for one in shown_warnings(found)]
    return "\n".join(lines) + "\n"
