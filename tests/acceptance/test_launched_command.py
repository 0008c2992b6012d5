"""Command agents: how the prompt reaches them, where their answer is, and what their endings mean."""

from __future__ import annotations

from typing import Any

import pytest
from cli import CALM, MakeProject, contract, rule
from plane_agents import PYTHON, quick

ODD = 'it\'s "two" words; $(touch hit) `touch hit` & {port} \\ end'


def asked(project: MakeProject, agent: dict[str, Any], prompt: str = ODD, *, source: str = "", **more: Any) -> Any:
    """The one trial of a rule that any answer passes."""
    spec = contract([rule("answers", "completes")], [CALM], prompts=(prompt,), agent={"type": "command", **agent})
    made = project(spec | more, source)
    result = quick(made, "--no-preflight")
    assert result.code in (0, 1), result.err
    assert not (made.folder / "hit").exists()
    return result.trial


@pytest.mark.parametrize(
    "agent",
    [
        {"command": "cat"},
        {"command": "printf %s", "prompt": "arg"},
        {"binary": "printf", "args": ["%s", "{prompt}"]},
        {"command": 'printf %s "$HOLDFAST_PROMPT"', "prompt": "env"},
        {"command": 'cat "$HOLDFAST_PROMPT_FILE"', "prompt": "file"},
        {"type": "cli", "command": "cat"},
    ],
    ids=lambda agent: f"{agent.get('prompt', 'default')}: {agent.get('command') or agent.get('binary')}",
)
def test_the_prompt_arrives_as_it_is_written_by_every_way(project: MakeProject, agent: dict[str, Any]) -> None:
    assert asked(project, agent)["answer"].strip() == ODD


def test_a_reply_without_the_named_path_ends_the_run_at_preflight_with_the_body(project: MakeProject) -> None:
    agent = {"type": "command", "command": """echo '{"b": "here it is"}'""", "response_path": "$.a"}
    made = project(contract([rule("answers", "completes")], [CALM], agent=agent))
    result = quick(made)
    assert result.code == 4
    assert "here it is" in result.out + result.err


def test_each_turn_of_a_conversation_is_a_run_of_the_command_with_its_number(project: MakeProject) -> None:
    agent = {"type": "command", "command": 'echo "$HOLDFAST_TRIAL $HOLDFAST_TURN" >> turns; cat turns'}
    spec = contract([rule("answers", "completes")], [CALM], agent=agent)
    del spec["golden_prompts"]
    made = project(spec | {"task": {"prompt": "one", "turns": ["two", "three"]}})
    (trial,) = quick(made, "--no-preflight").trials
    assert [line.split() for line in made.lines("turns")] == [[trial["id"], n] for n in "123"]


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ({"command": "no-such-program-here"}, ("agent.command cannot be run", "no-such-program-here")),
        ({"binary": "no-such-program-here"}, ("agent.binary", "on PATH")),
        ({"binary": "./plain.txt"}, ("chmod +x",)),
    ],
)
def test_a_program_that_is_not_there_ends_the_run_with_what_to_check(
    project: MakeProject, agent: dict[str, Any], words: tuple[str, ...]
) -> None:
    made = project(contract([rule("answers", "completes")], [CALM], agent={"type": "command", **agent}))
    (made.folder / "plain.txt").write_text("#!/bin/sh\necho hi\n")
    result = made.command("contract", "run")
    assert result.code == 4
    assert all(word in result.out + result.err for word in words)


def test_python_prints_unbuffered_so_that_a_killed_agents_half_answer_is_there(project: MakeProject) -> None:
    source = "import time\nprint('half')\ntime.sleep(60)\n"
    trial = asked(project, {"command": f"{PYTHON} agent.py", "timeout": 1000}, source=source)
    assert (trial["ending"], trial["answer"].strip()) == ("timeout", "half")


@pytest.mark.parametrize("words", [("validate",), ("contract", "validate"), ("contract", "run", "--dry-run")])
def test_checking_a_spec_starts_nothing(project: MakeProject, words: tuple[str, ...]) -> None:
    agent = {"type": "command", "command": "touch ran", "reset_function": "agent:clean"}
    source = "open('imported', 'w')\ndef clean(): ...\n"
    made = project(contract([rule("answers", "completes")], [CALM], agent=agent), source)
    result = made.cli(*words)
    assert result.code == 0, result.err
    assert not (made.folder / "ran").exists()
    assert not (made.folder / "imported").exists()


def test_a_sandboxed_command_leaves_nothing_beside_the_spec(project: MakeProject) -> None:
    agent = {"type": "command", "command": "touch ran && ls", "sandbox": True}
    made = project(contract([rule("answers", value="ran")], [CALM], agent=agent))
    result = made.cli("contract", "run")
    assert result.code == 0, result.out + result.err
    assert not (made.folder / "ran").exists()
