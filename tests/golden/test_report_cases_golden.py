"""Each report of runs with cases, compared with the file it gave before. UPDATE_GOLDEN=1 writes them anew."""

from __future__ import annotations

import re

import pytest
from report_cases_sample import alone, with_matrix
from report_sample import whole
from test_report_golden import compare, readable

from holdfast import plugins
from holdfast.model.run import Run
from holdfast.report.terminal import summary

RUNS = {"matrix": with_matrix, "alone": alone}


def rendered(reporter: str, run: Run) -> str:
    return whole(plugins.find("reporters", reporter)(), run).decode()


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize(("reporter", "suffix"), [("json", "json"), ("junit", "xml"), ("markdown", "md")])
def test_reporter_gives_the_golden_file(name: str, reporter: str, suffix: str) -> None:
    compare(f"cases-{name}.{suffix}", rendered(reporter, RUNS[name]()))


def test_html_with_a_matrix_gives_the_golden_page() -> None:
    compare("cases-matrix.html.txt", readable(rendered("html", with_matrix())))


def test_html_without_a_matrix_gives_the_golden_page() -> None:
    page = rendered("html", alone())
    assert 'id="data"' not in page
    page = re.sub(r"<style>.*?</style>", "<style>[style]</style>", page, flags=re.S)
    page = re.sub(r'<script type="module">.*?</script>', '<script type="module">[script]</script>', page, flags=re.S)
    compare("cases-alone.html.txt", re.sub(r"sha256-[^&]+", "sha256-[hash]", page))


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize(
    ("file", "settings"),
    [("100", {"width": 100}), ("verbose", {"width": 100, "verbose": True}), ("quiet", {"width": 100, "quiet": True})],
)
def test_summary_gives_the_golden_text(name: str, file: str, settings: dict[str, int]) -> None:
    compare(f"cases-{name}-{file}.txt", summary(RUNS[name](), color=False, **settings))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", RUNS)
def test_what_an_agent_says_never_becomes_markup(name: str) -> None:
    page = rendered("html", RUNS[name]())
    assert "<script>window" not in page
    assert "<img" not in page
    assert "\u202e" not in page
    assert "</pre>.txt" not in page
