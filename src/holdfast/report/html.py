"""The run as one self-contained page that opens from disk."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from hashlib import sha256
from typing import Any, ClassVar

from holdfast.model.run import Run
from holdfast.model.verdict import OUTCOMES
from holdfast.report import calls, mutations, wording
from holdfast.report.cases import ONE_SAMPLE, counted, noun
from holdfast.report.cause_page import items
from holdfast.report.page_tables import PageTables, packed
from holdfast.report.safe import one_line
from holdfast.report.template import FOLDER, template

_SCRIPTS = ("unpack.js", "dom.js", "labels.js", "matrix.js", "filters.js", "panel.js", "trial.js", "main.js")
_CASES = ("dom.js", "cases.js")
"""What a page without a matrix needs."""
_STYLES = ("page.css", "matrix.css", "panel.css", "cases.css")
_PIECE = 1 << 16
FIRST = 6
"""Causes that are named at the top; the others are folded away."""


class Html:
    """`report.html`: verdict, score, cases, matrix; a cell or a case opens its trials."""

    suffix: ClassVar[str] = ".html"

    def render(self, run: Run) -> Mapping[str, Iterable[bytes]]:
        return {"report.html": _pieces(run)}


def _pieces(run: Run) -> Iterator[bytes]:
    """The page in pieces of some size: the template gives a few characters at a time."""
    held: list[str] = []
    size = 0
    for text in template("page.html").pieces(**_context(run)):
        held.append(text)
        size += len(text)
        if size >= _PIECE:
            yield "".join(held).encode("utf-8", "replace")
            held, size = [], 0
    yield "".join(held).encode("utf-8", "replace")


def _context(run: Run) -> dict[str, Any]:
    page = PageTables(run)
    matrix = wording.has_matrix(run)
    scripts = (*_SCRIPTS, "cases.js") if run.by_cases else _SCRIPTS
    script, style = texts(scripts if matrix else _CASES), texts(_STYLES)
    return {
        "run": run,
        "score": run.score,
        "words": wording,
        "calls": calls,
        "counts": [(outcome, wording.SIGNS[outcome], run.score.counts.get(outcome, 0)) for outcome in OUTCOMES],
        "causes": items(run, page.causes),
        "causes_total": len(page.causes),
        "troubled_total": page.troubled,
        "first": FIRST,
        "matrix": matrix,
        "one_case": ONE_SAMPLE,
        "cases": _cases(run) if run.by_cases else None,
        "counted": mutations.headline(run.score) or (counted(run) if run.by_cases else ""),
        "types": mutations.table(run.score.mutation) if run.score.mutation else None,
        "noun": noun(run),
        "composites": run.part not in ("mutation", "replay"),
        "data": packed(page.tables),
        "lacks": page.lacks,
        "script": script,
        "style": style,
        "policy": policy(script, style),
        "shown": one_line,
    }


def _cases(run: Run) -> dict[str, Any]:
    from holdfast.report.case_page import rows

    return rows(run)


def policy(script: str, style: str) -> str:
    """Nothing is loaded and nothing runs but this script and this style."""
    return (
        f"default-src 'none'; script-src 'sha256-{_hash(script)}'; style-src 'sha256-{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode("ascii")


@cache
def texts(names: tuple[str, ...]) -> str:
    """Files of ours, one after the other."""
    return "\n".join((FOLDER / name).read_text("utf-8") for name in names)
