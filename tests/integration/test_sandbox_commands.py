"""The log of commands in a real sandbox, where ends are not simple."""

import sys

import pytest
from sandbox_kit import ENV, in_sandbox
from world_runs import ran, spec_of

THREADS = """
import os, sys, threading
def work():
    if sys.argv[1] == "exec":
        os.execv("/bin/sh", ["sh", "-c", "exit 5"])
    os._exit(6)
threading.Thread(target=work).start()
threading.Event().wait()
"""
REFUSED = """
import os, subprocess
open("plain", "w").write("no program")
for call in (lambda: os.execv("./plain", ["plain", "1"]), lambda: subprocess.run(["./plain", "2"])):
    try:
        call()
    except PermissionError:
        pass
"""


def ends_of(folder, *argv):
    """What a program of ours executed, and with which end, in the order of its beginning."""
    heard = []

    def hear(command):
        ends = []
        heard.append((command, ends))
        return ends.append

    async def work(sandbox):
        await sandbox.run(list(argv), ENV)
        await sandbox.freeze()

    in_sandbox(folder, work, commands=hear)
    assert all(len(ends) == 1 for _, ends in heard)
    return [(list(command.argv), ends[0]) for command, ends in heard]


@pytest.mark.parametrize(("how", "code"), [("exec", 5), ("exit", 6)])
def test_a_thread_ends_its_process(tmp_path, how, code):
    found = ends_of(tmp_path, sys.executable, "-c", THREADS, how)
    assert [end.exit_code for _, end in found] == [code] * (2 if how == "exec" else 1)


def test_what_could_not_be_executed_never_ran(tmp_path):
    (_, whole), *refused = ends_of(tmp_path, sys.executable, "-c", REFUSED)
    assert [argv for argv, _ in refused] == [["plain", "1"], ["./plain", "2"]]
    assert [(end.exit_code, end.duration_ms) for _, end in refused] == [(None, None)] * 2
    assert (whole.exit_code, whole.duration_ms > 0) == (0, True)


def test_a_program_that_executes_itself_ran_each_time(tmp_path):
    """Also where the kernel places it at the same addresses."""
    script = 'test "$1" = xxx && exit 4; exec sh -c "$0" "$0" "x$1"'
    found = ends_of(tmp_path, "setarch", "-R", "sh", "-c", script, script, "")
    assert [(argv[0], end.exit_code, end.duration_ms is None) for argv, end in found] == [
        ("setarch", 4, False),
        *[("sh", 4, False)] * 4,
    ]


def test_many_at_once_are_told_apart(tmp_path):
    script = """
        for i in 1 2 3 4 5 6 7 8 9; do sh -c "sleep 0.0$i; exit $i" & done; wait
        for i in $(seq 99); do env true; done
    """
    found = ends_of(tmp_path, "sh", "-c", script)
    codes = {argv[2]: end.exit_code for argv, end in found if argv[:2] == ["sh", "-c"] and argv[2].startswith("sleep")}
    assert codes == {f"sleep 0.0{i}; exit {i}": i for i in range(1, 10)}
    assert [end.exit_code for argv, end in found if argv[0] == "true"] == [0] * 99


def test_the_audit_has_exit_codes_and_durations(tmp_path):
    found = ran(tmp_path, spec_of("sleep 0.2; cat nothing; ls > list; sh -c 'kill -9 $$'; :"))
    told = [(event["argv"][0], event["exit_code"]) for event in found.audit("command")]
    assert told == [("/bin/sh", 0), ("sleep", 0), ("cat", 1), ("ls", 0), ("sh", None)]
    durations = [event["duration_ms"] for event in found.audit("command")]
    assert durations[1] >= 200
    assert durations[0] >= durations[1] + durations[3]
