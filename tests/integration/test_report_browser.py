"""The page in a real browser: opens from disk, runs nothing of the agent's, works by keyboard and on a phone."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from view_kit import watched_page

import page_build
from holdfast.model.run import Overall, PartResult, Run
from holdfast.report.page.html import BUNDLE, Html, render_overall_page


@pytest.fixture(scope="module")
def runs() -> Any:
    sys.path.insert(0, str(Path(__file__).parents[1] / "golden"))
    import report_sample

    return report_sample


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens a run's page; at the end nothing may have gone wrong in it and nothing may have been loaded."""
    contexts, troubles = [], []

    def open_page(run: Run | Overall, *, hash: str = "", ready: bool = True, **settings: Any) -> Any:
        file = tmp_path / "report.html"
        pieces: Iterable[bytes] = (
            render_overall_page(run, {}) if isinstance(run, Overall) else Html().render(run)["report.html"]
        )
        file.write_bytes(b"".join(pieces))
        page = watched_page(browser, troubles, "file:", **settings)
        contexts.append(page.context)
        page.goto(file.as_uri() + hash)
        if ready:
            page.wait_for_selector("html[data-ready]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []


def mapped(count: int, name: str = "tool") -> dict[str, Any]:
    """A map of so many calls, each of which feeds the next one and the answer, the last one a row and a file."""
    kinds = [[("call", f"{name} #{n + 2}"), ("answer", "answer")] for n in range(count - 1)]
    kinds.append([("row", "db.orders"), ("file", "notes.txt")])
    sites = [
        {"plane": "tool", "target": name, "on_call": n + 1, "write": n % 2 == 1, "feeds": [], "prompt": "Go.",
         "links": [{"to": to, "kind": kind, "values": ["C-40417"]} for kind, to in links]}
        for n, links in enumerate(kinds)
    ]  # fmt: skip
    modes = {"error": {"state": "failed", "n": 1}, "slow": {"state": "held", "n": 2}, "stale": {"state": "open"}}
    rows = [{"plane": "tool", "target": name, "on_call": n + 1, "modes": modes} for n in range(count)]
    coverage = {"total": 3 * count, "held": count, "failed": count, "not_met": 0, "open": count, "rows": rows}
    return {"sites": sites, "coverage": coverage, "scores": [{"part": "contract", "run": "0007", "score": 100.0}]}


def test_a_map_can_be_read_by_keyboard(show: Callable[..., Any], runs: Any) -> None:
    page = show(replace(runs.sample(), map=mapped(3)))
    rows = page.locator(".map .site")
    assert rows.count() == 6
    assert page.locator(".map .edge").count() == 6
    rows.first.focus()
    page.keyboard.press("ArrowDown")
    told = page.inner_text(".map .tip")
    assert told == rows.nth(1).get_attribute("aria-label")
    assert all(word in told for word in ("tool #2", "a write", "tool #3", "C-40417", "1 failed"))
    assert page.locator(".map .edge.on").count() == 3
    page.keyboard.press("End")
    assert "tool #1" in page.inner_text(".map .tip")


@pytest.mark.parametrize("width", [360, 1280])
def test_a_map_with_many_calls_and_long_names_fits(show: Callable[..., Any], runs: Any, width: int) -> None:
    page = show(replace(runs.sample(), map=mapped(40, "a_tool_" * 20)), viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    right = "(one) => one.getBoundingClientRect().right"
    drawn = page.locator(".map svg").evaluate(right)
    assert max(page.locator(".map text").evaluate_all(f"(all) => all.map({right})")) <= drawn + 1


def here(page: Any) -> str:
    """The cell that the keys are at."""
    return str(page.get_attribute(".matrix .cell.here", "aria-label"))


def open_cell(page: Any, label: str) -> None:
    page.click(f".matrix [aria-label^='{label}']")
    page.wait_for_selector("#panel .trial")


def status(page: Any) -> str:
    return str(page.inner_text("section > .status[role=status]"))


def test_hostile_answer_is_text_and_runs_nothing(show: Callable[..., Any], runs: Any) -> None:
    page = show(runs.sample())
    open_cell(page, "fail, 1/2, flaky")
    page.wait_for_selector("#panel pre.text mark")
    assert "<img src=x onerror=window.pwned=1>" in page.inner_text("#panel pre.text:has(mark)")
    assert {r"\x1b", r"\x00", r"\u202e", r"\x9b"} <= set(page.locator("#panel .hidden-char").all_inner_texts())
    assert page.locator("main img, main script, #panel img, #panel script").count() == 0
    assert page.evaluate("window.pwned") is None


def test_cell_opens_prompt_answer_faults_and_command(show: Callable[..., Any], runs: Any) -> None:
    page = show(runs.sample(), permissions=["clipboard-read", "clipboard-write"])
    open_cell(page, "fail, 0/2")
    panel = page.inner_text("#panel")
    for wanted in (
        "always-cite-source",
        "fails in calm too, simulated",
        "What was ACME's Q3 revenue?",
        "llm, call 1: truncated_response, 41 tokens → 20 tokens",
        "holdfast contract run --trial dddddddddddd --seed 7",
        "finance.yaml:12",
    ):
        assert wanted in panel
    page.wait_for_selector("#panel mark")
    assert page.inner_text("#panel mark") == "Revenue"
    page.click("#panel .copy")
    page.wait_for_selector("text=Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "holdfast contract run --trial dddddddddddd --seed 7"


def test_marks_of_a_later_turn_count_past_emoji(show: Callable[..., Any], runs: Any) -> None:
    page = show(runs.sample())
    open_cell(page, "fail, 0/2")
    page.click("#panel details:nth-of-type(2) summary")
    page.wait_for_selector("#panel details:nth-of-type(2) mark")
    assert page.inner_text("#panel details:nth-of-type(2) mark") == "up"


def test_keyboard_moves_opens_closes_and_is_seen(show: Callable[..., Any], runs: Any) -> None:
    page = show(runs.sample())
    page.focus(".matrix")
    for key in ("ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    assert here(page) == "error, never-fabricate in search-tool-down"
    outline = (
        "(style => style.outlineStyle + style.outlineWidth)(getComputedStyle(document.querySelector('.cell.here')))"
    )
    assert page.evaluate(outline) == "solid3px"
    page.keyboard.press("Enter")
    page.wait_for_selector("#panel .trial")
    assert page.evaluate("document.activeElement.id") == "panel-title"
    page.keyboard.press("Escape")
    assert page.is_hidden("#panel")
    assert page.evaluate("document.activeElement.classList.contains('matrix')")
    page.keyboard.press("?")
    assert "search answers" in page.inner_text("#keys")
    assert "compare" not in page.inner_text("#keys")


def test_filters_narrow_the_matrix_and_live_in_the_address(show: Callable[..., Any], runs: Any) -> None:
    page = show(runs.sample())
    page.click("[data-outcome='fail']")
    assert status(page) == "3 of 10 cells"
    page.select_option("label:has-text('Scenario') select", "llm-degraded")
    assert status(page) == "1 of 10 cells"
    assert page.evaluate("location.hash") == "#/?outcome=fail&scenario=llm-degraded"
    page.click("#clear")
    assert status(page) == "10 cells"
    page.fill("#cells-text", "Timeout after")
    page.wait_for_selector("#clear:not([hidden])")
    assert status(page) == "1 of 10 cells"


def test_address_brings_the_same_view_back(show: Callable[..., Any], runs: Any) -> None:
    page = show(runs.sample(), hash="#/?severity=critical&cell=always-cite-source%7Cllm-degraded")
    assert status(page) == "4 of 10 cells"
    assert "llm-degraded" in page.inner_text("#panel-title")


def test_what_the_page_does_not_have_is_told(show: Callable[..., Any], runs: Any) -> None:
    page = show(runs.sample(), hash="#/trial/123412341234")
    assert "holdfast view" in page.inner_text("[role=alert]")
    page.click("[role=alert] a")
    page.wait_for_selector("html[data-page=run][data-ready]")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marks_in_a_cell_have_the_contrast_of_its_sign(show: Callable[..., Any], runs: Any, scheme: str) -> None:
    page = show(runs.sample(), color_scheme=scheme)
    colors = "(marks) => marks.map((one) => [one, one.parentNode].map((it) => getComputedStyle(it).color))"
    found = page.eval_on_selector_all(".cell small", colors)
    assert found
    assert all(own == sign for own, sign in found)


def test_heads_stay_while_a_large_matrix_scrolls(show: Callable[..., Any], runs: Any) -> None:
    page = show(runs.large(100, 50))
    page.evaluate("document.querySelector('.matrix').scrollTo(900, 2000)")
    page.wait_for_selector(".mrow[aria-rowindex='70']")
    corner, matrix = page.locator(".corner").bounding_box(), page.locator(".matrix").bounding_box()
    assert abs(corner["x"] - matrix["x"]) <= 1
    assert abs(corner["y"] - matrix["y"]) <= 2
    assert page.locator(".matrix .cell").count() < 2_500
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".matrix .cell").count() == 100 * 50


def test_without_scripts_the_page_still_says_what_failed(show: Callable[..., Any], runs: Any) -> None:
    page = show(runs.sample(), ready=False, java_script_enabled=False)
    shown = page.inner_text("main")
    for wanted in ("FAIL", "2 critical cells failed", "60.00", "✘ max-latency · search-tool-down", " 30000 ms"):
        assert wanted in shown
    assert page.is_hidden("#find")


@pytest.mark.parametrize("settings", [{}, {"viewport": {"width": 390, "height": 800}}], ids=["desk", "phone"])
def test_a_cause_opens_its_cells_and_shows_them_alone(show: Callable[..., Any], runs: Any, settings: Any) -> None:
    page = show(runs.shared(), **settings)
    assert "1 cause in 11 cells" in page.inner_text(".did-not-hold")
    assert "rule\nNames a source" in page.inner_text(".cause .facts")
    assert page.locator(".cause .places a").count() == 8
    page.click(".cause .only")
    page.wait_for_selector("#clear:not([hidden])")
    assert status(page).startswith("11 of 22 cells, ")
    assert page.url.endswith("#/?cause=1")
    # The matrix is drawn after the status.
    page.wait_for_selector(".matrix [role=rowheader] >> nth=1", state="detached")
    assert page.locator(".matrix [role=rowheader]").count() == 1
    page.reload()
    page.wait_for_selector("#clear:not([hidden])")
    page.wait_for_selector(".status:text-is('11 of 22 cells, of one cause')")
    page.click("#clear")
    assert status(page) == "22 cells"
    page.click(".cause .places a >> nth=7")
    page.wait_for_selector("#panel .trial")
    assert "in checkout-with-three-items-and-a-voucher-tool-slow-501" in page.inner_text("#panel-title")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("width", [390, 1280])
def test_heads_that_begin_alike_are_told_apart(show: Callable[..., Any], runs: Any, width: int) -> None:
    page = show(runs.shared(), viewport={"width": width, "height": 800})
    page.evaluate("document.querySelector('.matrix').scrollTo(0, 0)")
    heads = page.locator(".head").all_inner_texts()
    assert len(set(heads)) == len(heads) >= 8
    assert heads[0] == "no-chaos"
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


@pytest.mark.parametrize("name", ["with_matrix", "alone"])
def test_a_case_opens_its_evidence_and_what_the_agent_did(show: Callable[..., Any], runs: Any, name: str) -> None:
    assert runs  # its folder is on the path
    import report_cases_sample

    page = show(getattr(report_cases_sample, name)())
    assert "1 of 3 cases " in page.inner_text("header.top")
    assert page.locator(".case-row").count() == 3
    page.click(".case-row:has-text('search-tool-down') a >> nth=0")
    page.wait_for_selector("html[data-page=trial][data-ready]")
    shown = page.inner_text("main")
    for wanted in ("holds-<b>up</b>", "POST http://evil/", "reset_peer", "insert db.renewals: 1 row", "--trial bbb"):
        assert wanted in shown
    assert page.locator("main img, main script").count() == 0
    assert page.evaluate("window.pwned") is None


def test_cases_are_read_without_scripts_and_on_a_phone(show: Callable[..., Any], runs: Any) -> None:
    assert runs
    import report_cases_sample

    settings = {"java_script_enabled": False, "viewport": {"width": 390, "height": 800}}
    page = show(report_cases_sample.alone(), ready=False, **settings)
    shown = page.inner_text("main")
    for wanted in ("1 of 3 cases passed, 1 flaky", "search-tool-down [lang=de]", "holds-<b>up</b>"):
        assert wanted in shown
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize(
    ("scripts", "scored", "linked"), [(True, "header.top", ".parts-table a"), (False, "main pre", "main li a")]
)
def test_overall_page_leads_to_the_page_of_each_part(
    show: Callable[..., Any], scripts: bool, scored: str, linked: str
) -> None:
    ran = PartResult(
        "contract", 82.5, share=1.0, weight=0.4, passed=True, run="0004/contract", page="contract/report.html"
    )
    parts = (ran, PartResult("mutation", skipped="no <i>"))
    found = Overall("0004", 82.5, True, 0, parts, name="<b>Desk</b>")
    page = show(found, ready=scripts, java_script_enabled=scripts, viewport={"width": 390, "height": 800})
    assert page.inner_text("h1") == "<b>Desk</b>"
    assert "82.50" in page.inner_text(scored)
    assert page.get_attribute(linked, "href") == "contract/report.html"
    assert page.locator(linked).count() == 1
    assert "no <i>" in page.inner_text(scored)
    assert page.locator("main b:text-is('Desk'), main i:text-is('no')").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_bundle_is_what_its_modules_give(tmp_path: Path) -> None:
    if not page_build.ESBUILD.exists():
        if os.environ.get("CI") == "true":
            pytest.fail("esbuild is missing: run tests/setup.sh")
        pytest.skip("esbuild is missing: run tests/setup.sh")
    page_build.build(tmp_path)
    for made in tmp_path.iterdir():
        assert made.read_bytes() == (BUNDLE / made.name).read_bytes(), "run make page"
