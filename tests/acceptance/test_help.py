"""`--help`: commands and options stand under headings, and none is forgotten."""

from __future__ import annotations

from collections import Counter

import click
import pytest
from click.testing import CliRunner

from holdfast.cli.main import COMMANDS, GROUPS, root, run
from holdfast.cli.options import HEADINGS, HeadedCommand


def shown(*words: str) -> str:
    return CliRunner().invoke(root, [*words, "--help"]).output


def test_every_command_stands_under_one_heading() -> None:
    assert Counter(name for group in GROUPS.values() for name in group) == Counter(COMMANDS.keys())
    text = shown()
    assert [heading for heading in GROUPS if f"\n{heading}:\n" not in text] == []
    assert [name for name in COMMANDS if f"\n  {name} " not in text] == []


@pytest.mark.parametrize(
    "words", [("contract", "run"), ("contract", "score"), ("run",), ("ci",), ("score",), ("replay", "run")]
)
def test_every_option_of_a_run_stands_under_one_heading(words: tuple[str, ...]) -> None:
    command: click.Command | None = root
    for word in words:
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), word)
    assert isinstance(command, HeadedCommand)
    text = shown(*words)
    flags = [param.opts[-1] for param in command.params if isinstance(param, click.Option)]
    assert [flag for flag in flags if text.count(f"{flag} ") + text.count(f"{flag},") < 1] == []
    names = Counter(name for _, listed in HEADINGS for name in listed.split())
    assert max(names.values()) == 1
    # "Other" holds what is of one command alone; what several share has a heading.
    other = text.partition("\nOther:\n")[2]
    shared = {"--scenario", "--seed", "--output", "--min-score", "--max-cost", "--backend", "--on", "--runs-dir"}
    assert [flag for flag in shared if f" {flag} " in other] == []


@pytest.mark.parametrize(("words", "status"), [((), 0), (("contract",), 4), (("replay",), 4)])
def test_a_command_without_a_subcommand_prints_its_help(
    words: tuple[str, ...], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == status
    printed = capsys.readouterr()
    lines = (printed.err if status else printed.out).splitlines()
    assert lines[0] == " ".join(("Usage: holdfast", *words, "[OPTIONS] COMMAND [ARGS]..."))
    assert len(lines) > 10
    assert (printed.out if status else printed.err) == ""
