"""The pages as GitHub shows them, rewritten for Python-Markdown, which the site is built with.

Four things differ: a fence has one word after it and a title, what stands in a list is indented by four, a heading says
its anchor, and links lead to where a page lies on the site.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

_FENCE = re.compile(r"^( *)(```+)(\S*)[ ]?(.*)$")
_ITEM = re.compile(r"^( *)([-*]|\d+\.)( +)(?=\S)")
_LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^)\s]+)\)")
_HEAD = re.compile(r"#{1,6} ")
_ANCHOR = re.compile(r"^#{1,6} .* \{#(.+)\}$")
_CODE = re.compile(r"(`+)(?:(?!\1).)+?\1", re.DOTALL)

Place = Callable[[str], str | None]
"""Where a link leads on the site; None: nowhere."""


def rewritten(text: str, place: Place) -> str:
    """A page for the site."""
    return "\n".join(_indented(_titled(_headed(_linked(text, place).splitlines())))) + "\n"


def heads(text: str) -> list[str]:
    """The anchors of a page, as GitHub makes them."""
    return [found[1] for line in _headed(text.splitlines()) if (found := _ANCHOR.search(line))]


def links(text: str) -> Iterator[str]:
    """Every target that a page leads to."""
    prose = _CODE.sub("", "\n".join(_outside_fences(text)))
    return (found[2] for found in _LINK.finditer(prose))


def _outside_fences(text: str) -> list[str]:
    return [line for line, block in _fenced(text.splitlines()) if not block]


def _fenced(lines: Iterable[str]) -> Iterator[tuple[str, Literal["", "opens", "inside"]]]:
    """Each line, and whether it opens a fenced block or is the rest of one."""
    closing = ""
    for line in lines:
        fence = _FENCE.match(line)
        if closing:
            yield line, "inside"
            closing = "" if line.strip() == closing else closing
        elif fence:
            closing = fence[2]
            yield line, "opens"
        else:
            yield line, ""


def _linked(text: str, place: Place) -> str:
    """Links outside of code lead to the site; one that leads nowhere there is its words alone."""

    def moved(found: re.Match[str]) -> str:
        to = place(found[2])
        return f"{found[1]}({to})" if to is not None else found[1].lstrip("!")[1:-1]

    def prose(part: str) -> str:
        kept: list[str] = []

        def hide(code: re.Match[str]) -> str:
            kept.append(code[0])
            return f"\0{len(kept) - 1}\0"

        shown = _LINK.sub(moved, _CODE.sub(hide, part))
        return re.sub(r"\0(\d+)\0", lambda mark: kept[int(mark[1])], shown)

    parts: list[str] = []
    run: list[str] = []
    for line, block in _fenced(text.splitlines()):
        if block:
            parts += [prose("\n".join(run))] * bool(run) + [line]
            run = []
        else:
            run.append(line)
    return "\n".join(parts + [prose("\n".join(run))] * bool(run))


def _headed(lines: Iterable[str]) -> Iterator[str]:
    """Headings with the anchors that GitHub gives them: a second one of the same words has a number."""
    seen: Counter[str] = Counter()
    for line, block in _fenced(lines):
        if block or not _HEAD.match(line):
            yield line
            continue
        words = _LINK.sub(lambda link: link[1].strip("![]"), line.lstrip("#").strip())
        anchor = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        seen[anchor] += 1
        yield f"{line} {{#{anchor}{f'-{seen[anchor] - 1}' if seen[anchor] > 1 else ''}}}"


def _titled(lines: Iterable[str]) -> Iterator[str]:
    """Fences with their language, and the file that a block is as its title; tables without needless backslashes."""
    for line, block in _fenced(lines):
        fence = _FENCE.match(line) if block == "opens" else None
        if fence:
            file = next((word for word in fence[4].split() if word.startswith("file=")), "")
            title = f' title="{file.removeprefix("file=")}"' if file else ""
            yield f"{fence[1]}{fence[2]}{fence[3] or 'text'}{title}"
        elif not block and line.lstrip().startswith("|"):
            yield _CODE.sub(lambda code: code[0].replace("\\|", "|"), line)
        else:
            yield line


def _indented(lines: Iterable[str]) -> Iterator[str]:
    """What belongs to an item of a list stands four spaces further in, and a list begins after an empty line."""
    offsets: list[int] = []
    """The column at which the words of each open item begin."""
    before, loose = "", False
    for line, block in _fenced(lines):
        indent = len(line) - len(line.lstrip())
        item = None if block else _ITEM.match(line)
        in_list = bool(offsets)
        if line.strip() and block != "inside":
            continued = bool(before.strip()) and not item  # a paragraph may go on without its indentation
            while offsets and indent < offsets[-1] and not continued:
                offsets.pop()
        if item:
            if before.strip() and (loose or not in_list):
                yield ""
            loose = False
            offsets.append(len(item[0]))
            yield " " * 4 * (len(offsets) - 1) + item[2] + " " + line[len(item[0]) :]
        elif offsets and line.strip():
            yield " " * 4 * len(offsets) + line[min(indent, offsets[-1]) :]
        else:
            yield line
        loose = loose or not line.strip()
        before = line
