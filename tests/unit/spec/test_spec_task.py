"""What is asked, as it is written: texts, maps of turns, simulated users, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from msgspec import UNSET
from spec_texts import HTTP, MATRIX, RULES, File

from holdfast.errors import SpecError
from holdfast.model.codec import encode_canonical
from holdfast.model.spec import AgentSpec, TerminalStep
from holdfast.model.task import SimulatedUser, Task
from holdfast.spec import load

AGENT = 'agent: {endpoint: "http://localhost:8000/ask", simulate: answer}\n'


def asking(prompts: str) -> str:
    return AGENT + f"golden_prompts:\n{prompts}" + RULES + MATRIX


def user(settings: str, prompt: str = "prompt: Hello") -> str:
    return asking(f"  - {prompt}\n    user: {{{settings}}}\n")


def test_texts_and_maps_stand_side_by_side(file: File) -> None:
    file.beside("u.txt", "more\n")
    spec = file.spec(
        asking(
            "  - plain\n"
            "  - {prompt: first, turns: [second, third]}\n"
            "  - turns: [only, turns]\n"
            "  - prompt: Hello\n"
            "    user: {script: u.txt, stop: bye, max_turns: 3}\n"
        )
    )
    assert spec.tasks == (
        Task(("plain",)),
        Task(("first", "second", "third")),
        Task(("only", "turns")),
        Task(("Hello",), user=SimulatedUser(script="u.txt", stop="bye", max_turns=3)),
    )
    assert "u.txt" in spec.files


def test_a_map_with_one_prompt_is_the_same_task_as_its_text(file: File) -> None:
    (written,) = file.spec(asking("  - {prompt: plain}\n")).tasks
    assert encode_canonical(written) == encode_canonical(Task(("plain",)))
    assert written.user is UNSET


def test_a_task_may_have_a_user_too(file: File) -> None:
    text = HTTP.replace("golden_prompts", "models: {player: {name: m, base_url: 'http://127.0.0.1:1'}}\ntask")
    text = text.replace('["What is the capital of France?"]', "{prompt: Hi, user: {model: player, goal: a refund}}")
    (task,) = file.spec(text + RULES + MATRIX).tasks
    assert task == Task(("Hi",), "task", user=SimulatedUser(model="player", goal="a refund"))


@pytest.mark.parametrize(
    ("text", "path", "code"),
    [
        (asking("  - {turns: []}\n"), "golden_prompts[0].prompt", "missing-key"),
        (asking("  - {prompt: a, trns: [b]}\n"), "golden_prompts[0].trns", "unknown-key"),
        (asking("  - {prompt: a, turns: ['']}\n"), "golden_prompts[0].turns[0]", "out-of-range"),
        (asking("  - [a, b]\n"), "golden_prompts[0]", "wrong-type"),
        (asking("  - 5\n"), "golden_prompts[0]", "wrong-type"),
        (user(""), "golden_prompts[0].user", "missing-key"),
        (user("script: u.txt, model: gpt-4o"), "golden_prompts[0].user.model", "conflict"),
        (user("script: u.txt, goal: x"), "golden_prompts[0].user.goal", "conflict"),
        (user("model: gpt-4o"), "golden_prompts[0].user.goal", "missing-key"),
        (user("script: []"), "golden_prompts[0].user.script", "empty"),
        (user("script: [a, '']"), "golden_prompts[0].user.script[1]", "out-of-range"),
        (user("script: [{when: '(', say: a}]"), "golden_prompts[0].user.script[0].when", "bad-regex"),
        (user("script: [{wen: a, say: a}]"), "golden_prompts[0].user.script[0].wen", "unknown-key"),
        (user("script: gone.txt"), "golden_prompts[0].user.script", "missing-file"),
        (user("script: bad.yaml"), "golden_prompts[0].user.script", "bad-script"),
        (user("script: u.txt, stop: '('"), "golden_prompts[0].user.stop", "bad-regex"),
        (user("script: u.txt, max_turns: 1"), "golden_prompts[0].user.max_turns", "out-of-range"),
        (user("script: u.txt, max_truns: 3"), "golden_prompts[0].user.max_truns", "unknown-key"),
        (
            user("script: u.txt, max_turns: 2", prompt="turns: [a, b]"),
            "golden_prompts[0].user.max_turns",
            "conflict",
        ),
    ],
)
def test_what_cannot_be_asked_is_an_error_at_its_place(file: File, text: str, path: str, code: str) -> None:
    file.beside("u.txt", "more\n")
    file.beside("bad.yaml", "- a\n- {when: x}\n")
    problem = file.error(text)
    assert (problem.path, problem.code) == (path, code)
    assert problem.line >= 3


def test_parameters_are_for_the_goal_alone(file: File) -> None:
    matrix = "parallelism: {matrix: {city: [Rome]}}\n"
    assert file.spec(user("model: gpt-4o, goal: 'a trip to {{ params.city }}'") + matrix)
    problem = file.error(user("model: gpt-4o, goal: x, stop: '{{ params.city }}'") + matrix)
    assert problem.path == "golden_prompts[0].user.stop"


def test_a_model_that_nothing_answers_for_is_named(file: File) -> None:
    (unbuilt,) = file.spec(user("model: playr, goal: x") + "models: {player: {name: m}}\n").unbuilt
    assert (unbuilt.section, unbuilt.hint, unbuilt.mistake) == (
        "golden_prompts[0].user.model",
        "did you mean player?",
        True,
    )


def test_the_same_conversation_twice_is_warned_of(file: File) -> None:
    text = asking("  - {turns: [a, b]}\n  - {turns: [a, b]}\n  - {turns: [a, c]}\n")
    (warned,) = file.warnings(text, "lint-repeated-prompt")
    assert warned.path == "golden_prompts[1]"


# `agent.dialogue` and `agent.nested_sandbox`: what they mean, and where they mean nothing.


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
