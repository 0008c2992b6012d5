"""The page in a real browser: opens from disk, runs nothing of the agent's, works by keyboard and on a phone."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.model.run import Run
from holdfast.report.html import Html

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
INTERACTIVE_MS = 1000
"""The budget for 10,000 cells. The best of several openings counts: the machine may be busy, the page is the same."""


@pytest.fixture(scope="module")
def runs() -> Any:
    sys.path.insert(0, str(Path(__file__).parents[1] / "golden"))
    import report_sample

    return report_sample


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if not CHROMIUM.exists():
        if os.environ.get("CI") == "true":
            pytest.fail(f"{CHROMIUM} is missing: run tests/setup.sh as root")
        pytest.skip(f"{CHROMIUM} is missing: run tests/setup.sh as root")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens a run's page; at the end nothing may have gone wrong in it and nothing may have been loaded."""
    contexts, troubles = [], []

    def open_page(run: Run, *, hash: str = "", ready: bool = True, **settings: Any) -> Any:
        file = tmp_path / "report.html"
        file.write_bytes(b"".join(Html().render(run)["report.html"]))
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings})
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("console", lambda said: troubles.append(said.text) if said.type in ("error", "warning") else None)
        page.on("request", lambda asked: troubles.append(asked.url) if not asked.url.startswith("file:") else None)
        page.goto(file.as_uri() + hash)
        if ready:
            page.wait_for_selector("html[data-ready]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []


def focused(page: Any) -> str:
    return str(page.evaluate("document.activeElement.getAttribute('aria-label')"))


def test_hostile_answer_is_text_and_runs_nothing(show: Callable[..., Any], runs: Any) -> None:
    page = show(runs.sample())
    page.click("[aria-label^='fail, 1/2, flaky']")
    assert "<img src=x onerror=window.pwned=1>" in page.inner_text("#panel pre.text:has(mark)")
    assert page.locator("#panel img, #panel script").count() == 0
    assert page.evaluate("window.pwned") is None


def test_controls_and_bidi_are_spelled_out(show: Callable[..., Any], runs: Any) -> None:
    page = show(runs.sample())
    page.click("[aria-label^='fail, 1/2, flaky']")
    spelled = page.locator("#panel .hidden-char").all_inner_texts()
    assert {r"\x1b", r"\x00", r"\u202e", r"\x9b"} <= set(spelled)


def test_cell_opens_prompt_answer_faults_and_command(show: Callable[..., Any], runs: Any) -> None:
    page = show(runs.sample())
    page.click("[aria-label^='fail, 0/2']")
    panel = page.inner_text("#panel")
    for wanted in (
        "always-cite-source",
        "fails in calm too, simulated",
        "What was ACME's Q3 revenue?",
        "call 1",
        "41 tokens → 20 tokens",
        "a late answer was dropped",
        "holdfast contract run --trial dddddddddddd --seed 7",
        "finance.yaml:12",
    ):
        assert wanted in panel
    assert page.inner_text("#panel mark") == "Revenue"


def test_marks_of_a_later_turn_count_past_emoji(show: Callable[..., Any], runs: Any) -> None:
    page = show(runs.sample())
    page.click("[aria-label^='fail, 0/2']")
    page.click("#panel details:nth-of-type(2) summary")
    assert page.inner_text("#panel details:nth-of-type(2) mark") == "up"


def test_copy_button_copies_the_command(show: Callable[..., Any], runs: Any) -> None:
    page = show(runs.sample(), permissions=["clipboard-read", "clipboard-write"])
    page.click("[aria-label^='fail, 0/2']")
    page.click("#panel .copy")
    page.wait_for_selector("text=Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "holdfast contract run --trial dddddddddddd --seed 7"


def test_keyboard_moves_opens_and_closes(show: Callable[..., Any], runs: Any) -> None:
    page = show(runs.sample())
    page.focus(".cell[tabindex='0']")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert focused(page) == "error, never-fabricate in search-tool-down"
    page.keyboard.press("Enter")
    assert page.is_visible("#panel")
    assert page.evaluate("document.activeElement.id") == "panel-title"
    page.keyboard.press("Escape")
    assert page.is_hidden("#panel")
    assert focused(page) == "error, never-fabricate in search-tool-down"


def test_focus_is_visible(show: Callable[..., Any], runs: Any) -> None:
    page = show(runs.sample())
    page.focus("#text")
    page.keyboard.press("Tab")
    page.focus(".cell[tabindex='0']")
    page.keyboard.press("ArrowRight")
    style = page.evaluate(
        "getComputedStyle(document.activeElement).outlineStyle + getComputedStyle(document.activeElement).outlineWidth"
    )
    assert style == "solid3px"


def test_filters_narrow_the_matrix_and_live_in_the_address(show: Callable[..., Any], runs: Any) -> None:
    page = show(runs.sample())
    page.click("[data-outcome='fail']")
    assert page.inner_text("#status") == "3 of 10 cells"
    page.select_option("#scenario", "llm-degraded")
    assert page.inner_text("#status") == "1 of 10 cells"
    assert page.evaluate("location.hash") == "#outcome=fail&scenario=llm-degraded"
    page.click("#clear")
    assert page.inner_text("#status") == "10 cells"


def test_text_filter_looks_into_answers_and_reasons(show: Callable[..., Any], runs: Any) -> None:
    page = show(runs.sample())
    page.fill("#text", "Timeout after")
    page.wait_for_selector("#clear:not([hidden])")
    assert page.inner_text("#status") == "1 of 10 cells"


def test_address_brings_the_same_view_back(show: Callable[..., Any], runs: Any) -> None:
    page = show(runs.sample(), hash="#severity=critical&cell=always-cite-source%7Cllm-degraded")
    assert page.inner_text("#status") == "4 of 10 cells"
    assert "llm-degraded" in page.inner_text("#panel-title")


def test_link_of_the_list_opens_its_cell(show: Callable[..., Any], runs: Any) -> None:
    page = show(runs.sample())
    page.click(".trouble li:nth-child(5) a")
    page.wait_for_selector("#panel:not([hidden])")
    assert "never-fabricate" in page.inner_text("#panel-title")
    assert "ask something that makes the agent call its model" in page.inner_text("#panel")


def test_phone_shows_the_page_without_sideways_scrolling(show: Callable[..., Any], runs: Any) -> None:
    page = show(runs.sample(), viewport={"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.click(".trouble a")
    page.wait_for_selector("#panel:not([hidden])")
    assert page.evaluate("document.getElementById('panel').scrollWidth") <= 390


def test_heads_stay_while_a_large_matrix_scrolls(show: Callable[..., Any], runs: Any) -> None:
    page = show(runs.large(100, 50))
    page.evaluate("document.getElementById('matrix').scrollTo(900, 2000)")
    page.wait_for_selector("[data-row='70']")
    corner, matrix = page.locator(".corner").bounding_box(), page.locator("#matrix").bounding_box()
    assert abs(corner["x"] - matrix["x"]) <= 1
    assert abs(corner["y"] - matrix["y"]) <= 2


def test_dark_mode_is_dark(show: Callable[..., Any], runs: Any) -> None:
    page = show(runs.sample(), color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 23, 26)"


def test_without_scripts_the_page_still_says_what_failed(show: Callable[..., Any], runs: Any) -> None:
    page = show(runs.sample(), ready=False, java_script_enabled=False)
    shown = page.inner_text("main")
    assert "FAIL, resilience 60.00" in shown
    assert "max-latency in search-tool-down order may differ\nno answer: timeout after 30000 ms" in shown


@pytest.mark.parametrize("settings", [{}, {"viewport": {"width": 390, "height": 800}}], ids=["desk", "phone"])
def test_a_cause_opens_its_cells_and_shows_them_alone(show: Callable[..., Any], runs: Any, settings: Any) -> None:
    page = show(runs.shared(), **settings)
    assert "11 cells, 1 cause" in page.inner_text("#trouble-head")
    page.click(".cause > summary")
    assert page.locator(".cause .members a").count() == 11
    assert "rule\nNames a source" in page.inner_text(".cause .told")
    page.click(".cause .only")
    assert page.inner_text("#status") == "11 of 22 cells, of one cause"
    assert page.url.endswith("#cause=1")
    assert page.locator("#matrix [role=rowheader]").count() == 1
    page.click("#clear")
    assert page.inner_text("#status") == "22 cells"
    page.click(".cause .members a >> nth=10")
    assert "in checkout-with-three-items-and-a-voucher-tool-slow-504" in page.inner_text("#panel-title")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("width", [390, 1280])
def test_heads_that_begin_alike_are_told_apart(show: Callable[..., Any], runs: Any, width: int) -> None:
    page = show(runs.shared(), viewport={"width": width, "height": 800})
    heads = page.locator(".head").all_inner_texts()
    assert len(set(heads)) == len(heads) == 11
    assert heads[0] == "no-chaos"
    assert all("…" in head and head.endswith(f"-50{n % 5}") for n, head in enumerate(heads[1:]))
    cut = "[...document.querySelectorAll('.head > span')].filter((s) => s.scrollHeight > s.clientHeight + 1).length"
    assert page.evaluate(cut) == 0


@pytest.mark.parametrize("width", [390, 1280])
def test_heads_of_long_names_leave_the_columns_narrow(show: Callable[..., Any], runs: Any, width: int) -> None:
    run = runs.sample()
    name = "payment-provider-outage-" * 12
    scenarios = (*run.scenarios[:2], replace(run.scenarios[2], name=name))
    cells = [
        replace(row, cell=replace(row.cell, scenario=name)) if row.cell.scenario == "llm-degraded" else row
        for row in run.cells
    ]
    page = show(replace(run, scenarios=scenarios, cells=cells), viewport={"width": width, "height": 800})
    widths = page.evaluate("[...document.querySelectorAll('.head')].map((one) => one.offsetWidth)")
    assert max(widths) <= max(100, width / 3)
    assert name in page.get_attribute(".head >> nth=2", "title")


def test_a_cause_opens_without_scripts(show: Callable[..., Any], runs: Any) -> None:
    page = show(runs.shared(), ready=False, java_script_enabled=False)
    page.click(".cause > summary")
    assert "found '$10' which must not appear" in page.inner_text(".cause .members")
    assert page.is_hidden(".cause .only")


def test_ten_thousand_cells_are_usable_within_a_second(show: Callable[..., Any], runs: Any) -> None:
    run = runs.large(200, 50)
    times = [int(show(run).get_attribute("html", "data-ready")) for _ in range(3)]
    assert min(times) <= INTERACTIVE_MS


@pytest.mark.parametrize("name", ["with_matrix", "alone"])
def test_a_case_opens_its_evidence_and_what_the_agent_did(show: Callable[..., Any], runs: Any, name: str) -> None:
    assert runs  # its folder is on the path
    import report_cases_sample

    page = show(getattr(report_cases_sample, name)(), ready=name == "with_matrix")
    assert page.locator("#cases > details").count() == 3
    page.click("#cases > details:nth-of-type(2) > summary")
    shown = page.inner_text("#cases > details:nth-of-type(2)")
    for wanted in (
        "holds-<b>up</b>",
        "gate",
        "POST http://evil/",
        "reset_peer",
        "insert db.renewals: 1 row",
        "--trial bbb",
    ):
        assert wanted in shown
    assert page.locator("#cases img, #cases script").count() == 0
    assert page.evaluate("window.pwned") is None
    assert page.locator("#cases button.copy").count() == 4


def test_cases_without_a_matrix_are_read_without_scripts_and_on_a_phone(show: Callable[..., Any], runs: Any) -> None:
    assert runs
    import report_cases_sample

    settings = {"java_script_enabled": False, "viewport": {"width": 390, "height": 800}}
    page = show(report_cases_sample.alone(), ready=False, **settings)
    assert "1 of 3 cases passed, 1 flaky" in page.inner_text("header.top")
    page.click("#cases > details:nth-of-type(1) > summary")
    assert "max-latency" in page.inner_text("#cases > details:nth-of-type(1)")
