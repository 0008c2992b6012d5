"""`holdfast run` in a world: what it left, what it must not do, what this machine cannot enforce."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from files1 import project, tell

SPEC = """
version: 1
id: notes
task: {prompt: "Write the note."}
agent: {type: command, command: "python bot.py"}
fixtures:
  - {type: files, files: [{path: kept.txt, content: "as it was"}]}
invariants:
  written:
    {description: "The note is there", gate: true, check: {type: file_content, path: out/note.txt, contains: done}}
  counted:
    description: "It has a line"
    weight: 0.5
    check: {type: command_exit, command: "test $(wc -l < out/note.txt) = 1"}
"""
AGENT = "import os\nos.mkdir('out')\nopen('out/note.txt', 'w').write('done\\n')\n"


def case(told: Any) -> dict[str, Any]:
    (found,) = told.json["parts"]["scenario"]["cases"]
    return dict(found)


def test_the_state_that_is_left_is_judged_and_the_world_is_gone(tmp_path: Path) -> None:
    project(tmp_path, SPEC, AGENT + "print('ok')\n")
    told = tell(tmp_path, "run", "--json")
    assert told.code == 0, told.out + told.err
    (replica,) = case(told)["replicas"]
    assert [v["outcome"] for v in replica["verdicts"]] == ["pass", "pass"]
    writes = [e["details"]["path"] for e in replica["audit"] if e["type"] == "file_write"]
    assert "out/note.txt" in writes
    assert not (tmp_path / "out").exists()
    enforced = {one["feature"]: one["enforced"] for one in told.json["isolation"]}
    assert enforced["network"]
    assert enforced["host files"]


def test_a_forbidden_deed_forces_the_composite_to_nothing(tmp_path: Path) -> None:
    project(tmp_path, SPEC + "forbidden: {file_writes_outside: [out/]}\n", AGENT + "os.remove('kept.txt')\n")
    told = tell(tmp_path, "run", "--json")
    found = case(told)
    assert (told.code, found["status"], found["composite"]) == (1, "fail", 0.0)
    (rule,) = found["replicas"][0]["forbidden"]
    assert (rule["rule"], rule["violated"]) == ("file_writes_outside", True)
    assert "kept.txt" in " ".join(rule["details"])
    shown = tell(tmp_path, "report", "0001")
    assert re.search(r"forbidden +file_writes_outside: deleted kept\.txt", shown.out)


def test_a_fixture_that_fails_leaves_every_case_an_error(tmp_path: Path) -> None:
    broken = SPEC.replace("fixtures:", "fixtures:\n  - {type: sql, service: db, sql: create tabel a}")
    world = "services: [{name: db, image: 'postgres:16'}]\nparallelism: {replicas: 2, matrix: {lang: [en, de]}}\n"
    project(tmp_path, broken + world, AGENT)
    told = tell(tmp_path, "run", "--json")
    assert told.code == 3, told.err
    assert "tabel" in told.json["errors"][0]["message"]
    scenario = told.json["parts"]["scenario"]
    assert scenario["passed"] is False
    found = [(c["params"], c["status"], c["composite"], "tabel" in c["reason"]) for c in scenario["cases"]]
    assert found == [({"lang": "en"}, "error", None, True), ({"lang": "de"}, "error", None, True)]


def test_where_each_way_in_begins_is_told_while_it_is_open_and_with_its_trial(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        way = f"network: {{ingress: {{allow: [{{from: host, to_port: {port}}}]}}}}\nparallelism: {{replicas: 2}}\n"
        project(tmp_path, SPEC + way, AGENT)
        told = tell(tmp_path, "run", "--json")
    assert told.code == 0, told.out + told.err
    for replica in case(told)["replicas"]:
        (own,) = replica["isolation"]
        assert (own["feature"], own["enforced"]) == ("network.ingress", True)
        assert own["why"].endswith(f" reaches port {port} of the agent")
        assert re.search(f"warning: trial {replica['trial']}: port {port} .*: {own['why']}\n", told.err)
    (ingress,) = [one for one in told.json["isolation"] if one["feature"] == "network.ingress"]
    assert str(port) not in ingress["why"], "it differs from trial to trial, and each trial says its own"
    assert told.json["warnings"] == []


@pytest.mark.parametrize(
    ("sent", "code", "status", "reason_code"),
    [
        ("gzip.compress(b'{\"to\": \"x@y\"}'), {'Content-Encoding': 'gzip'}", 1, "fail", "value-differs"),
        ("b'{\"pad\": \"' + bytes(1_200_000) + b'\"}', {}", 3, "error", "check-raised"),
        ("gzip.compress(bytes(2_000_000)), {'Content-Encoding': 'gzip'}", 3, "error", "check-raised"),
        ("b'x', {'Content-Encoding': 'zz'}", 3, "error", "check-raised"),
    ],
)
def test_a_body_that_cannot_be_read_never_acquits(
    tmp_path: Path, sent: str, code: int, status: str, reason_code: str
) -> None:
    asserted = "assertions: [{field: request_count, filters: {to: x@y}, equals: 0}]"
    rule = f"  unsent: {{description: d, check: {{type: http_mock_assertions, service: mail, {asserted}}}}}\n"
    service = "services: [{name: mail, type: http_mock, record: true, routes: [{method: POST, path: /}]}]\n"
    ask = f"import gzip, urllib.request as r\nr.urlopen(r.Request('http://mail/', {sent}))\n"
    project(tmp_path, SPEC + rule + service, AGENT + ask)
    told = tell(tmp_path, "run", "--json")
    assert (told.code, case(told)["status"]) == (code, status), told.err
    verdicts = {v["invariant"]: v for v in case(told)["replicas"][0]["verdicts"]}
    assert (verdicts["unsent"]["outcome"], verdicts["unsent"]["code"]) == (status, reason_code)


def test_a_setup_that_fails_is_our_error_and_never_a_pass(tmp_path: Path) -> None:
    project(tmp_path, SPEC + "setup: {commands: ['echo no such tool >&2; exit 7']}\n", AGENT)
    told = tell(tmp_path, "run", "--no-preflight", "--json")
    assert (told.code, case(told)["status"], case(told)["composite"]) == (3, "error", None)
    assert "setup.commands[0] exited with 7: " in case(told)["reason"]


@pytest.mark.skipif(
    subprocess.run(["sh", "-c", "command -v [["], capture_output=True).returncode == 0, reason="this sh is a bash"
)
@pytest.mark.parametrize("command", ["mkdir -p {a,b}", "test -d /no-such-folder &> /dev/null"])
def test_a_setup_written_for_bash_does_not_prepare_another_world(tmp_path: Path, command: str) -> None:
    project(tmp_path, SPEC + f"setup: {{commands: [{json.dumps(command)}]}}\n", AGENT)
    told = tell(tmp_path, "run", "--no-preflight", "--json")
    assert (told.code, case(told)["status"]) == (3, "error")
    assert "bash -c" in case(told)["reason"]


def test_a_backend_without_isolation_says_so_in_every_report_and_strictly_is_refused(tmp_path: Path) -> None:
    project(tmp_path, SPEC, AGENT)
    told = tell(
        tmp_path, "run", "-v", "--backend", "process", "-o", "r.json", "-o", "r.xml", "-o", "r.md", "-o", "r.html"
    )
    assert told.code == 0, told.out + told.err
    for text in (told.out, *((tmp_path / f"r.{suffix}").read_text() for suffix in ("json", "xml", "md"))):
        assert "no isolation" in text
        assert "network" in text
    assert "no isolation" in (tmp_path / "r.html").read_text()  # its notes are packed
    refused = tell(tmp_path, "run", "--backend", "process", "--strict-world")
    assert (refused.code, "cannot enforce here: " in refused.err) == (4, True)
    assert not (tmp_path / ".holdfast/runs/0002").exists()


@pytest.mark.parametrize("size", [100, 60_000])
def test_evidence_of_any_size_is_in_the_stored_run(tmp_path: Path, size: int) -> None:
    agent = AGENT.replace("'done\\n'", f"'done ' + 'x' * {size}")
    project(tmp_path, SPEC.replace("contains: done", "contains: nothing-of-this"), agent)
    assert tell(tmp_path, "run").code == 1
    (observations,) = (tmp_path / ".holdfast/runs/0001").glob("observations-*.jsonl")
    assert max(map(len, observations.read_text().splitlines())) < 40_000
    again = tell(tmp_path, "judge", "0001", "--json")
    assert [v["outcome"] for v in case(again)["replicas"][0]["verdicts"]] == ["fail", "fail"]


def test_a_trial_is_repeated_by_its_command(tmp_path: Path) -> None:
    project(tmp_path, SPEC, "print('nothing done')\n")
    (first,) = case(tell(tmp_path, "run", "--backend", "process", "--json"))["replicas"]
    command = first["reproducer"]["command"].split()
    assert command[-2:] == ["--trial", first["trial"]]
    assert "process" in command
    (second,) = case(tell(tmp_path, *command[1:], "--json"))["replicas"]
    assert second["verdicts"] == first["verdicts"]
