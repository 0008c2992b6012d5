"""Behaviour 1: lint, as warnings. Each has an example that is warned of and one that is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from files1 import CALM, ECHO, PYTHON, RULES, SPEC, project, tell, warnings_of

TOOLED = PYTHON.replace("}", ", tools: ['bot:answer']}", 1)
TOOL_MATRIX = CALM + "  - {name: down, tool_faults: [{tool: answer, mode: error}]}\n"
MANY = (os.cpu_count() or 1) + 5


def rule(text: str) -> str:
    return f"contract: {{name: C, invariants: [{{id: a, {text}}}]}}\n"


def judged(more: str) -> str:
    return PYTHON + rule(f"type: llm_as_judge, model: m, criteria: good, {more}") + CALM


SLOW = TOOLED + RULES + CALM + "  - {name: slow, tool_faults: [{tool: answer, mode: slow, delay_ms: %s}]}\n"
LATENCY = PYTHON + rule("type: latency, max_ms: 100") + CALM + "advanced: {concurrency: %s}\n"

LINTS: dict[str, tuple[str, str, str, str]] = {
    "a doubly escaped regex in single-quoted YAML": (
        "lint-escaped-regex", "contract.invariants[0].pattern",
        PYTHON + rule(r"type: regex, pattern: '\\$\\d+', negate: true") + CALM,
        PYTHON + rule(r"type: regex, pattern: '\$\d+', negate: true") + CALM,
    ),
    "a doubly escaped pattern among several": (
        "lint-escaped-regex", "contract.invariants[0].patterns[1]",
        PYTHON + rule(r"type: excludes_pattern, patterns: ['ok', '\\d+']") + CALM,
        PYTHON + rule(r"type: excludes_pattern, patterns: ['ok', '\d+']") + CALM,
    ),
    "double quotes turn two backslashes into one": (
        "lint-escaped-regex", "contract.invariants[0].pattern",
        PYTHON + rule(r"type: regex, pattern: '\\d+'") + CALM,
        PYTHON + rule(r'type: regex, pattern: "\\d+"') + CALM,
    ),
    "a rule an empty answer passes": (
        "lint-matches-anything", "contract.invariants[0].pattern",
        PYTHON + rule("type: regex, pattern: '.*'") + CALM,
        PYTHON + rule("type: regex, pattern: '.+'") + CALM,
    ),
    "a contract of only negative rules": (
        "lint-only-negative", "contract.invariants[0]",
        PYTHON + rule("type: excludes_pii") + CALM,
        PYTHON + "contract: {name: C, invariants: [{id: a, type: excludes_pii}, {id: b, type: completes}]}\n" + CALM,
    ),
    "a negated positive rule is negative": (
        "lint-only-negative", "contract.invariants[0]",
        PYTHON + rule("type: contains, value: x, negate: true") + CALM,
        PYTHON + rule("type: contains, value: x") + CALM,
    ),
    "a gate on a judge with one vote": (
        "lint-judge-one-vote", "contract.invariants[0]",
        judged("gate: true"),
        judged("gate: true, votes: 3"),
    ),
    "a critical rule on a judge with one vote": (
        "lint-judge-one-vote", "contract.invariants[0]",
        judged("severity: critical"),
        judged("severity: high"),
    ),
    "when that no scenario meets": (
        "lint-when-unmet", "contract.invariants[0].when",
        TOOLED + rule("type: completes, when: llm_faults_active") + TOOL_MATRIX,
        TOOLED + rule("type: completes, when: tool_faults_active") + TOOL_MATRIX,
    ),
    "no calm scenario in the matrix": (
        "lint-no-calm", "chaos_matrix",
        TOOLED + RULES + "chaos_matrix: [{name: down, tool_faults: [{tool: answer, mode: error}]}]\n",
        TOOLED + RULES + TOOL_MATRIX,
    ),
    "a delay that reaches agent.timeout": (
        "lint-delay-timeout", "chaos_matrix[1].tool_faults[0].delay_ms", SLOW % 30_000, SLOW % 29_999,
    ),
    "more trials at once than cores beside a latency rule": (
        "lint-concurrency-latency", "advanced.concurrency", LATENCY % MANY, LATENCY % 1,
    ),
    "min_score as a fraction": (
        "lint-min-score-fraction", "scoring.min_score",
        SPEC + "scoring: {min_score: 0.9}", SPEC + "scoring: {min_score: 90}",
    ),
    "probability 0": (
        "lint-probability-zero", "chaos_matrix[1].tool_faults[0].probability",
        (SLOW % 5).replace("delay_ms: 5", "delay_ms: 5, probability: 0"),
        (SLOW % 5).replace("delay_ms: 5", "delay_ms: 5, probability: 0.1"),
    ),
    "unescaped signs in plain text": (
        "lint-unescaped-pattern", "contract.invariants[0].patterns",
        PYTHON + rule("type: excludes_pattern, patterns: ['Who are you?']") + CALM,
        PYTHON + rule("type: excludes_pattern, patterns: ['Who are you?'], literal: true") + CALM,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", LINTS)
def test_lint_warns_where_it_should_and_only_there(tmp_path: Path, what: str) -> None:
    code, path, bad, good = LINTS[what]
    (warning,) = warnings_of(tmp_path, bad, code)
    assert warning.path == path
    assert warning.line > 1
    assert warnings_of(tmp_path, good, code) == []


def test_a_gate_on_a_judge_is_told_that_it_needs_a_score_of_one(tmp_path: Path) -> None:
    (warning,) = warnings_of(tmp_path, judged("gate: true"), "lint-judge-one-vote")
    assert "1.0" in warning.hint


def test_the_default_delay_is_linted_too(tmp_path: Path) -> None:
    spec = (SLOW % 1).replace(", delay_ms: 1", "").replace("type: python", "type: python, timeout: 2000")
    assert len(warnings_of(tmp_path, spec, "lint-delay-timeout")) == 1


@pytest.mark.parametrize(("given", "warned"), [("0.9", True), ("1", True), ("0", False), ("90", False)])
def test_min_score_of_the_command_line_is_linted(tmp_path: Path, given: str, warned: bool) -> None:
    project(tmp_path, SPEC)
    told = tell(tmp_path, "contract", "run", "--min-score", given)
    assert told.code == 0
    assert ("--min-score is 0 to 100" in told.err) is warned


def test_more_trials_than_cores_asked_by_the_command_line_are_linted(tmp_path: Path) -> None:
    project(tmp_path, PYTHON + rule("type: latency, max_ms: 60000") + CALM, ECHO)
    told = tell(tmp_path, "contract", "run", "--concurrency", str(MANY))
    assert f"{MANY} trials in parallel" in told.err
    assert f"{MANY} trials in parallel" not in tell(tmp_path, "contract", "run", "--concurrency", "1").err


def test_warnings_do_not_change_the_exit_code_and_are_in_the_report(tmp_path: Path) -> None:
    project(tmp_path, SPEC + "scoring: {min_score: 0.9}")
    assert tell(tmp_path, "validate").code == 0
    told = tell(tmp_path, "contract", "run", "--json")
    assert told.code == 0
    assert "lint-min-score-fraction" in [one["code"] for one in told.json["warnings"]]
    assert "min_score" in told.err
