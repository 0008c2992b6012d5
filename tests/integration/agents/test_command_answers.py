"""A command's answer: stdout, a file, a path into either; and every way in which none comes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from launch_kit import ask, python

from golden_words import Golden
from holdfast.errors import AgentUnavailable
from holdfast.model.observation import Turn


def turn(folder: Path, command: str, **settings: Any) -> Turn:
    return ask(folder, "hi", command=command, **settings).turns[0]


def test_stdout_is_the_answer_without_its_last_newline(tmp_path: Path) -> None:
    seen = turn(tmp_path, "echo one; echo two")
    assert (seen.text, seen.ending) == ("one\ntwo", "answered")
    assert 0 < seen.latency_ms < 5000


def test_what_is_not_an_utf8_is_replaced(tmp_path: Path) -> None:
    assert turn(tmp_path, r"printf 'a\377b'").text == "a�b"


def test_stderr_is_kept_apart_as_output(tmp_path: Path) -> None:
    answer = ask(tmp_path, command="echo said; echo why >&2")
    assert (answer.turns[0].text, answer.output) == ("said", "why\n")


def test_exit_zero_without_text_is_no_answer(tmp_path: Path) -> None:
    seen = turn(tmp_path, "echo")
    assert (seen.text, seen.ending) == (None, "no_answer")


def test_a_bad_exit_is_a_crash_that_keeps_the_text_and_the_last_line_of_stderr(tmp_path: Path, golden: Golden) -> None:
    seen = turn(tmp_path, "echo half; echo first >&2; echo no luck >&2; exit 3")
    assert (seen.text, seen.ending) == ("half", "crashed")
    golden(seen.detail)


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        ("Error: no such model\n    at main (a.js:1)\n\nNode.js v22.1.0", "Error: no such model"),
        ("panic: nil map\n\ngoroutine 1 [running]:\nmain.main()\nexit status 2", "panic: nil map"),
        ("KeyError: 'x'\n[info] cleaning up\nbye", "KeyError: 'x'"),
        ("fatal: not a repository\nsee --help", "fatal: not a repository"),
        ("ValueError: first\nRuntimeError: second\nbye", "RuntimeError: second"),
        ("0 errors\n2 terrors\nbye", "bye"),
        ("[ERROR] quota is used up\nbye", "[ERROR] quota is used up"),
        ("openai.RateLimitError: slow down", "openai.RateLimitError: slow down"),
    ],
)
def test_a_crash_is_reported_by_the_line_that_says_error(tmp_path: Path, printed: str, told: str) -> None:
    (tmp_path / "printed").write_text(printed)
    assert turn(tmp_path, "cat printed >&2; exit 1").detail == f"exit code 1: {told}"


GROUP = """
import asyncio
async def fails(): raise ValueError("no key\\nat all")
async def inner():
    async with asyncio.TaskGroup() as group: group.create_task(fails())
async def main():
    async with asyncio.TaskGroup() as group: group.create_task(inner())
asyncio.run(main())
"""


def test_a_crash_by_a_group_of_errors_names_the_innermost(tmp_path: Path, golden: Golden) -> None:
    (tmp_path / "agent.py").write_text(GROUP)
    seen = turn(tmp_path, f"{sys.executable} agent.py")
    assert seen.ending == "crashed"
    golden(seen.detail)


def test_a_signal_is_a_crash(tmp_path: Path, golden: Golden) -> None:
    seen = turn(tmp_path, "echo half; kill -SEGV $$")
    assert (seen.text, seen.ending) == ("half", "crashed")
    golden(seen.detail)


def test_a_timeout_keeps_what_was_said_before_and_drops_what_comes_after(tmp_path: Path) -> None:
    command = "trap 'echo too late; exit 0' TERM; echo half; sleep 30 & wait"
    seen = turn(tmp_path, command, timeout_ms=400)
    assert (seen.text, seen.ending, seen.latency_ms) == ("half", "timeout", 400)


def test_a_path_finds_the_answer_in_json(tmp_path: Path) -> None:
    command = """echo '{"a": [{"b": "found"}]}'"""
    assert turn(tmp_path, command, response_path="$.a[0].b").text == "found"
    assert turn(tmp_path, command, response_path="a[0].b").text == "found"


def test_a_canary_in_another_field_is_recorded(tmp_path: Path) -> None:
    command = """echo '{"a": "fine", "log": ["HOLDFAST-CANARY-0123abcd"]}'"""
    assert turn(tmp_path, command, response_path="a").canaries == ("holdfast-canary-0123abcd",)


@pytest.mark.parametrize(
    ("said", "ending"),
    [
        ("plain", "unreadable"),
        ('{"b": 1}', "unreadable"),
        (f'{{"a": {"[" * 20_000}{"]" * 20_000}}}', "answered"),
        ('{"a": null}', "no_answer"),
        ("", "no_answer"),
    ],
)
def test_nothing_at_the_path_has_its_own_ending(tmp_path: Path, said: str, ending: str) -> None:
    assert turn(tmp_path, f"echo '{said}'", response_path="a").ending == ending


def test_an_answer_file_is_read_and_stdout_becomes_output(tmp_path: Path) -> None:
    answer = ask(tmp_path, command="echo working; echo said > out.txt", answer_file="out.txt")
    assert (answer.turns[0].text, answer.output) == ("said", "working\n")


def test_an_old_answer_file_is_removed_before_the_start(tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("of an earlier trial")
    seen = turn(tmp_path, "true", answer_file="out.txt")
    assert (seen.text, seen.ending, seen.detail) == (None, "no_answer", "it did not write out.txt")


@pytest.mark.parametrize("made", ["ln -s /etc/passwd out.txt", "mkfifo out.txt", "mkdir out.txt"])
def test_only_a_regular_file_inside_the_folder_is_an_answer(tmp_path: Path, made: str) -> None:
    seen = turn(tmp_path, made, answer_file="out.txt")
    assert (seen.text, seen.ending) == (None, "unreadable")


def test_a_link_left_by_the_agent_is_removed_and_its_target_is_not(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "precious").write_text("keep me")
    (tmp_path / "in" / "out.txt").symlink_to("../precious")
    ask(tmp_path / "in", command="true", answer_file="out.txt")
    assert (tmp_path / "precious").read_text() == "keep me"
    assert not (tmp_path / "in" / "out.txt").is_symlink()


@pytest.mark.parametrize("name", ["../out.txt", "/tmp/out.txt", "."])
def test_an_answer_file_outside_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(AgentUnavailable, match="answer_file") as refused:
        ask(tmp_path, command="true", answer_file=name)
    assert refused.value.config


def test_a_long_answer_is_cut_at_a_megabyte_and_says_so(tmp_path: Path, golden: Golden) -> None:
    answer = ask(tmp_path, command=python(tmp_path, "print('ä' * 1_000_000)"))
    seen = answer.turns[0]
    assert (len(seen.text or ""), seen.cut, seen.ending) == (500_000, True, "answered")
    golden(answer.notes)


def test_a_flood_on_stderr_is_read_thrown_away_and_noted(tmp_path: Path, golden: Golden) -> None:
    code = "import os\nfor _ in range(70): os.write(2, b'x' * 1_000_000)\nprint('said')"
    answer = ask(tmp_path, command=python(tmp_path, code))
    assert answer.turns[0].text == "said"
    assert len(answer.output) == 64_000
    golden(answer.notes)


def test_a_program_that_closes_its_streams_is_waited_for(tmp_path: Path) -> None:
    seen = turn(tmp_path, "echo said; exec >&- 2>&-; sleep 0.2; exit 4")
    assert (seen.text, seen.ending, seen.detail) == ("said", "crashed", "exit code 4")


@pytest.mark.parametrize(
    ("command", "says"),
    [("no-such-agent-x", "not found"), ("./agent.txt", "denied"), ("cd . && A=1 exec no-such-agent-x", "not found")],
)
def test_a_command_that_the_shell_cannot_run_is_an_error_of_the_spec(tmp_path: Path, command: str, says: str) -> None:
    (tmp_path / "agent.txt").write_text("no program")
    with pytest.raises(AgentUnavailable, match=says) as refused:
        ask(tmp_path, command=command)
    assert refused.value.config
    assert "sh -c" in refused.value.hint


@pytest.mark.parametrize(
    ("binary", "says"), [("no-such-agent-x", "neither on PATH"), ("./gone", "no such file"), ("./agent.txt", "denied")]
)
def test_a_binary_that_cannot_be_executed_is_an_error_of_the_spec(tmp_path: Path, binary: str, says: str) -> None:
    (tmp_path / "agent.txt").write_text("no program")
    with pytest.raises(AgentUnavailable, match=says) as refused:
        ask(tmp_path, binary=binary)
    assert refused.value.config


def test_a_command_that_ran_before_and_exits_127_crashed(tmp_path: Path) -> None:
    command = 'if [ "$HOLDFAST_TURN" = 1 ]; then echo ok; else no-such-agent-x; fi'
    answer = ask(tmp_path, "a", "b", command=command)
    assert [seen.ending for seen in answer.turns] == ["answered", "crashed"]


@pytest.mark.parametrize(
    "command",
    [
        "sh ./silent.sh",
        "cat > /dev/null; no-such-agent-x",
        "sh -c 'exit 127'",
        "exec sh ./silent.sh",
        "if true; then sh ./silent.sh; fi",
    ],
)
def test_a_silent_agent_whose_last_command_is_missing_crashed(tmp_path: Path, command: str) -> None:
    (tmp_path / "silent.sh").write_text("cat > /dev/null\nno-such-agent-x\n")
    (seen,) = ask(tmp_path, command=command).turns
    assert (seen.ending, seen.text) == ("crashed", None)
    assert "127" in seen.detail
