"""Agents that are stored in a folder: a local meaning of `type: snapshot`."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.spec.load import check

SPEC = """
version: 1
id: stored
task: {prompt: "Do it."}
agent: {type: snapshot, snapshot: bot, timeout: 9s, env: {OWN: "1"}}
agents: {bot: ./bot}
invariants:
  there: {description: "It is there", check: {type: file_exists, path: made.txt}}
"""


@pytest.fixture
def bot(tmp_path: Path) -> Path:
    (tmp_path / "spec.yaml").write_text(SPEC)
    folder = tmp_path / "bot"
    folder.mkdir()
    return folder


def test_a_program_called_run_is_the_agent(bot: Path) -> None:
    (bot / "run").write_text("#!/bin/sh\n")
    (bot / "run").chmod(0o755)
    spec = check(bot.parent / "spec.yaml", environ={}).spec
    assert spec is not None
    assert (spec.agent.type, spec.agent.binary, spec.agent.dir) == ("command", "run", "./bot")
    assert (spec.agent.timeout_ms, spec.agent.env, spec.unbuilt) == (9_000, {"OWN": "1"}, ())
    assert spec.world is not None


def test_the_folder_may_describe_it(bot: Path) -> None:
    (bot / "holdfast.agent.yaml").write_text("type: command\ncommand: python go.py\nenv: {ITS: '2'}\n")
    (bot / "go.py").write_text("")
    spec = check(bot.parent / "spec.yaml", environ={}).spec
    assert spec is not None
    assert (spec.agent.command, spec.agent.env) == ("python go.py", {"ITS": "2", "OWN": "1"})


def test_what_is_wrong_with_the_description_is_told_where_it_is_named(bot: Path) -> None:
    (bot / "holdfast.agent.yaml").write_text("type: command\ncomand: python go.py\n")
    problems = check(bot.parent / "spec.yaml", environ={}).problems
    wrong = next(p for p in problems if p.code == "unknown-key")
    assert wrong.path == "agent.snapshot"
    assert "bot/holdfast.agent.yaml:2:1 comand" in wrong.message
    assert "command" in wrong.hint


def test_a_folder_without_an_agent_is_an_error(bot: Path) -> None:
    problems = check(bot.parent / "spec.yaml", environ={}).problems
    assert "no-agent" in [p.code for p in problems]


def test_a_description_that_is_not_text_is_reported(bot: Path) -> None:
    (bot / "holdfast.agent.yaml").write_bytes(b"type: command\ncommand: \xff\xfe\n")
    problems = check(bot.parent / "spec.yaml", environ={}).problems
    assert any("bot/holdfast.agent.yaml:2:10" in one.message and "not UTF-8" in one.message for one in problems)
