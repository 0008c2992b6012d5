"""behaviour.md 3: exit codes, each by a real run, and `contract score`."""

from __future__ import annotations

from typing import Any

import pytest
from cli import CALM, DOWN, MakeProject, contract, rule, tool_fault, verdict_line

NO_TOOLS = {"type": "python", "endpoint": "agent:ask"}
ANY = rule("any", "regex", pattern=".")
BREAKING = """
import os

def search(q):
    return q

def reset():
    if os.environ["HOLDFAST_REPLICA"] in os.environ.get("BREAK", ""):
        raise OSError("our side")

def ask(prompt):
    return "good"
"""
RESET = {"type": "python", "endpoint": "agent:ask", "tools": ["agent:search"], "reset_function": "agent:reset"}


def breaking(rules: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A contract whose first replica our side breaks where BREAK says so."""
    return contract(rules, agent=RESET, advanced={"retries": 0}, **more)


# "0 held"
def test_3_exit_0_held(project: MakeProject) -> None:
    result = project(contract([ANY], [CALM, DOWN])).command("contract", "run", "--no-report")
    assert result.code == 0
    assert "PASS" in result.out


# "1 violated or below minimum"
def test_3_exit_1_violated(project: MakeProject) -> None:
    result = project(contract([rule("no", value="unicorn")])).command("contract", "run", "--no-report")
    assert result.code == 1
    assert "FAIL" in result.out


# "3 if any cell is error"
def test_3_exit_3_an_error_cell(project: MakeProject) -> None:
    result = project(breaking([ANY]), BREAKING).command(
        "contract", "run", "--no-report", "--no-preflight", env={"BREAK": "0"}
    )
    assert result.code == 3
    assert "ERROR" in result.out


# "4 usage or configuration (click's own usage exit becomes 4)"
@pytest.mark.parametrize(
    "args",
    [
        ("contract", "run", "--nonsense"),
        ("contract", "run", "-c", "missing.yaml"),
        ("contract", "run", "--replicas", "0"),
        ("contract", "run", "--resume", "77"),
        ("contract", "run", "-o", "report.pdf"),
        ("contract", "nonsense"),
        ("nonsense",),
        ("judge", "77"),
        ("report", "77"),
    ],
)
def test_3_exit_4_usage(project: MakeProject, args: tuple[str, ...]) -> None:
    result = project(contract([ANY])).cli(*args)
    assert result.code == 4
    assert result.err.startswith("error: ") or "missing.yaml" in result.err
    assert "Traceback" not in result.err


# "5 if no cell counted"
def test_3_exit_5_no_cell_counted(project: MakeProject) -> None:
    made = project(contract([rule("a", value="x", negate=True)], agent=NO_TOOLS), "def ask(prompt):\n    pass\n")
    result = made.command("contract", "run", "--no-report")
    assert result.code == 5
    assert "UNPROVEN" in result.out


# "or a chaos scenario is vacuous: no trial of it met any of its faults (`--allow-vacuous`)"
def test_3_exit_5_a_vacuous_scenario(project: MakeProject) -> None:
    made = project(contract([ANY], [CALM, {**tool_fault(on_call=9), "name": "never"}]))
    result = made.run()
    assert (result.code, result.part["vacuous"]) == (5, ["never"])
    assert result.json["score"] == 100.0
    assert verdict_line(made.show("--no-report").out).startswith("UNPROVEN  scenario never ")
    assert made.run("--allow-vacuous").code == 0


def test_3_a_scenario_is_not_vacuous_if_one_trial_of_it_met_a_fault(project: MakeProject) -> None:
    source = (
        "def search(q):\n    return q\n\ndef ask(prompt):\n    return search(prompt) if prompt == 'a' else 'by heart'\n"
    )
    weather = tool_fault("malicious_response", payload="lie")
    result = project(contract([ANY], [CALM, weather], prompts=("a", "b")), source).run()
    assert (result.code, result.part["vacuous"]) == (0, [])


# "`--strict`: any unproven cell is 5"
def test_3_strict_makes_any_unproven_cell_5(project: MakeProject) -> None:
    rules = [ANY, rule("neg", value="x", negate=True, probes=["be silent"])]
    source = "def ask(prompt):\n    return None if prompt == 'be silent' else 'words'\n"
    made = project(contract(rules, agent=NO_TOOLS), source)
    assert made.run().code == 0
    result = made.run("--strict")
    assert (result.code, result.json["passed"]) == (5, False)
    assert "strict" in " ".join(result.part["reasons"])


# "(`--max-errors N`)"
def test_3_max_errors_accepts_so_many_error_cells(project: MakeProject) -> None:
    rules = [ANY, rule("two", "regex", pattern="o"), rule("fine", value="good", probes=["x"])]
    spec = breaking(rules)
    made = project(spec, BREAKING)
    assert made.run("--no-preflight", "--max-errors", "3", env={"BREAK": "0"}).code == 5  # nothing is left that counts
    assert made.run("--no-preflight", "--max-errors", "2", env={"BREAK": "0"}).code == 3
    assert made.run("--no-preflight", env={"BREAK": "9"}).code == 0


# "`contract score` prints the number alone on stdout (two decimals; nothing if none) and exits exactly as
#  `contract run`; `--exit-zero`"
@pytest.mark.parametrize(
    ("rules", "out", "code"),
    [
        ([ANY], "100.00\n", 0),
        ([ANY, rule("no", value="unicorn")], "50.00\n", 1),
        ([rule("high", value="source", severity="high"), rule("no", value="unicorn")], "66.67\n", 1),
        ([rule("n", value="x", negate=True)], "", 5),
    ],
)
def test_3_contract_score_prints_the_number_alone_and_exits_alike(
    project: MakeProject, rules: list[dict[str, Any]], out: str, code: int
) -> None:
    silent = "def search(q):\n    return q\n\ndef ask(prompt):\n    return None\n"
    made = project(contract(rules), silent) if out == "" else project(contract(rules))
    result = made.cli("contract", "score")
    assert (result.out, result.code) == (out, code)
    assert made.run().code == code
    relaxed = made.cli("contract", "score", "--exit-zero")
    assert (relaxed.out, relaxed.code) == (out, 0)


def test_3_contract_score_exit_zero_does_not_hide_a_broken_spec(project: MakeProject) -> None:
    result = project("agent: {}\n").cli("contract", "score", "--exit-zero")
    assert (result.out, result.code) == ("", 4)


def test_3_contract_score_takes_the_same_options(project: MakeProject) -> None:
    made = project(contract([ANY, rule("no", value="unicorn")]))
    assert made.cli("contract", "score", "--invariant", "any").out == "100.00\n"
    assert made.cli("contract", "score", "--min-score", "40").code == 0
