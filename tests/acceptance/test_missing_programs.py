"""A rule whose program is missing: an error that the preflight and the doctor foretell, never the agent's failure."""

from __future__ import annotations

import json
import subprocess

import pytest
from cli import MakeProject, Project

SPEC = """
version: 1
id: programs
task: {prompt: "Do it"}
agent: {type: command, command: "echo done"}
network: {egress: {default: deny}}
invariants:
  tests_pass: {description: d, gate: true, check: {type: command_exit, command: "no-such-pytest -q"}}
  ends_well: {description: d, check: {type: completes}}
"""


LINE = """test -z '$(no-such-pytest 2>&1)' && (sudo -n no-such-jest; ./build/app; /workspace/x) 2>/dev/null || true"""
SILENT = SPEC.replace('"no-such-pytest -q"', json.dumps(LINE.replace("'", '"')))


def desk(project: MakeProject) -> Project:
    return project(SPEC)


def test_it_is_an_error_and_the_preflight_warns(project: MakeProject) -> None:
    result = desk(project).cli("run", "--json", "--no-report")
    assert result.code == 3
    assert [case["status"] for case in result.json["parts"]["scenario"]["cases"]] == ["error"]
    assert any("no-such-pytest" in warning["text"] for warning in result.json["warnings"])


def test_the_doctor_tries_it_in_the_world(project: MakeProject) -> None:
    result = desk(project).cli("doctor", "--json")
    (found,) = [one for one in result.json["agent"]["findings"] if "no-such-pytest" in one["route"]]
    assert found["outcome"] == "unproven"


def test_a_silent_one_is_unproven_and_the_preflight_and_the_doctor_name_it(project: MakeProject) -> None:
    """What the agent is to write in the workspace is not missing."""
    silent = project(SILENT)
    result = silent.cli("run", "--json", "--no-report")
    (case,) = result.json["parts"]["scenario"]["cases"]
    assert [(cause["rule"], cause["code"]) for cause in case["causes"]] == [("tests_pass", "program-missing")]
    assert (result.code, case["unproven_only"]) == (5, True)
    texts = [warning["text"] for warning in result.json["warnings"] if warning["code"] == "program-missing"]
    for name, expected in (("no-such-pytest", True), ("no-such-jest", True), ("build", False), ("/workspace", False)):
        assert any(name in text for text in texts) is expected
    asked = {one["route"] for one in silent.cli("doctor", "--json").json["agent"]["findings"]}
    assert {"program no-such-pytest", "program no-such-jest"} <= asked
    assert not any("build/app" in route or "/workspace/x" in route for route in asked)


@pytest.mark.parametrize(("command", "code"), [("test -d '/", 3), ("if true; then", 3), ("sh -c 'exit 2'", 1)])
def test_a_command_that_sh_cannot_read_is_an_error(project: MakeProject, command: str, code: int) -> None:
    result = project(SPEC.replace('"no-such-pytest -q"', json.dumps(command))).cli("run", "--json", "--no-report")
    assert result.code == code


UNPROVEN = {
    "condition": "if [[ -f bad ]]; then exit 1; fi",
    "sum": "if (( $(ls | wc -l) > 0 )); then exit 1; fi",
    "source": "source ./x.sh; true",
    "found": r"find . -exec no-such-jest {} \; ; true",
    "in_any_case": "no-such-jest || true && test -d /",
    "both_outputs": "test -d /no-such-folder &> /dev/null",
    "to_a_file": "test -d / >& /dev/null",
    "pipe_of_both": "test -d / |& cat",
    "equal": "[ a == a ]",
    "counted": 'if [ "$(ls | wc -l)" == 0 ]; then exit 1; fi',
    "process": "diff <(echo a) <(echo a)",
    "here_string": "cat <<< a",
    "part": 'x=ab; test "${x:0:1}" = a',
    "capitals": 'x=a; test "${x^^}" = A',
    "pointer": 'x=y; test -z "${!x}"',
    "array": "x=(a b); test -d /",
    "pipefail": "set -euo pipefail; test -d /",
    "braces": "for i in {1..3}; do test -d /$i || exit 1; done",
    "escapes": "test $'a' = a",
    "inside": 'test -z "$(ls &> /dev/null)"',
}
PROVEN = {
    "bash_array": "bash -c 'a=(x y); test ${a[1]} = y'",
    "pattern": "bash -c '[[ abc =~ (b|c) ]]'",
    "count": "bash -c 'i=0; (( ++i )); (( i == 1 ))'",
    "function": "bash -c 'function f { test -d /; }; f'",
    "bash_both": "bash -c 'test -d / &> /dev/null && [ a == a ]'",
    "standard": """x=a/b; test "${x%/*}${x:-c,d}" = aa/b && ls >/dev/null 2>&1 && echo '&> {a,b}' >&2""",
    "here_text": "cat <<E\n&> {a,b} <<< x\nE",
    "expression": r"find . \( -name a -o -name b \) -print",
}


@pytest.mark.skipif(
    subprocess.run(["sh", "-c", "command -v [["], capture_output=True).returncode == 0, reason="this sh has [["
)
def test_what_sh_lacks_is_missing_and_what_bash_has_is_not(project: MakeProject) -> None:
    rules = [
        f"  {name}: {{description: d, gate: true, check: {{type: command_exit, command: {json.dumps(command)}}}}}"
        for name, command in (UNPROVEN | PROVEN).items()
    ]
    result = project("\n".join([*SPEC.splitlines()[:-2], *rules])).cli("run", "--json", "--no-report")
    (case,) = result.json["parts"]["scenario"]["cases"]
    assert {(cause["rule"], cause["code"]) for cause in case["causes"]} == {
        (name, "program-missing") for name in UNPROVEN
    }
