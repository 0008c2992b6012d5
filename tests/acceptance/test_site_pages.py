"""The pages that the site is built from: all of them are in the navigation, and every link of theirs leads somewhere.

`tests/integration/test_site.py` builds the site itself, which takes longer.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.spec.catalogue.plugin_page import RULES
from holdfast.spec.catalogue.plugin_page import iter_pages as plugin_pages
from site_build import REPO, BrokenLink, SitePages, build, navigation
from site_markdown import heads, links, rewritten


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("site")
    build(made)
    return made


def pages_in(folder: Path) -> dict[str, str]:
    made = folder / "pages"
    return {path.relative_to(made).as_posix(): path.read_text() for path in made.rglob("*.md")}


def listed(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    inner = nav.values() if isinstance(nav, dict) else nav
    return [page for entry in inner for page in listed(entry)]


def test_every_page_is_in_the_navigation_once_and_nothing_else_is(folder: Path) -> None:
    shown = listed(yaml.safe_load((folder / "mkdocs.yml").read_text())["nav"])
    assert sorted(shown) == sorted(pages_in(folder))


def test_every_link_and_anchor_leads_somewhere(folder: Path) -> None:
    pages = pages_in(folder)
    anchors = {name: set(re.findall(r"\{#(.+)\}$", text, re.MULTILINE)) for name, text in pages.items()}
    wrong, followed = [], 0
    for name, text in pages.items():
        for target in links(text):
            if "://" in target:
                continue
            file, _, anchor = target.partition("#")
            place = (folder / "pages" / name).parent / file if file else folder / "pages" / name
            to = place.resolve().relative_to((folder / "pages").resolve()).as_posix()
            followed += 1
            if not place.is_file() or (anchor and anchor not in anchors[to]):
                wrong.append(f"{name}: {target}")
    assert wrong == []
    assert followed > 500


def test_every_fault_and_check_has_a_page_that_tells_what_it_proves_with_an_example(folder: Path) -> None:
    pages = pages_in(folder)
    known = [*plugin_pages("fault"), *plugin_pages("check")]
    assert len(known) > 100
    for page in known:
        text = pages[f"checks/{page.name}.md" if page.section == RULES else f"faults/{page.section}/{page.name}.md"]
        assert text.startswith(f"# `{page.name}` ")
        assert "## What it proves " in text
        example = re.search(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        assert example is not None, page
        assert re.search(rf"(mode|type): {page.name}\b", example[1]), page
        assert [one.key for one in (*page.settings, *page.common) if f"`{one.key}`" not in text] == []


def test_what_a_page_of_a_fault_tells_is_not_told_twice(folder: Path) -> None:
    pages = pages_in(folder)
    sentence = (REPO / "docs/checks.md").read_text().partition("\n### `refusal_check`\n\n")[2].splitlines()[0]
    assert len(sentence) > 40
    assert [name for name, text in pages.items() if sentence in text] == ["checks/refusal_check.md"]
    assert "[`truncated_response`](faults/llm_faults/truncated_response.md)" in pages["faults.md"]
    assert "[`llm_as_judge`](checks/llm_as_judge.md)" in pages["security.md"]


def test_a_link_that_leads_nowhere_is_an_error() -> None:
    site = SitePages()
    for target in ("no-such-page.md", "faults.md#no-such-heading", "../src/nothing.py"):
        with pytest.raises(BrokenLink, match=re.escape(target)):
            site._target(target, "docs/guide.md", "guide.md")
    assert site._target("../src/holdfast/plugins.py", "docs/guide.md", "guide.md") is None  # there, but not on the site
    assert site._target("../README.md#documentation", "docs/guide.md", "guide.md") == "quick-start.md#documentation"
    assert site._target("../checks.md#sql", "docs/tutorials/x.md", "tutorials/x.md") == "../checks/sql.md"


def test_pages_are_rewritten_for_another_parser() -> None:
    written = """para
- one
  goes on `[a](b.md)` [c](d.md)
  - two

    ```yaml spec file=a.yaml
    - not: an item
    ```
- three

1. first

   more
2. second

| `a \\| b` | [gone](nowhere) |
## A `b`, c!
## a b c
"""
    assert (
        rewritten(written, lambda target: None if target == "nowhere" else f"x/{target}")
        == """para

- one
    goes on `[a](b.md)` [c](x/d.md)
    - two

        ```yaml title="a.yaml"
        - not: an item
        ```

- three

1. first

    more

2. second

| `a | b` | gone |
## A `b`, c! {#a-b-c}
## a b c {#a-b-c-1}
"""
    )
    assert heads(written) == ["a-b-c", "a-b-c-1"]
    assert [*links(written)] == ["d.md", "nowhere"]


def test_a_star_in_the_navigation_is_the_pages_that_it_fits() -> None:
    nav = ["a.md", {"All": ["b/*.md"]}, "none*.md"]
    assert navigation(nav, ["b/2.md", "b/1.md", "a.md"]) == ["a.md", {"All": ["b/1.md", "b/2.md"]}]


def test_the_site_loads_nothing_from_the_network() -> None:
    config = yaml.safe_load((REPO / "mkdocs.yml").read_text())
    assert config["theme"]["font"] is False
    assert config["use_directory_urls"] is False
    assert "offline" in config["plugins"]
    assert config["strict"] is True
    assert [one for one in config["extra"]["polyfills"] if "://" in one] == []
