"""How a prompt reaches a command, whatever is in it."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from launch_kit import PYTHON, NotedPlanes, ask, context_of, launched, python

from example_counts import examples
from holdfast.agents.placeholders import PROMPT, fill_argument, fill_command
from holdfast.model.task import Task
from refused import refused

NASTY = """it's "one" $(touch broken) `touch broken`; touch broken & | > < \\ {prompt} {prompt_file} {port} é
-n last line"""


@pytest.mark.parametrize(
    ("command", "way"),
    [
        ("cat", "stdin"),
        ("printf %s", "arg"),
        ("printf %s {prompt}", "stdin"),
        ('printf %s "{prompt}"', "arg"),
        ("printf %s '{prompt}'", "arg"),
        ('x=$(printf %s {prompt}); printf %s "$x"', "arg"),
        ('printf %s "$HOLDFAST_PROMPT"', "env"),
        ('cat "$HOLDFAST_PROMPT_FILE"', "file"),
        ("cat {prompt_file}", "stdin"),
        ('cat "{prompt_file}"', "file"),
    ],
)
def test_a_prompt_arrives_as_it_is_by_every_way(tmp_path: Path, command: str, way: Any) -> None:
    assert ask(tmp_path, NASTY, command=command, prompt=way).turns[0].text == NASTY
    assert not (tmp_path / "broken").exists()


@pytest.mark.parametrize(
    ("args", "way", "called"),
    [
        (("{prompt}",), "stdin", [NASTY]),
        (("--task={prompt}", "x"), "stdin", [f"--task={NASTY}", "x"]),
        (("--task",), "arg", ["--task", NASTY]),
    ],
)
def test_a_binary_gets_the_prompt_where_its_arguments_say(
    tmp_path: Path, args: tuple[str, ...], way: Any, called: list[str]
) -> None:
    (tmp_path / "agent.py").write_text("import sys; print(ascii(sys.argv[1:]))")
    seen = ask(tmp_path, NASTY, binary=PYTHON, args=("agent.py", *args), prompt=way)
    assert seen.turns[0].text == ascii(called)


PIECES = st.lists(
    st.sampled_from(["{prompt}", "'{prompt}'", '"{prompt}"', "a'b{prompt}c'd", 'a"b {prompt} c"d', "\\'{prompt}"])
)


@settings(max_examples=examples(60), deadline=None)
@given(words=PIECES, prompt=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_each_place_becomes_exactly_the_prompt_in_any_quotes(words: list[str], prompt: str) -> None:
    command = fill_command(f"{PYTHON_ECHO} " + " ".join(words))
    plain = [word.replace("\\'", "\0").translate({39: None, 34: None}).replace("\0", "'") for word in words]
    done = subprocess.run(["/bin/sh", "-c", command], env={PROMPT: prompt}, capture_output=True, check=True)
    assert done.stdout.decode() == "".join(word.replace("{prompt}", prompt) + "\1" for word in plain)


PYTHON_ECHO = r"""say() { for word; do printf '%s\001' "$word"; done; }; say"""


@pytest.mark.parametrize(
    ("command", "becomes"),
    [
        ("a # it's {prompt}\nb {prompt}", 'a # it\'s {prompt}\nb "${HOLDFAST_PROMPT}"'),
        ('a "$(b {prompt})" "{prompt}"', 'a "$(b "${HOLDFAST_PROMPT}")" "${HOLDFAST_PROMPT}"'),
        ('a "(" {prompt}', 'a "(" "${HOLDFAST_PROMPT}"'),
        ("case x in a) b {prompt};; esac", 'case x in a) b "${HOLDFAST_PROMPT}";; esac'),
        ("a '\\' {prompt}", "a '\\' \"${HOLDFAST_PROMPT}\""),
        ('a \\" {prompt}', 'a \\" "${HOLDFAST_PROMPT}"'),
    ],
)
def test_quotes_are_followed_through_comments_and_brackets(command: str, becomes: str) -> None:
    assert fill_command(command) == becomes


def test_an_argument_is_filled_in_one_pass() -> None:
    values = {"prompt": "{prompt_file}", "prompt_file": "/tmp/x"}
    assert fill_argument("{prompt} {other} {prompt_file}", values) == "{prompt_file} {other} /tmp/x"


@pytest.mark.parametrize("prompt", ["x" * 200_000, "a\0b"])
def test_a_prompt_that_no_argument_can_carry_is_refused_with_the_way_out(tmp_path: Path, prompt: str) -> None:
    with refused("prompt-undeliverable") as raised:
        ask(tmp_path, prompt, command="true {prompt}")
    assert "stdin" in raised.value.hint


def test_a_large_prompt_goes_through_stdin_and_a_program_that_never_reads_does_not_wait(tmp_path: Path) -> None:
    assert ask(tmp_path, "x" * 3_000_000, command="wc -c").turns[0].text == "3000000"
    assert ask(tmp_path, "x" * 3_000_000, command="echo said").turns[0].text == "said"


def test_the_prompt_file_is_gone_afterwards(tmp_path: Path) -> None:
    path = ask(tmp_path, command="echo {prompt_file}").turns[0].text or ""
    assert path.startswith("/")
    assert not os.path.exists(path)


def test_the_environment_tells_of_the_trial_and_the_users_comes_first(tmp_path: Path) -> None:
    names = "HOME MINE HOLDFAST_TRIAL HOLDFAST_REPLICA HOLDFAST_SEED HOLDFAST_TURN PARAM_SIZE PARAM_LIST"
    command = "echo " + " ".join(f"${name}" for name in names.split())
    context = context_of("a", "b", replica=2, seed=7, params={"size": "big", "list": [1]})
    answer = ask(
        tmp_path, "a", "b", context=context, command=command, env={"MINE": "x"}, environ={"HOME": "/h", "MINE": "y"}
    )
    assert [seen.text for seen in answer.turns] == [f"/h x 0123456789ab 2 7 {n} big [1]" for n in (1, 2)]


def test_it_runs_in_the_specs_folder(tmp_path: Path) -> None:
    assert ask(tmp_path, command="pwd -P").turns[0].text == os.path.realpath(tmp_path)


def test_what_an_attack_makes_of_the_prompt_is_what_is_asked(tmp_path: Path) -> None:
    context = context_of("hi")
    context.injector.rewrite_turn = lambda text: text + " and obey"  # type: ignore[method-assign]
    seen = ask(tmp_path, "hi", context=context, command="cat").turns[0]
    assert seen.asked == seen.text == "hi and obey"


def test_a_turn_that_ends_badly_is_the_last(tmp_path: Path) -> None:
    answer = ask(tmp_path, "a", "b", "c", command='read -r x; echo "$x"; [ "$x" != b ]')
    assert [(seen.text, seen.ending) for seen in answer.turns] == [("a", "answered"), ("b", "crashed")]


def test_each_trial_has_an_address_of_its_own_and_it_is_closed(tmp_path: Path) -> None:
    planes = NotedPlanes()

    async def go() -> list[str]:
        command = python(tmp_path, "import os; print(os.environ['ADDRESS'])")
        async with launched(tmp_path, type="command", command=command, planes=planes) as agent:
            answers = [await agent.run(Task(("a", "b")), context_of("a", "b")) for _ in range(2)]
            return [seen.text for answer in answers for seen in answer.turns]

    said = asyncio.run(go())
    assert said[0] == said[1] != said[2] == said[3]
    assert [(len(address.carried), address.carries, address.closed) for address in planes.addresses] == [
        (1, False, True)
    ] * 2


def test_trials_that_share_an_answer_file_take_turns(tmp_path: Path) -> None:
    async def go() -> list[str]:
        command = "read -r x; sleep 0.1; echo $x > out.txt; sleep 0.1"
        async with launched(tmp_path, type="command", command=command, answer_file="out.txt") as agent:
            assert (agent.limit, len(agent.notes)) == (1, 1)
            answers = await asyncio.gather(*(agent.run(Task((text,)), context_of(text)) for text in "abc"))
            return [answer.turns[0].text for answer in answers]

    assert asyncio.run(go()) == ["a", "b", "c"]


def test_a_reset_function_is_called_before_every_trial(tmp_path: Path) -> None:
    (tmp_path / "resetting.py").write_text("def now():\n    open('reset', 'a').write('x')\n")

    async def go() -> None:
        section = {"type": "command", "command": "cat reset", "reset_function": "resetting:now"}
        async with launched(tmp_path, **section) as agent:
            answers = [await agent.run(Task(("a",)), context_of("a")) for _ in range(2)]
            assert [answer.turns[0].text for answer in answers] == ["x", "xx"]

    asyncio.run(go())
