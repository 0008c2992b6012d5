"""Reads the fenced blocks of the documentation, and plays a page's commands in the order it shows them.

The words after a block's language say what it is:

- yaml: `spec` a whole file, `section` top-level keys, `scenario` keys of a scenario, `rule` a list of rules,
  `wire` beside one of these where the agent is one that Holdfast starts, `reads-only` where a run would be refused,
  `other` not a spec at all;
- console: commands after `$ ` with the lines they must print, in order, among others; `not-run` where a test cannot;
- any: `file=NAME` writes the block to that file, where the page's commands run.

Ports from 8900 to 8999 stand for free ones. What a page leaves running is ended with it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPO = Path(__file__).parents[2]
PAGES = [REPO / "README.md", *sorted((REPO / "docs").rglob("*.md"))]

_FENCE = re.compile(r"^( *)```(\S*)[ ]?(.*)$")
_CALL = re.compile(r"""(?:^|[\s(])holdfast((?: +(?:'[^']*'|"[^"]*"|[^\s'"|;&<>()$#]+))+)""")
_MARK = "\x1e"
_PORT = re.compile(r"\b89\d\d\b")
_VARIES = (
    (re.compile(r"\d+ at a time"), "N at a time"),
    (re.compile(r"\d+(\.\d+)? ms\b"), "N ms"),
    (re.compile(r"\S*/holdfast/demo/finance/"), "src/holdfast/demo/finance/"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d"), "DATE"),
    (re.compile(r"\b[0-9a-f]{8}\b"), "COMMIT"),
    (re.compile(r"\s+"), " "),
)


@dataclass(frozen=True)
class Block:
    """A fenced block: where it stands, its language, the words after it, its text."""

    page: Path
    line: int
    language: str
    words: tuple[str, ...]
    text: str

    @property
    def name(self) -> str:
        return f"{self.page.name}:{self.line}"

    @property
    def file(self) -> str | None:
        return next((word.removeprefix("file=") for word in self.words if word.startswith("file=")), None)

    @property
    def commands(self) -> list[tuple[str, list[str]]]:
        """Each command of a console block with the lines it must print."""
        found: list[tuple[str, list[str]]] = []
        for line in self.text.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif line.strip():
                found[-1][1].append(line)
        return found


def blocks(page: Path) -> Iterator[Block]:
    """All fenced blocks of a page."""
    opened: tuple[int, str, str, str] | None = None
    body: list[str] = []
    for number, line in enumerate(page.read_text().splitlines(), start=1):
        fence = _FENCE.match(line)
        if opened is None and fence:
            opened, body = (number, fence[2], fence[3], fence[1]), []
        elif opened is not None and line.strip() == "```":
            at, language, words, _ = opened
            yield Block(page, at, language, tuple(words.split()), "\n".join(body) + "\n")
            opened = None
        elif opened is not None:
            body.append(line.removeprefix(opened[3]))
    assert opened is None, f"{page.name}:{opened and opened[0]}: a block without an end"


def all_blocks(language: str) -> list[Block]:
    return [block for page in PAGES for block in blocks(page) if block.language == language]


def calls_of_holdfast(text: str) -> Iterator[list[str]]:
    """The arguments of every call of `holdfast` in a line of shell."""
    for call in _CALL.finditer(text):
        yield shlex.split(call[1])


# -- playing a page ---------------------------------------------------------------------------------
@dataclass(frozen=True)
class Played:
    """A command of a page, what it must print and what it printed."""

    where: str
    command: str
    wanted: list[str]
    printed: str

    @property
    def missing(self) -> str | None:
        """The first line that was not printed, or not in its place; where a line was broken does not matter."""
        text, at = _settled(self.printed), 0
        for line in self.wanted:
            wanted = _settled(line)
            found = text.find(wanted, at)
            if found < 0:
                return line
            at = found + len(wanted)
        return None


def play(page: Path, folder: Path, env: dict[str, str]) -> list[Played]:
    """Runs a page's commands in one shell, its files written where they stand."""
    script, awaited = [], []
    for block in blocks(page):
        if block.file is not None:
            script.append(f"mkdir -p {shlex.quote(os.path.dirname(block.file) or '.')}")
            script.append(f"cat > {shlex.quote(block.file)} <<'END_OF_BLOCK'\n{block.text}END_OF_BLOCK")
        elif block.language == "console" and "not-run" not in block.words:
            for command, wanted in block.commands:
                awaited.append((block.name, command, wanted))
                script.append(f"(exit ${{code:-0}})\n{command}\ncode=$?; printf '{_MARK}'")
    text, ports = "\n".join(script), _free_ports("\n".join(script))
    done = subprocess.Popen(
        ["bash", "-c", _PORT.sub(lambda port: ports[port[0]], text)],
        cwd=folder,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "100", **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        printed = done.communicate(timeout=300)[0].decode().split(_MARK)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(done.pid, signal.SIGKILL)
    for shown, taken in ports.items():
        printed = [out.replace(taken, shown) for out in printed]
    return [Played(*told, out) for told, out in zip(awaited, printed, strict=False)]


def _free_ports(text: str) -> dict[str, str]:
    """A free port for each one shown: two machines, or two tests, may run a page at once."""
    with contextlib.ExitStack() as held:
        found = {}
        for shown in sorted(set(_PORT.findall(text))):
            probe = held.enter_context(socket.socket())
            probe.bind(("127.0.0.1", 0))
            found[shown] = str(probe.getsockname()[1])
        return found


def _settled(text: str) -> str:
    """Text without what differs between machines: cores, times, where the project lies, how lines are broken."""
    for varies, name in _VARIES:
        text = varies.sub(name, text)
    return text.strip()
