"""Which programs a command runs."""

from __future__ import annotations

import pytest

from holdfast.checks.state.programs import NotRun, has_another_way, interpret_exit, list_programs
from holdfast.reading.program_word import find_program_calls


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
        ("if [[ -f a && -f b ]]; then exit 1; fi", ("[[", "exit", "fi")),
        ("! [[ -f a ]]", ("[[",)),
        ("if (( $(ls | wc -l) > 0 )); then exit 1; fi", ("let", "exit", "fi")),
        ("((jest); mocha) || (( 1 ))", ("jest", "mocha", "let")),
        ("source ./x.sh; true", ("source (after source ./x.sh)", "true (after source ./x.sh)")),
        (r"find . \( -name a -o -name b \) -exec jest {} \; -print", ("find", "jest")),
        ("find . -exec sh -c 'jest; mocha' ';' -print", ("find", "sh", "jest", "mocha")),
        ("bash -c 'cat <(jest)'; true", ("bash", "jest", "cat", "true")),
        ("bash -c 'a=(x y z); echo ${a[1]}'", ("bash",)),
        ("bash -c '[[ abc =~ (b|c) ]] && jest'", ("bash", "jest")),
        ("bash -c 'i=0; (( i++ )); (( i == 1 ))'", ("bash",)),
        ("bash -c 'function f { jest; }; f'", ("bash",)),
        (". env/bin/activate && jest", ("jest (after . env/bin/activate)",)),
        ('export PATH="$PWD/bin:$PATH"; jest -q', ('jest (after PATH="$PWD/bin:$PATH")',)),
        ("PATH=$PWD/bin:$PATH jest -q", ("jest (after PATH=$PWD/bin:$PATH)",)),
    ],
)
def test_the_programs_of_a_command(command: str, programs: tuple[str, ...]) -> None:
    assert list_programs(command) == programs


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
    assert tuple(call.program for call in find_program_calls(command)) == programs


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
    assert interpret_exit(found) == outcome


@pytest.mark.parametrize(
    ("command", "missing", "has_one"),
    [
        ("jest || ls", "jest", True),
        ("jest || { cd x && ls; }", "jest", True),
        ("jest || true", "jest", False),
        ("jest || true && test -d /", "jest", False),
        ("(jest || true) && test -d /", "jest", False),
        ("if [[ -f a ]]; then exit 1; fi", "[[", False),
        ("[[ -f a ]] && exit 1 || exit 0", "[[", False),
        ("if (( 1 )); then exit 1; fi", "let", False),
    ],
)
def test_another_way_is_what_runs_only_instead_of_the_missing_program(
    command: str, missing: str, has_one: bool
) -> None:
    assert has_another_way(command, [missing], passed=True) is has_one
