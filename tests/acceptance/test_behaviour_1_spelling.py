"""Behaviour 1: one format, two spellings, mixed in one file; what is written twice is an error."""

from __future__ import annotations

from pathlib import Path

import pytest
from files1 import CALM, PYTHON, RULES, SPEC, contract_run, error_of, errors_of, project, read, spec_of, tell

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


def test_golden_prompts_with_a_map_and_parallelism(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, PYTHON + MAP + CALM + "parallelism: {replicas: 3}")
    assert (spec.replicas, spec.tasks[0].prompt, spec.cell_rules) == (3, "What is the total?", ())


def test_task_with_contract_rules_and_replicas(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, TASK + RULES + CALM + "replicas: 2")
    assert (spec.replicas, spec.tasks[0].kind, spec.cell_rules) == (2, "task", ("cites",))


def test_contract_trials_ask_golden_prompts_else_task(tmp_path: Path) -> None:
    told = contract_run(tmp_path, PYTHON + 'task: {prompt: "How much?"}' + RULES + CALM)
    assert told.trial("cites")["prompt"] == "What is the total?"
    assert contract_run(tmp_path, TASK + RULES + CALM).trial("cites")["prompt"] == "How much?"


def test_a_chaos_matrix_may_be_added_to_the_scenario_spelling(tmp_path: Path) -> None:
    attack = "  - {name: poisoned, context_attacks: [{type: memory_poisoning, payload: zzz}]}\n"
    told = contract_run(tmp_path, "version: 1\nid: how-much\n" + TASK + MAP + CALM + attack)
    assert told.cell("mapped", "poisoned")["outcome"] == "pass"
    assert "zzz" in told.trial("mapped", "poisoned")["answer"]


@pytest.mark.parametrize("version", ["1", "1.0", '"1.0"', '"2.0"', "2.0"])
def test_version_decides_nothing(tmp_path: Path, version: str) -> None:
    assert spec_of(tmp_path, f"version: {version}\n" + SPEC).invariants == spec_of(tmp_path, "\n" + SPEC).invariants


@pytest.mark.parametrize("version", ['"99"', "3", "0", "1.1", '"v1"', "true", "${V:-1}", "2", '""', "latest"])
def test_a_version_that_is_not_known_is_an_error(tmp_path: Path, version: str) -> None:
    found = read(tmp_path, f"version: {version}\n" + SPEC)
    assert found.spec is None
    assert [(p.path, p.line, p.severity) for p in found.problems] == [("version", 1, "error")]


def test_a_list_entry_may_carry_weight_gate_and_check(tmp_path: Path) -> None:
    rules = """
contract:
  name: C
  invariants:
    - {id: a, weight: 0.5, gate: true, check: {type: contains, value: source}}
"""
    (rule,) = spec_of(tmp_path, PYTHON + rules + CALM).invariants
    assert (rule.weight, rule.gate, rule.settings) == (0.5, True, {"value": "source"})


def test_a_map_entry_may_carry_severity_when_negate_and_probes(tmp_path: Path) -> None:
    rules = """
invariants:
  a: {description: d, severity: high, when: no_chaos, negate: true, probes: [leak?], check: {type: contains, value: x}}
  b: {description: d, type: contains, value: x}
"""
    first, second = spec_of(tmp_path, PYTHON + rules + CALM).invariants
    assert (first.severity, first.when, first.negate, first.probes) == ("high", "no_chaos", True, ("leak?",))
    assert second.settings == {"value": "x"}


def test_a_top_level_list_holds_the_rules_of_run_and_not_of_the_contract(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, SPEC + "invariants: [{type: contains, value: nowhere}]")
    assert [rule.id for rule in spec.invariants] == ["cites"]
    only = PYTHON + CALM + "invariants: [{type: contains, value: nowhere}]"
    project(tmp_path, only)
    assert tell(tmp_path, "validate").code == 0
    told = tell(tmp_path, "contract", "validate")
    assert told.code == 4
    assert "contract.invariants" in told.err


# -- "One id twice, two matrices, replicas twice, two different seeds: errors" --------------------
TWICE = {
    "id in the list": (SPEC.replace("chaos", "    - {id: cites, type: completes}\nchaos", 1), "duplicate-id"),
    "id in list and map": (SPEC + MAP.replace("mapped", "cites"), "duplicate-id"),
    "two matrices": (SPEC.replace("invariants:", "chaos_matrix: [{name: x}]\n  invariants:"), "conflict"),
    "scenario name": (SPEC + "  - name: no-chaos\n", "duplicate-id"),
    "replicas": (SPEC + "replicas: 2\nparallelism: {replicas: 2}\n", "conflict"),
    "seeds": (SPEC + "determinism: {seed: 1}\nadvanced: {seed: 2}\n", "conflict"),
    "key": (SPEC + "golden_prompts: [again]\n", "duplicate-key"),
    "on_call and after_calls": (
        SPEC.replace('"bot:answer"', '"bot:answer", tools: ["bot:answer"]')
        + "  - {name: x, tool_faults: [{tool: answer, mode: error, on_call: 2, after_calls: 1}]}\n",
        "conflict",
    ),
}


@pytest.mark.parametrize("what", TWICE)
def test_written_twice_is_an_error(tmp_path: Path, what: str) -> None:
    text, code = TWICE[what]
    problem = error_of(tmp_path, text)
    assert problem.code == code
    assert problem.line > 1
    assert problem.column >= 1


def test_the_same_seed_twice_is_no_error(tmp_path: Path) -> None:
    assert spec_of(tmp_path, SPEC + "determinism: {seed: 7}\nadvanced: {seed: 7}\n").seed == 7


# -- "Seed: --seed, else determinism.seed, else advanced.seed, else 0" ----------------------------
def test_precedence_of_seeds(tmp_path: Path) -> None:
    assert spec_of(tmp_path, SPEC).seed == 0
    assert spec_of(tmp_path, SPEC + "advanced: {seed: 3}").seed == 3
    assert spec_of(tmp_path, SPEC + "determinism: {seed: 4}").seed == 4
    assert spec_of(tmp_path, SPEC + "determinism: {seed: 4}", seed=5).seed == 5
    assert spec_of(tmp_path, SPEC + "advanced: {seed: 3}", seed=0).seed == 0


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


# -- "An integer timeout is ms, a string has a unit" ----------------------------------------------
@pytest.mark.parametrize(("written", "ms"), [("1500", 1500), ('"2s"', 2000), ("90s", 90_000), ("5m", 300_000),
                                             ("1h30m", 5_400_000), ("24h", 86_400_000), ("1500ms", 1500)])  # fmt: skip
def test_timeout_units(tmp_path: Path, written: str, ms: int) -> None:
    assert spec_of(tmp_path, SPEC.replace("type: python", f"type: python, timeout: {written}")).agent.timeout_ms == ms


@pytest.mark.parametrize("written", ["999", "300001", '"25h"', "soon", "1.5", "-5", '"5 parsecs"', "true"])
def test_timeout_out_of_range_or_without_a_unit_is_an_error(tmp_path: Path, written: str) -> None:
    problem = error_of(tmp_path, SPEC.replace("type: python", f"type: python, timeout: {written}"))
    assert problem.path == "agent.timeout"


def test_timeout_ends_an_agent(tmp_path: Path) -> None:
    slow = "import time\ndef answer(p):\n    time.sleep(30)\n"
    spec = SPEC.replace("type: python", "type: python, timeout: 1000")
    told = contract_run(tmp_path, spec, slow, "--no-preflight")
    assert (told.code, told.trial("cites")["ending"]) == (1, "timeout")
    assert told.json["duration_s"] < 10


def test_weights_all_zero_in_a_map_are_an_error(tmp_path: Path) -> None:
    found = errors_of(
        tmp_path, PYTHON + CALM + "invariants: {a: {description: d, weight: 0, check: {type: completes}}}"
    )
    assert [p.code for p in found] == ["bad-weights"]


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
