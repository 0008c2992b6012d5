"""Every kind of agent inside a real sandbox: what it is given, what it sees, what it cannot."""

import textwrap

import pytest
from world_runs import BACKENDS, ran, spec_of

AGENT = """
    import os, sys
    def answer(prompt):
        with open("made.txt", "w") as file:
            file.write(prompt)
        return f"{prompt} {os.environ['HOLDFAST_TRIAL']} {os.environ['PARAM_LANG']} {os.getcwd()}"
"""
SERVER = """
    import json, os
    from http.server import BaseHTTPRequestHandler, HTTPServer
    class Desk(BaseHTTPRequestHandler):
        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with open("made.txt", "w") as file:
                file.write(asked["input"])
            said = f"{asked['input']} {os.environ['HOLDFAST_TRIAL']} {os.environ['PARAM_LANG']} {os.getcwd()}"
            body = json.dumps({"output": said}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        def log_message(self, *words):
            pass
    HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Desk).serve_forever()
"""
SCRIPT = """
    import sys
    from agent_code import answer
    print(answer(sys.stdin.read()))
"""
KINDS = {
    "command": {"type": "command", "command": "python3 script.py", "dir": "mine"},
    "binary": {"type": "command", "binary": "python3", "args": ["script.py"], "dir": "mine"},
    "python": {"type": "python", "endpoint": "agent_code:answer"},
    "http": {
        "type": "http",
        "endpoint": "http://127.0.0.1:{port}/ask",
        "command": "python3 server.py",
        "response_path": "output",
    },
}
FILES = {"mine/agent_code.py": AGENT, "agent_code.py": AGENT, "server.py": SERVER, "mine/script.py": SCRIPT}
MADE = {"made": {"description": "d", "check": {"type": "file_content", "path": "made.txt", "contains": "go"}}}


@BACKENDS
@pytest.mark.parametrize("kind", KINDS)
def test_an_agent_of_each_kind_works_in_the_workspace(tmp_path, kind, backend):
    spec = spec_of(KINDS[kind], invariants=MADE, parallelism={"matrix": {"lang": ["de"]}})
    found = ran(tmp_path, spec, files=FILES, backend=backend)
    assert (found.case.status, found.case.reason) == ("pass", "")
    prompt, trial, lang, cwd = found.text.split()
    assert (prompt, trial, lang) == ("go", found.only.trial, "de")
    assert cwd == "/workspace" if backend == "bubblewrap" else cwd.endswith("workspace")


def test_a_file_that_the_command_names_is_placed_alone(tmp_path):
    command = "ls /agent; cat /agent/mine/script.py > /dev/null && python3 mine/hello.py"
    spec = spec_of(command, fixtures=[{"type": "files", "files": [{"path": "given.txt", "content": "x"}]}])
    found = ran(tmp_path, spec, files={**FILES, "mine/hello.py": "print('hello')"})
    assert found.only.ending == "crashed"  # the second part names an absolute path, which is not placed
    assert "No such file" in found.only.output


def test_the_spec_and_its_fixtures_are_not_visible(tmp_path):
    look = f"ls {tmp_path} 2>&1; find / -name spec.yaml -o -name expected.txt 2>/dev/null | head; cat given.txt; ls -a"
    fixtures = [{"type": "directory", "source": "data", "path": "."}]
    found = ran(tmp_path, spec_of(look, fixtures=fixtures), files={"data/given.txt": "given", "expected.txt": "42"})
    assert "No such file" in found.lines[0]
    assert found.lines[1:] == ["given.", "..", "given.txt"]


def test_an_agent_that_cannot_be_started_is_an_error(tmp_path):
    found = ran(tmp_path, spec_of({"type": "command", "binary": "no-such-program"}))
    assert found.case.status == "error"
    assert "cannot start no-such-program" in found.only.error


def test_the_whole_trial_has_its_time(tmp_path):
    rules = {"ends": {"description": "d", "check": {"type": "completes"}}}
    spec = spec_of("echo begun; sleep 30", resources={"timeout": "2s"}, invariants=rules)
    found = ran(tmp_path, spec)
    assert (found.case.status, found.only.ending) == ("fail", "timeout")
    assert " 2 s (resources.timeout)" in found.only.turns[0].detail
    assert found.only.duration_ms < 10_000


SLOW_ANSWER = """
    import time, urllib.request
    def answer(prompt):
        print("begun", flush=True)
        urllib.request.urlopen("http://api/one").read()
        yield "half of it"
        time.sleep(60)
"""
SLOW_SERVER = """
    import os, time, urllib.request
    from http.server import BaseHTTPRequestHandler, HTTPServer
    class Desk(BaseHTTPRequestHandler):
        def do_POST(self):
            print("begun", flush=True)
            urllib.request.urlopen("http://api/one").read()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"half of it")
            self.wfile.flush()
            time.sleep(60)
    HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Desk).serve_forever()
"""
SLOW = {
    "command": {"type": "command", "command": "echo begun >&2; curl -s http://api/one; echo half of it; sleep 60"},
    "python": {"type": "python", "endpoint": "slow_code:answer"},
    "http": {"type": "http", "endpoint": "http://127.0.0.1:{port}/ask", "command": "python3 slow_server.py"},
}
SLOW_FILES = {"slow_code.py": SLOW_ANSWER, "slow_server.py": SLOW_SERVER}


@pytest.mark.parametrize("kind", SLOW)
def test_what_was_said_before_the_trials_time_was_over_is_judged(tmp_path, kind):
    rules = {
        "says": {"description": "d", "check": {"type": "contains", "value": "half of it"}},
        "says_more": {"description": "d", "check": {"type": "contains", "value": "the other half"}},
        "ends": {"description": "d", "check": {"type": "completes"}},
    }
    services = [{"name": "api", "type": "http_mock", "routes": [{"path": "/one", "response": ""}]}]
    spec = spec_of(SLOW[kind], resources={"timeout": "4s"}, invariants=rules, services=services)
    found = ran(tmp_path, spec, files=SLOW_FILES)
    assert (found.only.error, found.only.ending, found.text) == ("", "timeout", "half of it")
    assert " 4 s (resources.timeout)" in found.only.turns[0].detail
    assert 0 < found.only.turns[0].latency_ms <= 4_500
    assert "begun" in found.only.output
    assert [event.tool for event in found.only.trace] == ["GET http://api/one"]
    verdicts = {one.invariant: (one.outcome, one.reason) for one in found.verdicts}
    assert verdicts["says"][0] == "pass"
    assert verdicts["says_more"][0] == "fail"
    assert verdicts["ends"][0] == "fail"


def test_the_smaller_limit_counts_and_is_named(tmp_path):
    agent = {"type": "command", "command": "sleep 60", "timeout": "1s"}
    found = ran(tmp_path, spec_of(agent, resources={"timeout": "30s"}))
    assert (found.only.ending, " 1000 ms" in found.only.turns[0].detail) == ("timeout", True)


def test_a_rule_without_text_is_told_the_limit_that_ended_it(tmp_path):
    rules = {"says": {"description": "d", "check": {"type": "contains", "value": "x"}}}
    found = ran(tmp_path, spec_of("sleep 60", resources={"timeout": "2s"}, invariants=rules))
    (verdict,) = found.verdicts
    assert "resources.timeout" in verdict.reason
    assert " 2 s (resources.timeout)" in verdict.reason


NEVER_READY = {
    "python": ({"type": "python", "endpoint": "never:answer"}, {"never.py": "import time\ntime.sleep(60)\n"}),
    "http": ({**KINDS["http"], "command": "echo begun; exec sleep 60"}, {}),
}


@pytest.mark.parametrize("kind", NEVER_READY)
def test_an_agent_that_is_not_ready_in_the_trials_time_has_none_left(tmp_path, kind):
    agent, files = NEVER_READY[kind]
    found = ran(tmp_path, spec_of(agent, resources={"timeout": "3s"}), files=files)
    assert (found.only.error, found.only.ending, found.only.turns[0].text) == ("", "timeout", None)
    assert "resources.timeout" in found.only.turns[0].detail
    assert found.only.duration_ms < 15_000
    assert kind == "python" or "begun" in found.only.output


def test_several_turns_share_the_trials_time(tmp_path):
    command = "if [ $HOLDFAST_TURN = 1 ]; then echo first; else echo second; sleep 60; fi"
    spec = spec_of(command, task={"prompt": "go", "turns": ["go", "on"]}, resources={"timeout": "3s"})
    found = ran(tmp_path, spec)
    assert [(turn.text, turn.ending) for turn in found.only.turns] == [("first", "answered"), ("second", "timeout")]
    assert "resources.timeout" in found.only.turns[1].detail


def test_a_world_that_is_not_ready_in_time_is_an_error(tmp_path):
    found = ran(tmp_path, spec_of("echo hi", resources={"timeout": "1s"}, setup={"commands": ["sleep 20"]}))
    assert found.case.status == "error"
    assert " 1000 ms (resources.timeout)" in found.only.error


LATE = """
    import os, time
    def answer(prompt):
        first = not os.path.exists("begun")
        open("begun", "a").close()
        if first:
            time.sleep(600)
        return "second time"
"""


@pytest.mark.parametrize("kind", ["python", "http"])
def test_an_agent_of_each_kind_is_started_again_when_it_was_killed(tmp_path, kind):
    late = textwrap.dedent(LATE)
    server = late + textwrap.dedent(SERVER).replace('with open("made.txt"', 'answer("")\n        with open("made.txt"')
    storm = [{"name": "storm", "world_faults": [{"mode": "killed", "after_ms": 2500}]}]
    spec = spec_of(KINDS[kind], chaos_matrix=storm, parallelism={"matrix": {"lang": ["de"]}})
    found = ran(tmp_path, spec, files={"agent_code.py": late, "server.py": server})
    assert found.only.error == ""
    assert [(met.mode, met.effect) for met in found.only.ledger] == [("killed", "met")]
    assert found.only.ending == "answered"
