"""A param in a command is one word of it, or the text inside its quotes."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.execute.shell_params import in_command

REF = "{{ params.x }}"
VALUES = ["plain", "two words", "a; echo no", "$(echo no)", "`echo no`", "it's", 'say "hi"', "b\\s", "*", "", "$HOME"]


def printed(command: str, value: object) -> str:
    filled = in_command(command, {"x": value})
    return subprocess.run(["sh", "-c", filled], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("written", [REF, f'"{REF}"', f"'{REF}'", f"'it'\\''s'{REF}", f'a"b\\""{REF}', f"\\'{REF}"])
def test_a_value_arrives_as_it_is(written: str, value: str) -> None:
    bare = printed(f"printf '%s|' {written} end", "")
    assert printed(f"printf '%s|' {written} end", value) == bare.replace("|end|", f"{value}|end|")


def test_plain_values_and_other_references_stay_as_they_were() -> None:
    assert in_command(f"run --model {REF} $HOME ${{KEY}} {{{{ secrets.a }}}}", {"x": "gpt-4.1"}) == (
        "run --model gpt-4.1 $HOME ${KEY} {{ secrets.a }}"
    )
    assert in_command(f"run {REF}", {"x": 3}) == "run 3"


@settings(max_examples=25, deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=12))
def test_any_text_is_one_word(value: str) -> None:
    assert printed(f"printf '%s|' {REF} \"{REF}\" '{REF}'", value) == f"{value}|" * 3
