"""Every command that the program, its help and the pages suggest is one that the command line takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from cli import CALM, DOWN, MakeProject, contract, rule

from holdfast.cli.main import COMMANDS, root

HERE = Path(__file__).parents[2]
PAGES = [*sorted((HERE / "docs").glob("*.md")), HERE / "README.md", HERE / "CONTRIBUTING.md"]
_WORDS = "|".join(COMMANDS)
_CODE = re.compile(rf"`(holdfast (?:{_WORDS})\b[^`\n]*)`")
_LINE = re.compile(rf"^\s*(?:\$ |- run: |again\s+)?(?:\w+=\S+ )*(holdfast (?:{_WORDS})\b.*)$", re.M)
_IN_TEXT = re.compile(rf"[:;] (holdfast (?:{_WORDS})[^\"'{{}}()]* (?:-c|--\w+|-o) [^\"]*)\"")
"""A hint with an option: prose goes on after a bare command, not after a file's name."""


def suggested() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        text = page.read_text()
        yield from ((page.name, found) for found in (*_CODE.findall(text), *_LINE.findall(text)))
    for file in sorted((HERE / "src/holdfast").rglob("*.py")):
        found = _LINE.findall(file.read_text()) if file.parent.name == "cli" else []
        yield from ((file.name, one) for one in (*found, *_IN_TEXT.findall(file.read_text())))
    for golden in sorted((HERE / "tests/golden").rglob("*.txt")):
        yield from ((golden.name, found) for found in _LINE.findall(golden.read_text()))


def parsed(words: list[str]) -> None:
    """Reads a command line as click does, and runs nothing."""
    command: click.Command = root
    while isinstance(command, click.Group) and words:
        found = command.get_command(click.Context(command), words[0])
        assert found is not None, f"there is no command {words[0]!r}"
        command, words = found, words[1:]
    if words or not isinstance(command, click.Group):
        command.make_context(command.name, words)


def cleaned(line: str) -> list[str]:
    line = re.split(r"\s{2,}|\s\d?[#|>&;]|…|\\$|\"\"\"", line)[0]
    line = line.replace("${{ matrix.shard }}", "1")
    line = re.sub(r"\{shlex\.quote\([^}]*\}|\{[^}]*\}", "file.yaml", line).replace(" N", " 1")
    return [word for word in shlex.split(line)[1:] if word not in ("...", "[--chaos]")]


@pytest.mark.parametrize(("where", "line"), sorted({found for found in suggested() if "| " not in found[1]}))
def test_it_is_taken(where: str, line: str) -> None:
    words = cleaned(line)
    if line.endswith("--help"):
        return
    try:
        parsed(words)
    except click.MissingParameter:
        assert len(words) == 1, line  # the command's name, not a command line
    except click.UsageError as wrong:
        raise AssertionError(f"{where}: {line}: {wrong.format_message()}") from None


def test_there_are_many() -> None:
    assert len({line for _, line in suggested()}) > 60


@pytest.mark.parametrize("name", ["holdfast.yaml", "flakestorm.yaml", "other spec.yaml"])
def test_the_command_of_a_failure_gives_that_failure_again(project: MakeProject, name: str) -> None:
    made = project(contract([rule("cites", value="a source says")], [CALM, DOWN], prompts=("it's one", "two")))
    (made.folder / "holdfast.yaml").rename(made.folder / name)
    if name != "holdfast.yaml":
        made.write(contract([rule("other")]))
    first = made.show("-c", name)
    commands = [
        line.split("reproduce", 1)[1].strip() for line in first.out.splitlines() if line.startswith("  reproduce")
    ]
    assert commands
    for command in commands:
        words = shlex.split(command)
        told = made.cli(*words[1:])
        assert (words[0], told.code) == ("holdfast", 1), (command, told.out, told.err)
