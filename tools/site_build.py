"""Writes the pages of the site and its configuration with the complete navigation: `python tools/site_build.py FOLDER`.

The pages are those of docs/, those in the top folder, the examples, and one page per fault and check. None of this is
committed: `make site` writes it again each time and runs Zensical on it.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml

import site_plugins
from site_markdown import heads, rewritten

REPO = Path(__file__).parents[1]
TOP = {
    "README.md": "quick-start.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
    "SECURITY.md": "reporting.md",
    "LICENSE": "license.txt",
    "tools/iframe-worker.js": "assets/iframe-worker.js",
}
"""Files that have another path on the site."""
HOME = "---\nhide: [navigation, toc]\n---\n\n"
"""Put before the home page: it has no side bars."""


class BrokenLink(Exception):
    """A page leads to what is not there."""


class SitePages:
    """Every page and file of the site: where it comes from, and where it lies."""

    def __init__(self) -> None:
        shown = [
            path for folder in ("docs", "examples") for path in sorted((REPO / folder).rglob("*")) if _is_shown(path)
        ]
        names = [path.relative_to(REPO).as_posix() for path in shown]
        self.places = {**TOP, **{name: name.removeprefix("docs/") for name in names}}
        self._moved = site_plugins.moved()
        self._anchors: dict[str, list[str]] = {}

    def pages(self) -> Iterator[tuple[str, str]]:
        """Where each page lies, and its text."""
        for name, place in self.places.items():
            if name.endswith(".md"):
                text = (REPO / name).read_text()
                cut = name in (site_plugins.FAULTS, site_plugins.CHECKS)
                body = self._shown(site_plugins.without_entries(text) if cut else text, name, place)
                yield place, HOME + body if place == "index.md" else body
        faults, checks = ((REPO / name).read_text() for name in (site_plugins.FAULTS, site_plugins.CHECKS))
        for page, text in site_plugins.plugin_pages(faults, checks):
            yield (
                site_plugins.place(page),
                self._shown(text, site_plugins.source(page.section), site_plugins.place(page)),
            )

    def files(self) -> Iterator[tuple[Path, str]]:
        """Pictures and what examples are made of, and where they lie."""
        return ((REPO / name, place) for name, place in self.places.items() if not name.endswith(".md"))

    def _shown(self, text: str, source: str, place: str) -> str:
        return rewritten(text, lambda target: self._target(target, source, place))

    def _target(self, target: str, source: str, place: str) -> str | None:
        """A link of a page in the repository, as the page on the site has it."""
        if "://" in target or target.startswith("mailto:"):
            return target
        file, _, anchor = target.partition("#")
        name = os.path.normpath(os.path.join(os.path.dirname(source), file)) if file else source
        to = self._moved.get((name, anchor))
        if to is not None:
            return _relative(to, place)
        if not (REPO / name).exists() or (anchor and anchor not in self._heads(name)):
            raise BrokenLink(f"{source}: {target} leads nowhere")
        name = f"{name}/README.md" if (REPO / name).is_dir() else name
        if name not in self.places:
            return None
        return _relative(self.places[name], place) + (f"#{anchor}" if anchor else "")

    def _heads(self, name: str) -> list[str]:
        if name not in self._anchors:
            self._anchors[name] = heads((REPO / name).read_text())
        return self._anchors[name]


def navigation(entries: Any, places: list[str]) -> Any:
    """The navigation of mkdocs.yml, each `folder/*.md` in it as the pages that it fits."""
    if isinstance(entries, list):
        made = [navigation(entry, places) for entry in entries]
        return [one for entry in made for one in (entry if isinstance(entry, list) else [entry])]
    if isinstance(entries, dict):
        return {title: navigation(inner, places) for title, inner in entries.items()}
    if "*" in entries:
        return [place for place in sorted(places) if fnmatch(place, entries)]
    return entries


def build(folder: Path) -> None:
    """Writes `pages/` and `mkdocs.yml` into the folder."""
    shutil.rmtree(folder, ignore_errors=True)
    site = SitePages()
    places = []
    for place, text in site.pages():
        places.append(place)
        _at(folder / "pages" / place).write_text(text)
    for file, place in site.files():
        shutil.copyfile(file, _at(folder / "pages" / place))
    whole = yaml.safe_load((REPO / "mkdocs.yml").read_text())
    made = {**whole, "docs_dir": "pages", "site_dir": "site", "nav": navigation(whole["nav"], places)}
    (folder / "mkdocs.yml").write_text(yaml.safe_dump(made, sort_keys=False))


def _is_shown(path: Path) -> bool:
    hidden = any(part.startswith((".", "__")) for part in path.relative_to(REPO).parts)
    return path.is_file() and not hidden


def _relative(to: str, place: str) -> str:
    return os.path.relpath(to, os.path.dirname(place) or ".")


def _at(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


if __name__ == "__main__":
    build(Path(sys.argv[1]).resolve())
