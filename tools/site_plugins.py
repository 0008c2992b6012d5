"""A page for each fault and check: its entry in docs/faults.md or docs/checks.md, and what the registry knows of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from holdfast.spec.catalogue.plugin_page import RULES, PluginPage, PluginSetting, iter_pages

FAULTS, CHECKS = "docs/faults.md", "docs/checks.md"
_ENTRY = re.compile(r"^### `(\w+)`\n(.*?)(?=^### |^## |\Z)", re.MULTILINE | re.DOTALL)
_SECTION = re.compile(r"^## `(\w+)`\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_ROW = re.compile(r"^\| `(\w+)` \| (.*?) \|", re.MULTILINE)


def source(section: str) -> str:
    """The hand-written page that has its entry: its links are that page's."""
    return CHECKS if section == RULES else FAULTS


def place(page: PluginPage) -> str:
    """Where its page lies on the site."""
    return f"checks/{page.name}.md" if page.section == RULES else f"faults/{page.section}/{page.name}.md"


def moved() -> dict[tuple[str, str], str]:
    """Pages and anchors whose text has a page of its own now, and where that lies."""
    found: dict[tuple[str, str], str] = {}
    for page in (*iter_pages("fault"), *iter_pages("check")):
        found[source(page.section), f"{page.section}.{page.name}"] = place(page)
        found.setdefault((source(page.section), page.name), place(page))
    return found


def plugin_pages(faults: str, checks: str) -> Iterator[tuple[PluginPage, str]]:
    """Every fault and check with its page; its links are those of the hand-written page."""
    written = {**_entries(faults), **{(RULES, name): text for (_, name), text in _entries(checks).items()}}
    for page in (*iter_pages("fault"), *iter_pages("check")):
        yield page, "\n".join(_lines(page, written.get((page.section, page.name), "")))


def without_entries(text: str) -> str:
    """A hand-written page whose entries have pages of their own: a table leads to them."""
    known = {(page.section, page.name): page for kind in ("fault", "check") for page in iter_pages(kind)}

    def section(found: re.Match[str]) -> str:
        name = RULES if found[1] == "type" else found[1]
        listed = [known[name, entry] for entry, _ in _ENTRY.findall(found[2]) if (name, entry) in known]
        if not listed:
            return _ROW.sub(lambda row: f"| [`{row[1]}`](#{name}.{row[1]}) | {row[2]} |", found[0])
        rows = "\n".join(f"| [`{one.name}`](#{name}.{one.name}) | {_cell(one.what)} |" for one in listed)
        head = _ENTRY.sub("", found[2]).rstrip()
        return f"## `{found[1]}`\n{head}\n\n| name | what it does |\n|---|---|\n{rows}\n\n"

    return _SECTION.sub(section, text)


def _entries(text: str) -> dict[tuple[str, str], str]:
    """The hand-written entry of each plug-in, or the words in its row of a table."""
    found: dict[tuple[str, str], str] = {}
    for section, body in _SECTION.findall(text):
        found |= {(section, name): f"{_sentence(words)}\n" for name, words in _ROW.findall(body)}
        found |= {(section, name): entry for name, entry in _ENTRY.findall(body)}
    return found


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:] + ("" if words.endswith(".") else ".")


def _lines(page: PluginPage, written: str) -> Iterator[str]:
    check = page.section == RULES
    where = "[check](checks.md)" if check else f"fault of [`{page.section}`](#{page.section})"
    yield f"# `{page.name}`\n\n*A {where}.*\n"
    yield f"{written.strip() or page.what}\n"
    if "```yaml" not in written:
        yield f"```yaml\n{page.example}```\n"
    yield f"## Settings\n\n{_settings(page.settings)}\n"
    yield f"{'## What it reads' if check else '## Where it acts'}\n\n{page.acts}\n"
    yield f"## What it proves\n\n{' '.join(_proof(page))}\n"
    if page.standards:
        yield "## In public lists\n"
        yield from (f"- [{one.list} {one.id}]({one.url}): {one.title}" for one in page.standards)
        yield ""
    words = "Keys of every rule" if check else f"Keys of every entry of `{page.section}`"
    yield f"## {words}\n\n{_settings(page.common)}\n"
    if page.see:
        yield "## See also\n\n" + ", ".join(f"[`{one}`]({_see(one)})" for one in page.see) + "\n"
    yield f"In the terminal: `holdfast {'checks' if check else 'faults'} {page.name}`\n"


def _see(other: str) -> str:
    return f"{source(other.partition('.')[0]).removeprefix('docs/')}#{other}"


def _proof(page: PluginPage) -> Iterator[str]:
    if page.section == RULES:
        yield page.met
        yield "A pass in calm shows that the agent can keep the rule. A pass in a chaos scenario shows that it keeps it"
        yield "although a fault was met. If no fault was met, the cell is unproven."
    else:
        yield "A passed cell with this fault proves that the rule held although the fault was met."
        yield f"When it counts as met: {page.met} If the fault was not met, the cell is unproven."


def _settings(rows: Iterable[PluginSetting]) -> str:
    made = [
        f"| `{one.key}` | {_cell(one.type)} | {'*required*' if one.required else _value(one.default)} | "
        f"{_cell(one.meaning)} |"
        for one in rows
    ]
    if not made:
        return "No settings of its own."
    return "\n".join(["| key | type | default | meaning |", "|---|---|---|---|", *made])


def _value(text: str) -> str:
    return f"`{text}`" if text else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
