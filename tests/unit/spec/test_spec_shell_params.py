"""A param in a command is one word of it, or the text inside its quotes."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import UserError
from holdfast.spec.shell_places import fill_command

REF = "{{ params.x }}"
VALUES = [
    "plain",
    "two words",
    "a; echo no",
    "$(echo no)",
    "`echo no`",
    "it's",
    'say "hi"',
    "b\\s",
    "*",
    "",
    "$HOME",
    "A=b",
    "#c",
    REF,
    "{{ params.y }}",
]


def printed(command: str, value: object) -> str:
    filled = fill_command(command, {"x": value})
    return subprocess.run(["sh", "-c", filled], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("written", [REF, f'"{REF}"', f"'{REF}'", f"'it'\\''s'{REF}", f'a"b\\""{REF}', f"\\'{REF}"])
def test_a_value_arrives_as_it_is(written: str) -> None:
    for value in VALUES:
        bare = printed(f"printf '%s|' {written} end", "")
        assert printed(f"printf '%s|' {written} end", value) == bare.replace("|end|", f"{value}|end|"), value


def test_plain_values_and_other_references_stay_as_they_were() -> None:
    assert fill_command(f"run --model {REF} $HOME ${{KEY}} {{{{ secrets.a }}}}", {"x": "gpt-4.1"}) == (
        "run --model 'gpt-4.1' $HOME ${KEY} {{ secrets.a }}"
    )
    assert fill_command(f"run {REF}", {"x": 3}) == "run '3'"


@settings(max_examples=25, deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=12))
def test_any_text_is_one_word(value: str) -> None:
    assert printed(f"printf '%s|' {REF} \"{REF}\" '{REF}'", value) == f"{value}|" * 3


def test_where_no_value_can_be_quoted_it_is_refused() -> None:
    for command, where in [
        (f"\"$(python -c '{REF}')\"", "inside a substitution"),
        (f"echo $(echo {REF})", "inside a substitution"),
        (f"echo $( (echo a) {REF})", "inside a substitution"),
        (f"echo `echo '{REF}'`", "inside a substitution"),
        (f'echo "`echo {REF}`"', "inside a substitution"),
        (f"echo ${{A:-{REF}}}", "inside a substitution"),
        (f"echo $((1 + {REF}))", "inside a substitution"),
        (f"echo a # it's {REF}", "in a comment"),
        (f"echo a;# {REF}", "in a comment"),
        (f"echo \\{REF}", "after a backslash"),
        (f'echo "\\{REF}"', "after a backslash"),
        (f"echo ${REF}", "after a dollar"),
        (f'echo "${REF}"', "after a dollar"),
        (f"echo $\\\n{REF}", "after a dollar"),
        (f"echo $\\\n(echo {REF})", "inside a substitution"),
        (f"cat <<END\n{REF}\nEND", "after a here-document"),
        (f"echo \"$(case a in a) echo 'x {REF}';; esac)\"", "after a here-document, a case"),
        (f"echo $'it\\'s' {REF}", "after a here-document"),
        (f'echo "${{A:-it\'s}}" {REF}', "inside a substitution"),
        (f"echo $(true)#' \n' {REF}", "quotes that cannot be read"),
    ]:
        with pytest.raises(UserError, match=where) as refused:
            fill_command(command, {"x": "a"})
        assert '"$PARAM_X"' in refused.value.hint, (command, where)
        assert fill_command(command, {"y": "a"}) == command, (command, where)


@pytest.mark.parametrize(
    "before",
    [
        "# it's a comment\n",
        "echo a#b it\\'s >/dev/null; ",
        'echo "$(echo \')\')" "${HOME}" >/dev/null; ',
        "echo \"`echo 'a'`\" $((1 + (2))) ${#HOME} >/dev/null; ",
        "echo in case of $# '$(' \"'\" \\$\\( >/dev/null; ",
        "(true) # it's\n",
        "true $(echo # it\necho b) ; ",
    ],
)
def test_what_stands_before_it_does_not_change_it(before: str) -> None:
    for value in VALUES:
        if "# it\n" in before:
            with pytest.raises(UserError):
                fill_command(before + REF, {"x": value})
            continue
        assert printed(f"{before}printf '%s|' {REF} \"{REF}\" '{REF}'", value) == f"{value}|" * 3, value
        assert printed(f"{before}printf '%s|' a{REF}>&1", value) == f"a{value}|", value


def test_a_number_before_a_redirection_is_a_word() -> None:
    assert printed(f"printf '%s|' {REF}>&1", 2) == "2|"
