"""`agent.dialogue` and `agent.nested_sandbox`: what they mean, and where they mean nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from holdfast.errors import SpecError
from holdfast.model.spec import AgentSpec, TerminalStep
from holdfast.spec import load

RULE = {"id": "r", "type": "completes", "description": "d"}
STEPS = [{"expect": "ok? ", "type": "y"}, {"expect": "> ", "type": "{prompt}"}]


def loaded(folder: Path, agent: dict[str, object]) -> AgentSpec:
    file = folder / "spec.yaml"
    whole = {
        "version": "1.0",
        "agent": agent,
        "golden_prompts": ["go"],
        "contract": {"name": "c", "invariants": [RULE], "chaos_matrix": [{"name": "calm"}]},
    }
    file.write_text(yaml.safe_dump(whole, sort_keys=False))
    return load(file, environ={"KEY": "k-123456"})[0].agent


def test_what_is_expected_and_typed(tmp_path: Path) -> None:
    agent = loaded(tmp_path, {"type": "command", "command": "bot", "dialogue": [*STEPS, {"expect": "end"}]})
    assert agent.dialogue == (TerminalStep("ok? ", "y"), TerminalStep("> ", "{prompt}"), TerminalStep("end", ""))


@pytest.mark.parametrize(
    ("agent", "path"),
    [
        ({"type": "command", "command": "bot", "dialogue": STEPS[:1]}, "agent.dialogue"),
        ({"type": "command", "command": "bot", "dialogue": STEPS, "prompt": "messages"}, "agent.dialogue"),
        ({"type": "command", "command": "bot", "dialogue": [{"type": "y"}]}, "agent.dialogue[0].expect"),
        ({"type": "command", "command": "bot", "dialogue": [{"expect": ""}]}, "agent.dialogue[0].expect"),
        ({"type": "python", "endpoint": "bot:answer", "dialogue": STEPS}, "agent.dialogue"),
        ({"endpoint": "http://127.0.0.1:1/ask", "dialogue": STEPS}, "agent.dialogue"),
        ({"type": "command", "command": "bot", "nested_sandbox": True}, "agent.nested_sandbox"),
    ],
)
def test_what_has_no_meaning_is_an_error_where_it_stands(tmp_path: Path, agent: dict[str, object], path: str) -> None:
    (tmp_path / "bot.py").write_text("def answer(prompt): ...")
    with pytest.raises(SpecError) as wrong:
        loaded(tmp_path, agent)
    found = [(problem.path, bool(problem.line)) for problem in wrong.value.problems if problem.severity == "error"]
    assert (path, True) in found


def test_a_prompt_that_goes_another_way_needs_no_place(tmp_path: Path) -> None:
    for more in ({"prompt": "arg"}, {"command": "bot {prompt}"}, {"prompt": "file"}):
        assert loaded(tmp_path, {"type": "command", "command": "bot", "dialogue": STEPS[:1], **more}).dialogue
