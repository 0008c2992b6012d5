"""The examples on the pages of faults of services and of the machine are run in worlds, and met."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1] / "acceptance"))
from cli import CALM, Project, contract, rule  # its folder is not on the path of these tests
from page_examples import page_examples, scenarios
from test_page_examples import unmet

from holdfast import plugins

pytestmark = pytest.mark.long  # a world each, with a database, and several examples wait for seconds
ENDS = [rule("ends", "ending", one_of=["answered"])]

USES_MACHINE = """
import os, time

def tried(work):
    try:
        return work()
    except (OSError, MemoryError) as failed:
        return type(failed).__name__

def write():
    with open("big", "wb") as file:
        for _ in range(300):
            file.write(b"x" * 1_000_000)

begun = time.monotonic()
while time.monotonic() - begun < 1:
    time.time()
print(tried(lambda: open("notes.txt").read()), tried(lambda: os.listdir("data")))
print(tried(lambda: open("new", "w").close()))
print(tried(write), flush=True)
print(len(tried(lambda: bytearray(300_000_000))), flush=True)
"""
USES_DATABASE = """
import os, psycopg

for attempt in range(2):
    try:
        with psycopg.connect(os.environ["DB_URL"], connect_timeout=3, options="-c statement_timeout=9000") as db:
            db.execute("SELECT repeat('x', 20000)").fetchone()
            db.execute("CREATE TABLE IF NOT EXISTS notes (id int)")
            db.execute("INSERT INTO notes VALUES (1)")
        print("written")
    except psycopg.Error as failed:
        print(type(failed).__name__)
"""
CANNOT = {
    "service_faults.tls_error": "the agent's connection has no TLS",
    "service_faults.slow_close": "a client that closes first meets nothing",
}
FIXTURES = [{"type": "files", "files": [{"path": "notes.txt", "content": "x"}, {"path": "data/a.txt", "content": "x"}]}]


def judged(folder: Path, agent: str, matrix: list[Any], **world: Any) -> list[str]:
    """Those of the scenarios whose fault was not met."""
    section = {"type": "command", "command": "python agent.py", "timeout": "40s"}
    made = Project(folder, contract(ENDS, matrix, agent=section, **world), agent)
    result = made.cli("contract", "run", "--json", "--no-report", "--no-preflight")
    assert "parts" in result.json, result.out
    return unmet(result)


def test_the_example_of_every_fault_of_the_machine_is_met(tmp_path: Path) -> None:
    matrix = [CALM, *scenarios("world_faults")]
    assert judged(tmp_path, USES_MACHINE, matrix, fixtures=FIXTURES, resources={"disk": "100Mi"}) == []


def test_the_example_of_every_fault_of_a_service_is_met(tmp_path: Path) -> None:
    matrix = [CALM, *(one for one in scenarios("service_faults") if one["name"] not in CANNOT)]
    assert judged(tmp_path, USES_DATABASE, matrix, services=[{"name": "db", "image": "postgres:16"}]) == []


LEAVES = """
import json, os, urllib.request
open("output.json", "w").write("{}")
os.makedirs("src", exist_ok=True)
open("src/main.ts", "w").write("let a = 1")
urllib.request.urlopen(os.environ["SMTP_URL"] + "/api/messages", b"your renewal", timeout=5)
print("The mail was sent. Next you will hear from us on Monday.")
"""
SCRIPT = "import json, sys\njson.load(sys.stdin)\nprint(json.dumps({'passed': True}))\n"
JUDGE = {"replies": [{"text": '{"score": 0.9, "passed": true, "reasoning": "polite"}'}]}
TABLES = "CREATE TABLE a (id int, email text); CREATE TABLE b (id int, email text); CREATE TABLE mails (id int)"


def test_the_rule_of_every_check_of_what_is_left_is_judged(tmp_path: Path) -> None:
    shown = [one for one in page_examples() if one.section == "invariants"]
    rules: dict[str, Any] = {}
    services: dict[str, Any] = {}
    for one in shown:
        if "section" in one.words:
            services |= {service["name"]: service for service in one.content["services"]}
            (found,) = one.content["invariants"].values()
            rules[one.name] = {"id": one.name, **found["check"]}
        elif plugins.find("checks", one.name).traits.reads == "state":
            rules[one.name] = {**one.content[0], "id": one.name}
    assert len(rules) >= 11
    spec = contract(
        [{"description": "x", **one} for one in rules.values()],
        agent={"type": "command", "command": "python agent.py"},
        services=[*services.values()],
        models={"gpt-4o-mini": {"script": "judge.yaml"}},
        fixtures=[{"type": "sql", "service": "db", "sql": TABLES}],
    )
    made = Project(tmp_path, {**spec, "contract": {**spec["contract"], "isolation": "scenario"}}, LEAVES)
    made.write(JUDGE, "judge.yaml")
    (tmp_path / "verify_summary.py").write_text(SCRIPT)
    result = made.cli("contract", "run", "--json", "--no-report", "--no-preflight")
    assert "parts" in result.json, result.out
    outcomes = {cell["invariant"]: (cell["outcome"], cell["reason"]) for cell in result.part["cells"]}
    assert {name: why for name, (outcome, why) in outcomes.items() if outcome not in ("pass", "fail")} == {}
    failed = {name for name, (outcome, _) in outcomes.items() if outcome == "fail"}
    assert failed == {"command_exit", "files_changed_only"}  # there is no npm project; output.json lies elsewhere
