"""Which programs a command runs."""

from __future__ import annotations

import pytest

from holdfast.checks.state.programs import NotRun, outcome_of, programs_in
from holdfast.reading.program_word import program_calls


@pytest.mark.parametrize(
    ("command", "programs"),
    [
        ("pytest -q", ("pytest",)),
        ("cd app && CI=1 exec npm test | tee log", ("cd", "npm", "tee")),
        ("! diff a b; [ -s log ]", ("diff",)),
        ("env -u X FOO=1 uvx ruff", ("uvx", "env")),
        ("$PY -m x; `which y`", ("which",)),
        ("echo 'unclosed", ()),
        ("sh -c 'a || b'", ("sh", "a", "b")),
        ("bash -lc 'cd x && pytest'", ("bash", "cd", "pytest")),
        ("/usr/bin/env timeout -k 5 60 pytest", ("pytest", "/usr/bin/env", "timeout")),
        ("python3 -m pytest -q", ("python3", "python3 -m pytest")),
        ("npx --no-install jest a.js", ("npx", "npx jest")),
        ("npx @scope/tool", ("npx",)),
        ("command -v uv && xargs -n 1 rm", ("rm", "xargs")),
        ("python3 - <<'E'\nimport json\nE", ("python3",)),
        ("f() { pytest; }; f; g", ("pytest", "g")),
        ("pytest 2>/dev/null || true", ("pytest", "true")),
        ("sudo -n -u app pytest -q", ("pytest", "sudo")),
        ("sudo -E A=1 nice -n 5 jest", ("jest", "sudo", "nice")),
        ("time cargo test &", ("cargo", "time")),
        ("bash -c 'time cargo test; shopt -s globstar'", ("bash", "cargo")),
        ('test "$(jest 2>/dev/null | grep -c ok)" = 3', ("jest", "grep", "test")),
        ('[ -z "$(jest "a b" 2>/dev/null)" ]', ("jest",)),
        ('x="`jest`"; y=`mocha -q | tail`', ("jest", "mocha", "tail")),
        ("grep '$(CC)' Makefile", ("grep",)),
        ('echo "it\'s # 1"; jest # tap | mocha', ("echo", "jest")),
        ("echo $((1 + (2 * 3))); jest", ("echo", "jest")),
        ("case $x in a|b) jest;; (c) mocha ;; *) tap; esac; ls", ("jest", "mocha", "tap", "esac", "ls")),
        ("cat <<EOF > a\njest\nEOF\nmocha a", ("cat", "mocha")),
        ("for f in a b; do jest $f; done", ("for", "jest", "done")),
        ("while read l; do jest; done < a", ("read", "jest", "done")),
        ("{ jest; } 2>/dev/null || (mocha; exit 1)", ("jest", "mocha", "exit")),
        ("(jest; mocha) 2>/dev/null 1>&2 || tap", ("jest", "mocha", "tap")),
        ("eval jest", ()),
        (". env/bin/activate && jest", ("jest (after . env/bin/activate)",)),
        ('export PATH="$PWD/bin:$PATH"; jest -q', ('jest (after PATH="$PWD/bin:$PATH")',)),
        ("PATH=$PWD/bin:$PATH jest -q", ("jest (after PATH=$PWD/bin:$PATH)",)),
    ],
)
def test_the_programs_of_a_command(command: str, programs: tuple[str, ...]) -> None:
    assert programs_in(command) == programs


@pytest.mark.parametrize(
    ("command", "programs"),
    [
        ("test $(wc -l < orders.csv) = 2", ("wc", "test")),
        ("echo $(date) > x; ls", ("date", "echo", "ls")),
        ("(cd a && pytest -q) || echo no", ("cd", "pytest", "echo")),
    ],
)
def test_what_follows_a_substitution_goes_on_with_the_command_around_it(
    command: str, programs: tuple[str, ...]
) -> None:
    assert tuple(call.program for call in program_calls(command)) == programs


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        (NotRun(), "by exit code"),
        (NotRun(1, "jest"), "by exit code"),
        (NotRun(127, "./app", by_agent=True), "fail"),
        (NotRun(127, by_agent=True), "fail"),
        (NotRun(127), "unproven"),
        (NotRun(127, "jest", at_start=True), "fail"),
        (NotRun(127, "jest"), "error"),
        (NotRun(126, "jest"), "error"),
    ],
)
def test_what_a_program_that_could_not_be_run_means(found: NotRun, outcome: str) -> None:
    assert outcome_of(found) == outcome
