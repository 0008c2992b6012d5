"""The run as one self-contained page that opens from disk: the viewer's bundle with the documents of one run."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import ClassVar

from holdfast.model.run import Overall, Run
from holdfast.model.spec import Part
from holdfast.report.page.inlined import DocumentPack, InlinedRun, inline_overall
from holdfast.report.page.static import Markup, format_title, render_static_page

BUNDLE = Path(__file__).parent / "bundle"
"""The files that `make page` builds from `frontend/`: a script, a style and the page that both front ends fill."""


class Html:
    """`report.html`: verdict, score, causes, cases, matrix; a cell or a case opens its trials."""

    suffix: ClassVar[str] = ".html"

    def render(self, run: Run) -> Mapping[str, Iterable[bytes]]:
        return {"report.html": _render_run_page(run)}


def _render_run_page(run: Run) -> Iterator[bytes]:
    page = InlinedRun(run)
    yield from _render_pieces(format_title(page.run), render_static_page(page.run, page.causes), page.packed)


def render_overall_page(whole: Overall, runs: Mapping[Part, Run]) -> Iterator[bytes]:
    """Yield the page of a run of several parts."""
    document, packed = inline_overall(whole, runs)
    yield from _render_pieces(format_title(document), render_static_page(document, {}), packed)


def build_shell(head: str, main: str) -> tuple[str, str]:
    """Return the page before and after its script. `main` is what it shows before the script runs."""
    text = bundle_text("page.html").replace("<!-- head -->", head, 1)
    before, _, after = text.partition("<!-- main -->")
    between, _, after = after.partition("<!-- end -->")
    return before + main + between, after


def _render_pieces(title: str, main: Markup, packed: DocumentPack) -> Iterator[bytes]:
    script, style = bundle_text("page.js"), bundle_text("page.css")
    # The page loads nothing, and only this script and this style run.
    policy = (
        f"default-src 'none'; script-src 'sha256-{_hash(script)}'; style-src 'sha256-{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    before, after = build_shell(f"{meta}\n<title>{escape(title)}</title>\n<style>{style}</style>", main)
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
