"""The run as one self-contained page that opens from disk: the viewer's bundle with the documents of one run."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import ClassVar

from msgspec import convert

from holdfast.model.run import Overall, Run
from holdfast.model.spec import Part
from holdfast.report import overall
from holdfast.report.page.inlined import DocumentPack, InlinedRun, inline_overall
from holdfast.report.safe import get_painter, to_one_line
from holdfast.report.terminal.summary import format_details, format_summary
from holdfast.report.wording import format_verdict

BUNDLE = Path(__file__).parent / "bundle"
"""The files that `make page` builds from `frontend/`: a script, a style and the page that both front ends fill."""


WIDTH = 100
"""Columns of the text that a page shows without scripts."""


class Html:
    """`report.html`: verdict, score, causes, cases, matrix; a cell or a case opens its trials."""

    suffix: ClassVar[str] = ".html"

    def render(self, run: Run) -> Mapping[str, Iterable[bytes]]:
        return {"report.html": _render_run_page(run)}


def _render_run_page(run: Run) -> Iterator[bytes]:
    main = render_text(format_summary(run, width=WIDTH, color=False), *_format_map(run))
    yield from _render_pieces(format_verdict(run.score), run.name or run.spec_path, main, InlinedRun(run).packed)


def _format_map(run: Run) -> Iterator[str]:
    if run.map:
        from holdfast.hunt.fault_map import FaultMap  # only for hunts: it imports the search
        from holdfast.report.terminal.hunt import format_map

        yield "\n".join(format_map(convert(run.map, FaultMap)))


def render_overall_page(whole: Overall, runs: Mapping[Part, Run]) -> Iterator[bytes]:
    """Yield the page of a run of several parts."""
    texts = [overall.format_summary(whole, color=False)]
    for part in whole.parts:
        if part.exit_code and part.part in runs:
            texts += [f"== {part.part}\n", *format_details(runs[part.part], WIDTH, get_painter(False))]
    pages = (f'<li><a href="{escape(one.page)}">{one.part}</a></li>' for one in whole.parts if one.page)
    main = f"{render_text(*texts)}\n<ul>{''.join(pages)}</ul>"
    yield from _render_pieces(format_verdict(whole), whole.name or whole.spec_path, main, inline_overall(whole, runs))


def render_text(*texts: str) -> str:
    """Return a run as a terminal shows it: what a page says without scripts, and a notebook's output."""
    return f'<pre class="plain">{escape(chr(10).join(texts))}</pre>'


def build_shell(head: str, main: str) -> tuple[str, str]:
    """Return the page before and after its script. `main` is what it shows before the script runs."""
    text = bundle_text("page.html").replace("<!-- head -->", head, 1)
    before, _, after = text.partition("<!-- main -->")
    between, _, after = after.partition("<!-- end -->")
    return before + main + between, after


def _render_pieces(verdict: str, name: str, main: str, packed: DocumentPack) -> Iterator[bytes]:
    script, style = bundle_text("page.js"), bundle_text("page.css")
    # The page loads nothing, and only this script and this style run.
    policy = (
        f"default-src 'none'; script-src 'sha256-{_hash(script)}'; style-src 'sha256-{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    title = f"<title>{escape(to_one_line(f'{verdict} · {name}'))}</title>"
    before, after = build_shell(
        f"{meta}\n{title}\n<style>{style}</style>", f"<h1>{escape(to_one_line(name))}</h1>\n{main}"
    )
    yield f'{before}<script type="application/octet-stream" id="data">'.encode("utf-8", "replace")
    for piece in packed.encode_pieces():
        yield piece.encode("ascii")
    yield f"</script>\n<script>{script}</script>{after}".encode()


@cache
def bundle_text(name: str) -> str:
    """Return the text of a file of the bundle."""
    return (BUNDLE / name).read_text("utf-8")


@cache
def _hash(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode("ascii")
