"""Behaviour 1: one format, two spellings, mixed in one file; what is written twice is an error."""

from __future__ import annotations

from pathlib import Path

import pytest
from files1 import CALM, PYTHON, RULES, SPEC, contract_run, project, read, tell

TASK = """
agent: {type: python, endpoint: "bot:answer"}
task: {prompt: "How much?"}
"""
MAP = """
invariants:
  mapped: {description: d, check: {type: contains, value: source}}
"""


# -- "lets their sections be mixed in one file" ---------------------------------------------------
def test_contract_rules_and_a_map_together_are_both_the_contract(tmp_path: Path) -> None:
    told = contract_run(tmp_path, PYTHON + RULES + MAP + CALM)
    assert [c["invariant"] for c in told.contract["cells"]] == ["cites", "mapped"]
    assert told.cell("cites")["trials"][0]["id"] != told.cell("mapped")["trials"][0]["id"]


def test_contract_trials_ask_golden_prompts_else_task(tmp_path: Path) -> None:
    told = contract_run(tmp_path, PYTHON + 'task: {prompt: "How much?"}' + RULES + CALM)
    assert told.trial("cites")["prompt"] == "What is the total?"
    assert contract_run(tmp_path, TASK + RULES + CALM).trial("cites")["prompt"] == "How much?"


def test_a_chaos_matrix_may_be_added_to_the_scenario_spelling(tmp_path: Path) -> None:
    attack = "  - {name: poisoned, context_attacks: [{type: memory_poisoning, payload: zzz}]}\n"
    told = contract_run(tmp_path, "version: 1\nid: how-much\n" + TASK + MAP + CALM + attack)
    assert told.cell("mapped", "poisoned")["outcome"] == "pass"
    assert "zzz" in told.trial("mapped", "poisoned")["answer"]


@pytest.mark.parametrize("version", ['"99"', "3", "0", "1.1", '"v1"', "true", "${V:-1}", "2", '""', "latest"])
def test_a_version_that_is_not_known_is_an_error(tmp_path: Path, version: str) -> None:
    found = read(tmp_path, f"version: {version}\n" + SPEC)
    assert found.spec is None
    assert [(p.path, p.line, p.severity) for p in found.problems] == [("version", 1, "error")]


# -- "Seed: --seed, else determinism.seed, else advanced.seed, else 0" ----------------------------


def test_seed_of_the_command_line_reaches_the_run(tmp_path: Path) -> None:
    told = contract_run(tmp_path, SPEC + "advanced: {seed: 3}", "def answer(p): return 'source'", "--seed", "9")
    assert told.json["seed"] == 9
    assert "--seed 9" in told.trial("cites")["again"]


# -- "Severity is shorthand for weight ... gate in a contract counts as critical" -----------------
def test_gate_counts_as_critical_and_weighs_three(tmp_path: Path) -> None:
    rules = """
contract:
  name: C
  invariants:
    - {id: gated, type: contains, value: nowhere, gate: true, severity: low}
    - {id: held, type: contains, value: source}
"""
    told = contract_run(tmp_path, PYTHON + rules + CALM, "def answer(p): return 'source'", "--min-score", "10")
    assert (told.code, told.json["score"]) == (1, 25.0)
    assert told.contract["critical_failed"] == ["gated in no-chaos"]
    assert told.cell("gated")["critical"] is True


def test_resilience_uses_severity_and_not_weight(tmp_path: Path) -> None:
    rules = """
contract:
  name: C
  invariants:
    - {id: a, type: contains, value: nowhere, weight: 50}
    - {id: b, type: contains, value: source, severity: critical, weight: 0}
"""
    assert contract_run(tmp_path, PYTHON + rules + CALM, "def answer(p): return 'source'").json["score"] == 75.0


# -- "holdfast validate checks any file": what no command would run is refused by it, too ----------
@pytest.mark.parametrize(("spec", "wanted"), [
    (PYTHON + RULES, "chaos_matrix"),
    (PYTHON + CALM, "contract.invariants"),
    (SPEC.replace('golden_prompts: ["What is the total?"]', ""), "golden_prompts"),
])  # fmt: skip
def test_validate_refuses_what_contract_validate_and_a_run_refuse(tmp_path: Path, spec: str, wanted: str) -> None:
    project(tmp_path, spec)
    for command in (["validate"], ["contract", "validate"]):
        told = tell(tmp_path, *command, "--json")
        assert told.code == 4
        assert [e["path"] for e in told.json["errors"]] == [wanted]
    assert tell(tmp_path, "contract", "run").code == 4
