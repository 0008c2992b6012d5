"""Each report of the sample run, compared with the file it gave before. UPDATE_GOLDEN=1 writes them anew."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from report_sample import sample, whole

from holdfast import plugins
from holdfast.report.terminal.summary import format_summary
from page_documents import documents

FOLDER = Path(__file__).parent / "report"


def golden(name: str, suffix: str, text: str) -> tuple[str, str]:
    """The golden file of a report, and the report as it has it: a page unpacked, anything else as it is."""
    return (f"{name}.html.txt", readable(text)) if suffix == ".html" else (f"{name}{suffix}", text)


def readable(page: str) -> str:
    """The page with its documents unpacked, and without our own script and style, which have tests of their own."""
    shown = json.dumps(documents(page), indent=1, ensure_ascii=True)
    page = re.sub(r'(id="data">)[^<]*', lambda match: f"{match[1]}\n{shown}\n", page)
    page = re.sub(r"<style>.*?</style>", "<style>[style]</style>", page, flags=re.S)
    page = re.sub(r"<script>.*?</script>", "<script>[script]</script>", page, flags=re.S)
    return re.sub(r"sha256-[^']+", "sha256-[hash]", page)


def compare(name: str, text: str) -> None:
    file = FOLDER / name
    if os.environ.get("UPDATE_GOLDEN"):
        FOLDER.mkdir(exist_ok=True)
        file.write_bytes(text.encode())
    assert text == file.read_bytes().decode()


@pytest.mark.parametrize("name", plugins.BUILT_IN["reporters"])
def test_reporter_gives_the_golden_file(name: str) -> None:
    made = plugins.find("reporters", name)()
    assert [*made.render(sample())] == [f"report{made.suffix}"]
    compare(*golden("report", made.suffix, whole(made, sample()).decode()))


@pytest.mark.parametrize(
    ("file", "settings"),
    [
        ("summary-100.txt", {"width": 100}),
        ("summary-60.txt", {"width": 60}),
        ("summary-verbose.txt", {"width": 100, "verbose": True}),
        ("summary-quiet.txt", {"width": 100, "quiet": True}),
    ],
)
def test_summary_gives_the_golden_text(file: str, settings: dict[str, int]) -> None:
    compare(file, format_summary(sample(), color=False, **settings))  # type: ignore[arg-type]
