"""Document 003, invariants on end state: every block loads, means what it says, and never runs in part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from files1 import ECHO, project, spec_of, tell

from holdfast.model.spec import Invariant

REQUIRED = """
version: 1
id: renewal-mail
task: {prompt: "Send the renewal mail."}
agent: {type: python, endpoint: "bot:answer"}
"""
SERVICES = """
services:
  - {name: db, image: "postgres:16"}
  - {name: smtp, type: http_mock, record: true}
"""
ANATOMY = """
invariants:
  tests_pass:
    description: "All tests pass"
    weight: 1.0           # relative importance in composite
    gate: true            # hard fail if this fails
    check:
      type: command_exit
      command: "npm test"
"""
COMMAND_EXIT = """
invariants:
  tests_pass:
    description: "All tests pass"
    weight: 1.0
    gate: true
    check:
      type: command_exit
      command: "npm test"
      exit_code: 0        # optional; default 0
"""
FILES = """
invariants:
  output_created:
    description: "Output file exists"
    check:
      type: file_exists
      path: "output.json"
  no_temp_files:
    description: "Temp file cleaned up"
    check:
      type: file_absent
      path: ".tmp/cache"
"""
FILE_CONTENT = r"""
invariants:
  output_correct:
    description: "Output contains success marker"
    check:
      type: file_content
      path: "output.json"
      contains: '"status": "success"'   # substring match
  no_debug_logs:
    description: "No console.log left in source"
    check:
      type: file_content
      path: "src/main.ts"
      not_contains: "console.log"
  matches_pattern:
    description: "Email follows expected format"
    check:
      type: file_content
      path: "draft.txt"
      pattern: "^Subject: Renewal\\b"   # regex (matches anywhere unless ^/$)
"""
SQL = """
invariants:
  reconciliation_clean:
    description: "No mismatches between A and B"
    weight: 0.5
    gate: true
    check:
      type: sql
      service: db          # name from services[]
      query: |
        SELECT count(*) FROM customers_a a
        LEFT JOIN customers_b b ON a.id = b.id
        WHERE b.id IS NULL OR a.email != b.email
      equals: 0
"""
HTTP_MOCK = """
invariants:
  email_sent_once:
    description: "Exactly one renewal email"
    check:
      type: http_mock_assertions
      service: smtp        # must have `record: true`
      assertions:
        - field: request_count
          filters:
            method: POST
            path: "/api/messages"
          equals: 1
        - field: last_request.body
          contains: "renewal"
"""
CUSTOM = """
invariants:
  summary_accuracy:
    description: "Numbers in email match log"
    weight: 0.3
    check:
      type: custom
      script: checks/verify_summary.py
      runs_in: host        # host (default) or sandbox
"""
JUDGE = """
invariants:
  email_tone:
    description: "Email is professional and actionable"
    weight: 0.3
    check:
      type: llm_as_judge
      model: paragon-fast
      criteria: |
        Evaluate the email for:
        1. Professional tone (no casual language)
        2. Actionable content (clear next steps)
        3. Accurate numbers
      input_from: smtp.last_request.body   # what to judge
      rubric:
        pass: "Professional, accurate, actionable"
        fail: "Casual, missing numbers, or unclear"
      temperature: 0
      pass_threshold: 0.7   # optional; default 0.5
"""
WEIGHTS = """
invariants:
  must_pass:
    weight: 1.0
    gate: true            # if this fails, composite = 0 regardless
    check: { type: completes }
  nice_to_have:
    weight: 0.3
    check: { type: output_not_empty }

scoring:
  pass_threshold: 0.85
"""
PATTERN_TESTS = """
invariants:
  tests_pass:
    description: "All unit tests pass"
    weight: 1.0
    gate: true
    check:
      type: command_exit
      command: "npm test"
  no_console_log:
    description: "No debug logs left in source"
    weight: 0.3
    check:
      type: file_content
      path: "src/main.ts"
      not_contains: "console.log"
  small_diff:
    description: "Diff is small"
    weight: 0.2
    check:
      type: command_exit
      command: "[ $(git diff --stat | tail -1 | awk '{print $4+$6}') -lt 50 ]"
scoring:
  pass_threshold: 0.85
"""
PATTERN_STATE = """
invariants:
  reconciliation_clean:
    description: "No mismatches"
    weight: 0.5
    gate: true
    check:
      type: sql
      service: db
      query: "SELECT count(*) FROM customers_a a LEFT JOIN customers_b b USING (id) WHERE a.email != b.email"
      equals: 0
  email_sent_once:
    description: "Exactly one summary email"
    weight: 0.3
    check:
      type: http_mock_assertions
      service: smtp
      assertions:
        - field: request_count
          filters: { to: "finance@co" }
          equals: 1
  email_quality:
    description: "Email is well-written"
    weight: 0.2
    check:
      type: llm_as_judge
      model: paragon-fast
      criteria: "Professional, accurate, actionable"
      input_from: smtp.last_request.body
      pass_threshold: 0.7
"""
PATTERN_CUSTOM = """
invariants:
  api_responses_valid:
    description: "Every API response is valid JSON with required fields"
    weight: 0.5
    check:
      type: custom
      script: checks/validate_api_responses.py
      runs_in: sandbox
"""
BLOCKS = {
    "anatomy": ANATOMY, "command_exit": COMMAND_EXIT, "files": FILES, "file_content": FILE_CONTENT, "sql": SQL,
    "http_mock": HTTP_MOCK, "custom": CUSTOM, "judge": JUDGE, "weights": WEIGHTS, "tests": PATTERN_TESTS,
    "state": PATTERN_STATE, "script": PATTERN_CUSTOM,
}  # fmt: skip
JUDGED = [name for name, block in BLOCKS.items() if "llm_as_judge" in block]


def whole(block: str) -> str:
    """The block under the required keys, with the services that it names."""
    return REQUIRED + (SERVICES if "service:" in block or "smtp." in block else "") + block


def scripts(folder: Path) -> None:
    """The scripts that the document's blocks name."""
    (folder / "checks").mkdir()
    for name in ("verify_summary", "validate_api_responses"):
        (folder / "checks" / f"{name}.py").write_text("open('ran', 'w')\n")


def rules(folder: Path, block: str) -> dict[str, Invariant]:
    scripts(folder)
    return {rule.id: rule for rule in spec_of(folder, whole(block)).invariants}


@pytest.mark.parametrize("name", BLOCKS)
def test_every_block_of_document_003_validates(tmp_path: Path, name: str) -> None:
    scripts(tmp_path)
    project(tmp_path, whole(BLOCKS[name]), "open('ran', 'w')\n" + ECHO)
    told = tell(tmp_path, "validate")
    assert told.code == 0, told.err
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", JUDGED)
def test_a_run_of_a_judge_without_a_local_meaning_refuses_by_section_and_line(tmp_path: Path, name: str) -> None:
    scripts(tmp_path)
    spec = whole(BLOCKS[name]) + "chaos_matrix: [{name: no-chaos}]\n"
    project(tmp_path, spec, "open('ran', 'w')\n" + ECHO)
    first = next(rule for rule in spec_of(tmp_path, spec).invariants if rule.check == "llm_as_judge")
    told = tell(tmp_path, "contract", "run")
    assert told.code == 4
    line = spec.splitlines().index("      model: paragon-fast") + 1
    place = f"holdfast.yaml:{line}:14  invariants.{first.id}.check.model  "
    assert place in told.err
    assert not (tmp_path / "ran").exists()


# -- what the blocks mean -------------------------------------------------------------------------
def test_anatomy_and_its_defaults(tmp_path: Path) -> None:
    rule = rules(tmp_path, ANATOMY)["tests_pass"]
    assert (rule.check, rule.settings) == ("command_exit", {"command": "npm test"})
    assert (rule.description, rule.weight, rule.gate, rule.critical) == ("All tests pass", 1.0, True, True)


SETTINGS: dict[str, tuple[str, Any]] = {
    "output_created": (FILES, {"path": "output.json"}),
    "no_temp_files": (FILES, {"path": ".tmp/cache"}),
    "output_correct": (FILE_CONTENT, {"path": "output.json", "contains": '"status": "success"'}),
    "no_debug_logs": (FILE_CONTENT, {"path": "src/main.ts", "not_contains": "console.log"}),
    "matches_pattern": (FILE_CONTENT, {"path": "draft.txt", "pattern": r"^Subject: Renewal\b"}),
    "small_diff": (
        PATTERN_TESTS,
        {"command": "[ $(git diff --stat | tail -1 | awk '{print $4+$6}') -lt 50 ]"},
    ),
    "api_responses_valid": (PATTERN_CUSTOM, {"script": "checks/validate_api_responses.py", "runs_in": "sandbox"}),
    "summary_accuracy": (CUSTOM, {"script": "checks/verify_summary.py", "runs_in": "host"}),
}


@pytest.mark.parametrize("id", SETTINGS)
def test_settings_are_as_printed(tmp_path: Path, id: str) -> None:
    block, wanted = SETTINGS[id]
    assert rules(tmp_path, block)[id].settings == wanted


def test_sql_block(tmp_path: Path) -> None:
    settings = rules(tmp_path, SQL)["reconciliation_clean"].settings
    assert (settings["service"], settings["equals"]) == ("db", 0)
    assert settings["query"].startswith("SELECT count(*) FROM customers_a a\nLEFT JOIN")


def test_http_mock_block(tmp_path: Path) -> None:
    first, second = rules(tmp_path, HTTP_MOCK)["email_sent_once"].settings["assertions"]
    assert (first["field"], first["filters"]) == ("request_count", {"method": "POST", "path": "/api/messages"})
    assert first["equals"] == 1
    assert (second["field"], second["contains"]) == ("last_request.body", "renewal")


def test_judge_block(tmp_path: Path) -> None:
    settings = rules(tmp_path, JUDGE)["email_tone"].settings
    assert settings["model"] == "paragon-fast"
    assert settings["input_from"] == "smtp.last_request.body"
    assert settings["rubric"]["pass"] == "Professional, accurate, actionable"
    assert (settings["temperature"], settings["pass_threshold"]) == (0, 0.7)


# -- what the document demands --------------------------------------------------------------------


def test_a_map_with_a_matrix_is_also_the_contract(tmp_path: Path) -> None:
    project(tmp_path, whole(WEIGHTS) + "chaos_matrix: [{name: no-chaos}]\n")
    told = tell(tmp_path, "contract", "run", "--json", "--no-report")
    assert told.code == 0, told
    assert {c["invariant"]: c["weight"] for c in told.contract["cells"]} == {"must_pass": 3.0, "nice_to_have": 1.0}
    first, second = ([t["id"] for t in c["trials"]] for c in told.contract["cells"])
    assert first == second
