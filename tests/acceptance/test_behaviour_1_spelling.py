"""Behaviour 1: one format, two spellings, mixed in one file; what is written twice is an error."""

from __future__ import annotations

from pathlib import Path

import pytest
from files1 import CALM, PYTHON, RULES, SPEC, contract_run, read

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
