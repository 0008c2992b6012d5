"""Each report of runs with cases, compared with the file it gave before. UPDATE_GOLDEN=1 writes them anew."""

from __future__ import annotations

import pytest
from report_cases_sample import alone, with_matrix
from report_sample import whole
from test_report_golden import compare, golden

from holdfast import plugins
from holdfast.model.run import Run
from holdfast.report.terminal.summary import format_summary

RUNS = {"matrix": with_matrix, "alone": alone}


def rendered(reporter: str, run: Run) -> str:
    return whole(plugins.find("reporters", reporter)(), run).decode()


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("reporter", plugins.BUILT_IN["reporters"])
def test_reporter_gives_the_golden_file(name: str, reporter: str) -> None:
    compare(*golden(f"cases-{name}", plugins.find("reporters", reporter).suffix, rendered(reporter, RUNS[name]())))


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize(
    ("file", "settings"),
    [("100", {"width": 100}), ("verbose", {"width": 100, "verbose": True}), ("quiet", {"width": 100, "quiet": True})],
)
def test_summary_gives_the_golden_text(name: str, file: str, settings: dict[str, int]) -> None:
    compare(f"cases-{name}-{file}.txt", format_summary(RUNS[name](), color=False, **settings))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", RUNS)
def test_what_an_agent_says_never_becomes_markup(name: str) -> None:
    page = rendered("html", RUNS[name]())
    assert "<script>window" not in page
    assert "<img" not in page
    assert "\u202e" not in page
    assert "</pre>.txt" not in page
