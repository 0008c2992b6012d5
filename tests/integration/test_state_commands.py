"""`command_exit` and `custom`: what is run, and what its end means."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from error_code import has_code
from holdfast.checks.state.command_exit import CommandExit
from holdfast.checks.state.custom import Custom
from holdfast.errors import HarnessError
from holdfast.model.capabilities import THROWAWAY
from holdfast.model.verdict import Finding
from holdfast.model.world import Isolation
from holdfast.protocols.sandbox import CommandResult
from world_kit import FakeDatabase, FakeMock, FakeWorld, gathered, rows, run


def judged(check: Any, ran: CommandResult) -> Finding:
    finding: Finding = check.decide(gathered(check, FakeWorld(Path("/nowhere"), ran=ran)))
    return finding


@pytest.mark.parametrize(
    ("ran", "code", "passed", "reason"),
    [
        (CommandResult(0), 0, True, "npm test exited with 0"),
        (CommandResult(3), 3, True, "npm test exited with 3"),
        (CommandResult(1, b"2 failed\n"), 0, False, "npm test exited with 1, not 0: 2 failed"),
        (
            CommandResult(2, b"", b"x\nsh: 1: [: -lt: unexpected operator\n"),
            0,
            False,
            "exited with 2, not 0: sh: 1: [: -lt: un",
        ),
        (CommandResult(0), 1, False, "npm test exited with 0, not 1"),
        (CommandResult(None, timed_out=True), 0, False, "npm test did not end within 120 s"),
        (CommandResult(None, signal=9), 0, False, "npm test was killed by SIGKILL"),
    ],
)
def test_a_command_passes_by_its_exit_code_alone(ran: CommandResult, code: int, passed: bool, reason: str) -> None:
    found = judged(CommandExit("npm test", exit_code=code), ran)
    assert found.passed is passed
    assert reason in found.reason


def test_a_command_runs_by_the_shell_with_the_agents_environment_and_is_thrown_away() -> None:
    world = FakeWorld(Path("/nowhere"))
    gathered(CommandExit("a && b", timeout=5_000), world)
    ((argv, how),) = world.sandbox.orders
    assert argv == ("/bin/sh", "-c", "a && b")
    assert (how["env"], how["timeout_s"], how["keep"], how["throwaway"]) == (dict(world.environ), 5.0, 8_000, True)


def test_what_a_command_printed_is_kept() -> None:
    assert judged(CommandExit("x"), CommandResult(1, b"out\xff", b"err")).details == {
        "exit_code": 1, "stdout": "out\ufffd", "stderr": "err",
    }  # fmt: skip


# -- custom ---------------------------------------------------------------------------------------
def script(folder: Path, source: str) -> Custom:
    (folder / "check.py").write_text(source)
    for name in ("audit.jsonl", "trace.jsonl"):
        (folder / name).write_text("{}\n")
    return Custom("check.py", timeout=10_000)


def printing(text: str) -> str:
    return f"import sys\nsys.stdin.read()\nprint({text!r})"


@pytest.mark.parametrize(
    ("printed", "passed", "score", "details"),
    [
        ('{"passed": true}', True, None, {}),
        ('{"passed": false}', False, None, {}),
        ('{"passed": true, "score": 0.5, "reason": "half", "details": {"n": 1}}', True, 0.5, {"n": 1}),
        ('{"passed": false, "score": 1, "extra": [2]}', False, 1.0, {"extra": [2]}),
        ('{"passed": true, "details": "text"}', True, None, {"details": "text"}),
    ],
)
def test_the_result_of_a_script(tmp_path: Path, printed: str, passed: bool, score: Any, details: Any) -> None:
    check = script(tmp_path, printing(printed))
    found = check.decide(gathered(check, FakeWorld(tmp_path)))
    assert (found.passed, found.score, found.details) == (passed, score, details)


@pytest.mark.parametrize(
    "printed",
    [
        '{"passed": false, "passed": true}',
        '{"passed": true, "score": 0.1, "score": 1.0}',
        '{"passed": true, "details": {"n": 1, "n": 2}}',
        '{"passed": true, "p\\u0061ssed": false}',
    ],
)
def test_a_key_that_is_there_twice_is_an_error(tmp_path: Path, printed: str) -> None:
    check = script(tmp_path, printing(printed))
    with pytest.raises(HarnessError, check=has_code("check-script-failed")):
        check.decide(gathered(check, FakeWorld(tmp_path)))


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (printing("nonsense"), "must print one JSON object"),
        ("pass", "it printed nothing"),
        (printing('[{"passed": true}]'), "must print a JSON object"),
        (printing('{"passed": 1}'), "must print passed"),
        (printing('{"passed": "true"}'), "must print passed"),
        (printing('{"score": 1}'), "must print passed"),
        (printing('{"passed": true, "score": 1.5}'), "a score of 1.5"),
        (printing('{"passed": true, "score": NaN}'), "must print one JSON object"),
        (printing('{"passed": true, "score": true}'), "a score of True"),
        (printing('{"passed": true, "score": "1"}'), "a score of 1"),
        (printing('debug\n{"passed": true}'), "and nothing else"),
        (printing('{"passed": true}') + "\nsys.exit(3)", "exited with 3"),
        ("raise ValueError('no such row')", "exited with 1: ValueError: no such row"),
        ("import os\nos.kill(os.getpid(), 9)", "was killed by SIGKILL"),
        ("print('x' * 3_000_000)", "must print one JSON object"),
    ],
)
def test_a_script_that_does_not_do_its_work_is_an_error(tmp_path: Path, source: str, why: str) -> None:
    check = script(tmp_path, source)
    with pytest.raises(HarnessError, match=why):
        check.decide(gathered(check, FakeWorld(tmp_path)))


def test_a_script_that_hangs_is_an_error_and_is_gone_with_what_it_started(tmp_path: Path) -> None:
    (tmp_path / "check.py").write_text(
        "import subprocess, time\nc = subprocess.Popen(['sleep', '60'])\n"
        "open('pids', 'w').write(str(c.pid))\ntime.sleep(60)"
    )
    check = Custom("check.py", timeout=1_500)
    world = FakeWorld(tmp_path)
    began = time.monotonic()
    with pytest.raises(HarnessError, check=has_code("check-timeout")):
        check.decide(gathered(check, world))
    assert time.monotonic() - began < 20
    pid = int((tmp_path / "pids").read_text())
    for _ in range(100):
        if not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text().split(")")[1]:
            return
        time.sleep(0.02)
    os.kill(pid, 9)
    pytest.fail("what the script started is still there")


TELL = """
import json, os, sys
context = json.load(sys.stdin)
seen = {"context": context, "cwd": os.getcwd(), "env": sorted(os.environ), "path": sys.path, "argv": sys.argv,
        "name": __name__}
print(json.dumps({"passed": True, "details": seen}))
"""


def test_on_the_host_a_script_gets_the_documented_context_and_nothing_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    check = script(tmp_path, TELL)
    (tmp_path / "json.py").write_text("raise SystemExit('planted')")
    world = FakeWorld(tmp_path, FakeDatabase(lambda sql: rows()), FakeMock())
    seen = check.decide(gathered(check, world)).details
    port = seen["context"]["services"]["db"]["port"]
    assert port != 5432
    assert seen["context"] == {
        "sandbox_id": "sb-abcdefabcdef",
        "workspace_path": str(tmp_path),
        "services": {
            "db": {"host": "127.0.0.1", "port": port},
            "smtp": {"host": "127.0.0.1", "port": 4711},
        },
        "audit_log_path": str(tmp_path / "audit.jsonl"),
        "trace_path": str(tmp_path / "trace.jsonl"),
        "task": {"prompt": "Send the mail"},
        "scenario_params": {"model": "m"},
    }
    assert seen["cwd"] == str(tmp_path)
    assert not {"OPENAI_API_KEY", "PYTHONPATH", "HOME"} & set(seen["env"])
    assert str(tmp_path) not in seen["path"]
    assert "" not in seen["path"]
    assert (seen["argv"], seen["name"]) == ([str(tmp_path / "check.py")], "__main__")


def test_a_script_that_stands_alone_is_run_by_no_python_of_the_agent(tmp_path: Path) -> None:
    script(tmp_path, "#!/usr/bin/env -S python3 -I\nprint(1)")
    check = Custom("check.py", runs_in="sandbox")
    world = FakeWorld(tmp_path, FakeDatabase(lambda sql: rows()), ran=CommandResult(0, b'{"passed": true}'))
    world.environ = {
        "HOME": "/home/spec",
        "PATH": "/workspace/bin:/usr/../tmp/x:bin::/home/agent/.local/bin:/home/spec/bin:"
        "/home/ann/venv/bin:/usr/bin:/workspaces",
    }
    gathered(check, world)
    ((argv, _),) = world.sandbox.orders
    assert '-I "$0"' in argv[2]
    # Ann's activated environment is mounted read-only: only the home of the sandbox is the agent's.
    assert argv[3:] == ("/run/holdfast/check-check.py", "/home/ann/venv/bin:/usr/bin:/workspaces")


def test_in_the_sandbox_the_script_is_lent_and_its_paths_are_valid_there(tmp_path: Path) -> None:
    script(tmp_path, "print(1)")
    check = Custom("check.py", runs_in="sandbox")
    world = FakeWorld(tmp_path, FakeDatabase(lambda sql: rows()), ran=CommandResult(0, b'{"passed": true}'))
    assert check.decide(gathered(check, world)).passed
    ((argv, how),) = world.sandbox.orders
    assert argv == ("/bin/sh", "-c", 'exec python3 "$0"', "/run/holdfast/check-check.py")
    assert how["throwaway"]
    told = json.loads(how["stdin"])
    assert told["workspace_path"] == "/workspace"
    assert told["services"] == {"db": {"host": "db", "port": 5432}}
    assert told["audit_log_path"] == "/run/holdfast/audit.jsonl"
    assert world.lent["check-check.py"] == b"print(1)"
    assert world.lent["trace.jsonl"] == b"{}\n"


def test_a_script_that_is_not_there_is_told_before_the_agent_starts(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, check=has_code("check-script-failed")):
        run(Custom("nowhere.py").foresee(FakeWorld(tmp_path)))


PASSED, FAILED = CommandResult(0, b'{"passed": true}'), CommandResult(0, b'{"passed": false, "reason": "2 of 3"}')


@pytest.mark.parametrize(
    ("reference", "agents", "passed", "code"),
    [
        (PASSED, PASSED, True, "script-said"),
        (PASSED, FAILED, False, "script-said"),
        (FAILED, PASSED, None, "reference-failed"),
        (FAILED, FAILED, None, "reference-failed"),
        (CommandResult(1, b"", b"no such module"), FAILED, None, "reference-failed"),
        (CommandResult(None, timed_out=True), PASSED, None, "reference-failed"),
    ],
)
def test_where_the_scripts_own_solution_does_not_pass_nothing_is_proven(
    tmp_path: Path, reference: CommandResult, agents: CommandResult, passed: bool | None, code: str
) -> None:
    script(tmp_path, "print(1)")
    check = Custom("check.py", runs_in="sandbox", timeout=1_000, reference_timeout=5_000)
    world = FakeWorld(tmp_path, ran=reference)
    run(check.foresee(world))
    ((_, how),) = world.sandbox.orders
    assert (json.loads(how["stdin"])["reference"], how["timeout_s"], how["throwaway"]) == (True, 6.0, True)
    assert world.lent["check-check.py"] == b""  # no agent may find the solution
    again = FakeWorld(tmp_path, ran=agents)
    again.remembered = world.remembered
    run(check.foresee(again))
    assert again.sandbox.orders == []  # once for all trials
    found = check.decide(gathered(check, again))
    assert (found.passed, found.code) == (passed, code)


def test_a_script_that_could_not_judge_the_agent_is_an_error_whatever_its_own_solution_did(tmp_path: Path) -> None:
    script(tmp_path, "print(1)")
    check = Custom("check.py", runs_in="sandbox", reference_timeout=5_000)
    world = FakeWorld(tmp_path, ran=FAILED)
    run(check.foresee(world))
    world.sandbox = FakeWorld(tmp_path, ran=CommandResult(1, b"", b"begin\nuvx is missing\n")).sandbox
    with pytest.raises(HarnessError, check=has_code("check-script-failed")) as broken:
        check.decide(gathered(check, world))
    assert broken.value.details["stderr"].startswith("begin")


@pytest.mark.parametrize("throwaway", [True, False])
def test_a_solution_that_a_trial_could_notice_is_not_tried(tmp_path: Path, throwaway: bool) -> None:
    script(tmp_path, "print(1)")
    check = Custom("check.py", runs_in="sandbox", reference_timeout=5_000)
    services = [FakeDatabase(lambda sql: rows())] if throwaway else []
    world = FakeWorld(tmp_path, *services, ran=PASSED)
    world.sandbox.isolation = (Isolation(THROWAWAY, throwaway, "x"),)
    run(check.foresee(world))
    assert world.sandbox.orders == []
    assert check.decide(gathered(check, world)).passed
    (note,) = world.context.sink.notes
    assert "reference_timeout" in note


def test_a_solution_of_its_own_is_for_a_script_in_the_sandbox() -> None:
    assert [key for key, _ in Custom("a.py", reference_timeout=1).problems()] == ["reference_timeout"]
    assert not [*Custom("a.py", runs_in="sandbox", reference_timeout=1).problems()]


def test_a_script_dies_with_us(tmp_path: Path) -> None:
    """Kills a process that runs a script, as `kill -9` of Holdfast would."""
    import signal
    import subprocess

    script(tmp_path, "import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(60)")
    source = (
        "import asyncio\nfrom pathlib import Path\nfrom holdfast.checks.state.host_script import run_script\n"
        f"p = Path({str(tmp_path)!r})\n"
        "asyncio.run(run_script(p / 'check.py', p, b'', timeout_s=60, keep=9))"
    )
    with subprocess.Popen([sys.executable, "-c", source]) as ours:
        deadline = time.monotonic() + 20
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        ours.send_signal(signal.SIGKILL)
    pid = int((tmp_path / "pid").read_text())
    while Path(f"/proc/{pid}").exists() and " Z " not in Path(f"/proc/{pid}/stat").read_text():
        assert time.monotonic() < deadline, "the script is still there"
        time.sleep(0.02)
