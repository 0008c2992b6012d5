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
