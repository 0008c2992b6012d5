"""The site, built strictly by `make site` and opened from the disk in a real browser."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from site_build import REPO, SitePages
from site_plugins import CHECKS, FAULTS

pytestmark = pytest.mark.long  # installs Zensical from the registry
TAGS = ("h2", "h3", "li", "ol", "ul", "pre", "table", "tr", "td", "img")
LOADS = re.compile(r"""<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)="?(https?:)?//""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    env = os.path.relpath(sys.prefix, REPO)
    words = ["make", "site", f"VENV={env}", f"SITE={folder / 'site'}", f"PAGES={folder / 'pages'}"]
    done = subprocess.run(words, cwd=REPO, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page that knows what it asked the network for."""
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    opened.asked = []
    opened.on("request", lambda one: opened.asked.append(one.url) if not one.url.startswith("file:") else None)
    opened.wrong = []
    opened.on("pageerror", lambda one: opened.wrong.append(str(one)))
    yield opened
    opened.close()


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    pages = [*site.rglob("*.html")]
    assert len(pages) > 150
    assert [path.name for path in pages if LOADS.search(path.read_text())] == []


def test_every_page_has_what_its_source_has(site: Path) -> None:
    """Lists, tables, blocks and headings, counted by another parser of Markdown."""
    parser = MarkdownIt("commonmark").enable("table")
    other = []
    for name, place in SitePages().places.items():
        if not name.endswith(".md") or name in (FAULTS, CHECKS):
            continue
        wanted = parser.render((REPO / name).read_text())
        built = site / re.sub(r"(README)?\.md$", lambda end: "index.html" if end[1] else ".html", place)
        article = re.search(r"<article.*?</article>", built.read_text(), re.DOTALL)
        assert article is not None, name
        for tag in TAGS:
            counts = [len(re.findall(rf"<{tag}[ >]", text)) for text in (wanted, article[0])]
            other += [f"{name}: {counts[0]} of <{tag}>, on the site {counts[1]}"] * (counts[0] != counts[1])
    assert other == []


def test_search_finds_things_without_a_network(site: Path, page: Any) -> None:
    for words, first in (("langgraph CI", "LangGraph agent in CI"), ("lost reply", "lost_reply")):
        page.goto((site / "index.html").as_uri())
        page.keyboard.press("/")
        page.get_by_role("combobox", name="Search").press_sequentially(words)
        result = page.get_by_role("option").filter(has_text=first).first
        result.wait_for()
        assert int(result.get_attribute("aria-posinset")) <= 3
    result.click()
    page.locator("h1", has_text="lost_reply").wait_for()
    assert "/faults/tool_faults/lost_reply.html" in page.url
    assert (page.asked, page.wrong) == ([], [])


def test_pages_read_well_on_a_phone(site: Path, page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    for name in ("index", "faults/tool_faults/error", "tutorials/langgraph-in-ci", "configuration"):
        page.goto((site / f"{name}.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
    assert (page.asked, page.wrong) == ([], [])
