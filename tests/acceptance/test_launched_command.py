"""Command agents: how the prompt reaches them, where their answer is, and what their endings mean."""

from __future__ import annotations

from pathlib import Path
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
        {"command": "cat", "prompt": "stdin"},
        {"command": "printf %s {prompt}"},
        {"command": "printf '%s' '{prompt}'"},
        {"command": 'printf %s "{prompt}"'},
        {"command": "printf %s", "prompt": "arg"},
        {"binary": "printf", "args": ["%s", "{prompt}"]},
        {"binary": "echo", "prompt": "arg"},
        {"command": 'printf %s "$HOLDFAST_PROMPT"', "prompt": "env"},
        {"command": "cat {prompt_file}"},
        {"command": 'cat "$HOLDFAST_PROMPT_FILE"', "prompt": "file"},
        {"type": "cli", "command": "cat"},
    ],
    ids=lambda agent: f"{agent.get('prompt', 'default')}: {agent.get('command') or agent.get('binary')}",
)
def test_the_prompt_arrives_as_it_is_written_by_every_way(project: MakeProject, agent: dict[str, Any]) -> None:
    assert asked(project, agent)["answer"].strip() == ODD


@pytest.mark.parametrize(
    ("agent", "answer"),
    [
        ({"command": "echo plain"}, "plain"),
        ({"command": "echo aside; echo said > out.txt", "answer_file": "out.txt"}, "said"),
        ({"command": """echo '{"a": {"b": ["x", "deep"]}}'""", "response_path": "$.a.b[1]"}, "deep"),
        ({"command": """echo '{"a": {"b": "dotted"}}'""", "response_path": "a.b"}, "dotted"),
        (
            {"command": """echo '{"a": "filed"}' > o.json""", "answer_file": "o.json", "response_path": "$.a"},
            "filed",
        ),
    ],
    ids=["stdout", "file", "JSONPath", "dotted", "JSONPath into a file"],
)
def test_the_answer_is_stdout_a_file_or_a_path_into_either(
    project: MakeProject, agent: dict[str, Any], answer: str
) -> None:
    trial = asked(project, agent)
    assert (trial["answer"].strip(), trial["ending"]) == (answer, "answered")


def test_an_answer_file_of_the_last_trial_is_not_taken_for_this_ones(project: MakeProject) -> None:
    agent = {"type": "command", "command": "test -e once || echo said > out.txt; touch once", "answer_file": "out.txt"}
    made = project(contract([rule("answers", "completes")], [CALM], prompts=("a", "b"), agent=agent))
    result = quick(made, "--no-preflight")
    assert sorted(t["ending"] for t in result.trials) == ["answered", "no_answer"]


def test_what_it_prints_on_stderr_is_kept_apart_from_its_answer(project: MakeProject) -> None:
    trial = asked(project, {"command": "echo aside >&2; echo said"})
    assert (trial["answer"].strip(), trial["output"].strip()) == ("said", "aside")


@pytest.mark.parametrize(
    ("shell", "ending", "told"),
    [
        ("echo half; exit 3", "crashed", "3"),
        ("echo half; kill -9 $$", "crashed", "SIGKILL"),
        ("true", "no_answer", ""),
    ],
)
def test_a_bad_ending_is_a_result_and_never_an_error(project: MakeProject, shell: str, ending: str, told: str) -> None:
    trial = asked(project, {"command": shell})
    assert (trial["ending"], trial["outcome"]) == (ending, "fail")
    assert told in trial["detail"]
    assert ending != "crashed" or trial["answer"].strip() == "half"


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


def test_variables_of_the_section_and_of_the_trial_are_in_its_environment(project: MakeProject) -> None:
    agent = {"command": 'echo "$KIND $PARAM_SIZE $HOLDFAST_REPLICA ${HOLDFAST_SEED:?}"', "env": {"KIND": "small"}}
    trial = asked(project, agent, parallelism={"matrix": {"size": [7]}})
    assert trial["answer"].split() == ["small", "7", "0", "0"]


def test_it_runs_in_the_folder_of_the_spec(project: MakeProject) -> None:
    made = project(contract([rule("answers", "completes")], [CALM], agent={"type": "command", "command": "pwd"}))
    result = project({}, name="elsewhere").command(
        "contract", "run", "--json", "--no-report", "-c", str(made.folder / "holdfast.yaml")
    )
    assert Path(result.trial["answer"].strip()) == made.folder.resolve()


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ({"command": "no-such-program-here"}, ("agent.command cannot be run", "no-such-program-here")),
        ({"binary": "no-such-program-here"}, ("agent.binary", "not on PATH")),
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


def test_reset_is_called_before_every_trial_and_its_failure_is_an_error(project: MakeProject) -> None:
    agent = {"type": "command", "command": "cat state; echo dirty >> state", "reset_function": "resets:clean"}
    made = project(contract([rule("clean", "excludes_pattern", patterns=["dirty"])], [CALM], agent=agent))
    (made.folder / "resets.py").write_text("def clean():\n    open('state', 'w').write('clean')\n")
    assert quick(made, "--replicas", "3").outcomes == {("clean", "calm"): "pass"}
    (made.folder / "resets.py").write_text("def clean():\n    raise OSError('no way')\n")
    broken = quick(made, "--no-preflight")
    assert (broken.code, broken.cell["outcome"]) == (3, "error")
    assert "no way" in broken.trial["reason"] + broken.cell["reason"]


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
