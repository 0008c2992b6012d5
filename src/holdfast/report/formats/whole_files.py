"""Reports of a run of several parts: one page, one document, or a folder with all of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

from msgspec.structs import replace

from holdfast import plugins
from holdfast.errors import HoldfastError, UsageError
from holdfast.model.run import Overall, Run
from holdfast.model.spec import Part
from holdfast.report import overall as words
from holdfast.report.causes.cause_words import build_entries
from holdfast.report.formats.files import encode_pieces, get_reporter, get_suffix, make_folder, write_atomically
from holdfast.report.formats.json import build_document
from holdfast.report.formats.junit import render_suites
from holdfast.report.formats.markdown import Markdown
from holdfast.report.formats.sarif import build_whole_document
from holdfast.report.page.html import render_overall_page
from holdfast.report.safe import to_one_line
from holdfast.report.wording import format_verdict

Runs = Mapping[Part, Run]
JOINED = (".html", ".json", ".md", ".xml", ".sarif")
"""Formats that hold all parts in one file."""


def check_output(path: Path) -> None:
    """Reject a file format that cannot hold several parts; a name without a suffix is a folder."""
    if path.suffix and path.suffix.lower() not in JOINED and not path.is_dir():
        hint = f"end it in one of {', '.join(JOINED)}, or name a folder"
        raise UsageError(
            f"cannot tell the format of {path}: its name ends in {path.suffix}", hint=hint, code="format-unknown"
        )
    if path.is_file() and not path.suffix:
        raise UsageError(f"-o {path} is a file", hint="name a folder, or a file by its suffix", code="argument-invalid")


def write_whole(whole: Overall, runs: Runs, path: Path, *, home: Path) -> str:
    """Write one report or a folder of them, and return why that failed, if it did. `home` is the run's folder."""
    try:
        if path.suffix.lower() in JOINED and not path.is_dir():
            make_folder(path.parent)
            write_atomically(path, _render(whole, runs, path, home))
        else:
            _write_folder(whole, runs, path)
    except HoldfastError as refused:
        return to_one_line(str(refused))
    except OSError as refused:
        return to_one_line(f"cannot write {path}: {refused.strerror}")
    return ""


def _render(whole: Overall, runs: Runs, path: Path, home: Path) -> Iterable[bytes]:
    suffix = path.suffix.lower()
    if suffix == ".html":
        return render_overall_page(_link_pages(whole, os.path.relpath(home, path.parent)), runs)
    if suffix == ".json":
        return _render_json(whole, runs)
    if suffix == ".md":
        return render_markdown(whole, runs)
    return _render_junit(whole, runs) if suffix == ".xml" else _render_sarif(whole, runs)


def _write_folder(whole: Overall, runs: Runs, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for part, run in runs.items():
        for name in plugins.BUILT_IN["reporters"]:
            rendered = next(iter(get_reporter(name).render(run).values()))
            write_atomically(folder / f"{part}{get_suffix(name)}", rendered)
    pages = {run.id: f"{part}.html" for part, run in runs.items()}
    own = replace(whole, parts=tuple(replace(p, page=pages.get(p.run, "")) for p in whole.parts))
    write_atomically(folder / "report.html", render_overall_page(own, runs))
    write_atomically(folder / "report.json", _render_json(whole, runs))
    write_atomically(folder / "report.md", render_markdown(whole, runs))


def _link_pages(whole: Overall, home: str) -> Overall:
    """Return the pages of the parts, relative to the report."""
    pages = {p.part: os.path.join(home, p.page) if p.page and home != "." else p.page for p in whole.parts}
    return replace(whole, parts=tuple(replace(p, page=pages[p.part]) for p in whole.parts))


def _render_json(overall: Overall, runs: Runs) -> Iterator[bytes]:
    """Yield the overall score, then each part with all of its details."""
    document = words.build_document(overall)
    document["causes"] = (cause for run in runs.values() for cause in build_entries(run))
    for part, run in runs.items():
        for name, details in build_document(run)["parts"].items():
            part_document = document["parts"].setdefault(name, {})
            part_document["details"] = details
        document["parts"][part].setdefault("warnings", run.warnings)
    yield from encode_pieces(document)
    yield b"\n"


def select_failed(whole: Overall, runs: Runs) -> Runs:
    """Return the parts that failed."""
    return {part.part: runs[part.part] for part in whole.parts if part.exit_code and part.part in runs}


def render_markdown(whole: Overall, runs: Runs) -> Iterator[bytes]:
    """Yield the overall result, then each failed part with its causes and its matrix."""
    yield words.format_markdown(whole).encode("utf-8", "replace")
    for run in runs.values():
        yield b"\n"
        yield from next(iter(Markdown().render(run).values()))


def _render_junit(whole: Overall, runs: Runs) -> Iterator[bytes]:
    """Yield the suites of all parts, and one for the overall verdict."""
    verdict = ET.Element("testcase", classname="overall", name="verdict", time="0.000")
    kinds = {"PASS": "", "FAIL": "failure", "UNPROVEN": "skipped", "SHARD": "skipped"}
    if kind := kinds.get(format_verdict(whole), "error"):
        ET.SubElement(verdict, kind, message=to_one_line("; ".join(whole.reasons)))
    return render_suites(whole.name or whole.spec_path, runs.items(), verdict)


def _render_sarif(whole: Overall, runs: Runs) -> Iterator[bytes]:
    """Yield one log with a SARIF run for each part, and one for the overall verdict."""
    yield from encode_pieces(build_whole_document(whole, runs.values()))
    yield b"\n"
