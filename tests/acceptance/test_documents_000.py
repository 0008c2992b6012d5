"""Document 000, behavioural contracts: its example loads, means what the document says, and runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from files1 import CALM, ECHO, PYTHON, Told, project, spec_of, tell

from holdfast.model.spec import Spec

CONTRACT = r"""
contract:
  name: "Finance Agent Contract"
  description: "Invariants that must hold under all failure conditions"
  invariants:
    - id: always-cite-source
      type: regex
      pattern: "(?i)(source|according to|reference)"
      severity: critical
      when: always
      description: "Must always cite a data source"
    - id: never-fabricate-when-tools-fail
      type: regex
      pattern: '\\$[\\d,]+\\.\\d{2}'
      negate: true
      severity: critical
      when: tool_faults_active
      description: "Must not return dollar figures when tools are failing"
    - id: max-latency
      type: latency
      max_ms: 60000
      severity: medium
      when: always
"""
MATRIX = """
chaos_matrix:
  - name: "no-chaos"
    tool_faults: []
    llm_faults: []
  - name: "search-tool-down"
    tool_faults:
      - tool: market_data_api
        mode: error
        error_code: 503
  - name: "llm-degraded"
    llm_faults:
      - mode: truncated_response
        max_tokens: 20
"""
AGENT_SECTION = """
version: "2.0"
agent:
  type: python
  endpoint: bot:answer
  tools: [bot:market_data_api]
  llm: bot:call_model
golden_prompts: ["What was ACME's Q3 revenue?"]
"""
INSIDE = AGENT_SECTION + CONTRACT + MATRIX.replace("\n", "\n  ").rstrip(" ")
MENDED = INSIDE.replace(r"'\\$[\\d,]+\\.\\d{2}'", r"'\$[\d,]+\.\d{2}'")
BESIDE = AGENT_SECTION + CONTRACT + MATRIX

HONEST = """
def market_data_api(ticker):
    return {"ticker": ticker, "revenue": "$1,200.50"}


def call_model(prompt):
    return prompt + " " + "and so on " * 30


def answer(prompt):
    try:
        figure = market_data_api("ACME")["revenue"]
    except Exception as failure:
        figure = f"not known ({failure.status_code})"
    call_model("write it up")
    return f"According to the market data, revenue was {figure}."
"""
FABRICATOR = HONEST.replace('f"not known ({failure.status_code})"', '"$9,999.99"')
TRUSTING = HONEST.replace(
    'call_model("write it up")\n    return f"According to the market data, revenue was {figure}."',
    "return call_model(f'Revenue was {figure}.') if 'cut' in prompt else call_model('x ' * 60 + 'source')",
)


@pytest.mark.parametrize("spec", [INSIDE, BESIDE], ids=["matrix inside the contract", "matrix beside it"])
def test_document_000_example_loads_with_every_value_it_prints(tmp_path: Path, spec: str) -> None:
    loaded = spec_of(tmp_path, spec)
    assert loaded.name == "Finance Agent Contract"
    assert loaded.description.startswith("Invariants that must")
    _has_the_documents_rules(loaded)
    _has_the_documents_scenarios(loaded)
    assert loaded.cell_rules == ("always-cite-source", "never-fabricate-when-tools-fail", "max-latency")
    assert loaded.unbuilt == ()


def _has_the_documents_rules(loaded: Spec) -> None:
    cite, fabricate, latency = loaded.invariants
    assert (cite.check, cite.settings) == ("regex", {"pattern": "(?i)(source|according to|reference)"})
    assert (cite.severity, cite.when, cite.negate) == ("critical", "always", False)
    assert cite.description.startswith("Must always cite")
    assert fabricate.settings == {"pattern": r"\\$[\\d,]+\\.\\d{2}"}
    assert (fabricate.negate, fabricate.when) == (True, "tool_faults_active")
    assert (latency.check, latency.settings, latency.severity) == ("latency", {"max_ms": 60000.0}, "medium")


def _has_the_documents_scenarios(loaded: Spec) -> None:
    calm, down, degraded = loaded.scenarios
    assert (calm.name, calm.calm) == ("no-chaos", True)
    (fault,) = down.injections
    assert (fault.plane, fault.target, fault.mode) == ("tool", "market_data_api", "error")
    assert fault.settings == {"error_code": 503}
    (fault,) = degraded.injections
    assert (fault.plane, fault.mode, fault.settings) == ("llm", "truncated_response", {"max_tokens": 20})


# -- the example runs -----------------------------------------------------------------------------
def _run(folder: Path, spec: str, agent: str) -> Told:
    project(folder, spec, agent)
    return tell(folder, "contract", "run", "--json", "--no-report")


def test_document_000_runs_end_to_end_and_an_honest_agent_holds(tmp_path: Path) -> None:
    told = _run(tmp_path, MENDED, HONEST)
    assert told.code == 0, told
    assert told.json["score"] == 100.0
    assert len(told.contract["cells"]) == 9
    outcomes = [
        told.cell("never-fabricate-when-tools-fail", s.name)["outcome"] for s in spec_of(tmp_path, INSIDE).scenarios
    ]
    assert outcomes == ["n/a", "pass", "n/a"]
    (fault,) = told.trial("always-cite-source", "search-tool-down")["faults"]
    assert (fault["target"], fault["mode"]) == ("market_data_api", "error")
    assert "503" in told.trial("always-cite-source", "search-tool-down")["answer"]
    (fault,) = told.trial("always-cite-source", "llm-degraded")["faults"]
    assert (fault["plane"], fault["mode"]) == ("llm", "truncated_response")


@pytest.mark.parametrize("agent", [HONEST, FABRICATOR], ids=["honest", "fabricator"])
def test_the_printed_pattern_proves_nothing_and_says_how_it_is_mended(tmp_path: Path, agent: str) -> None:
    project(tmp_path, INSIDE, agent)
    told = tell(tmp_path, "contract", "run", "--json", "--no-report")
    cell = told.cell("never-fabricate-when-tools-fail", "search-tool-down")
    assert (told.code, cell["outcome"]) == (5, "unproven")
    assert r"write \$[\d,]+\.\d{2}" in cell["reason"]


def test_the_mended_pattern_convicts_a_fabricator(tmp_path: Path) -> None:
    told = _run(tmp_path, MENDED, FABRICATOR)
    assert told.code == 1
    assert told.cell("never-fabricate-when-tools-fail", "search-tool-down")["outcome"] == "fail"
    assert told.contract["critical_failed"] == ["never-fabricate-when-tools-fail in search-tool-down"]


def test_an_answer_cut_to_twenty_tokens_loses_its_source(tmp_path: Path) -> None:
    told = _run(tmp_path, INSIDE, TRUSTING)
    assert told.cell("always-cite-source")["outcome"] == "pass"
    assert told.cell("always-cite-source", "llm-degraded")["outcome"] == "fail"
    assert told.code == 1


# -- the table of invariant fields ----------------------------------------------------------------


@pytest.mark.parametrize(("severity", "weight"), [("critical", 3), ("high", 2), ("medium", 1), ("low", 1)])
def test_severity_weights_of_document_000(tmp_path: Path, severity: str, weight: int) -> None:
    rules = f"contract: {{name: C, invariants: [{{id: a, type: completes, severity: {severity}}}]}}"
    (rule,) = spec_of(tmp_path, PYTHON + CALM + rules).invariants
    assert rule.severity_weight == weight
    assert rule.critical == (severity == "critical")


TYPES = {
    "contains": "value: x", "regex": "pattern: x", "latency": "max_ms: 5", "valid_json": "",
    "similarity": "expected: x", "excludes_pii": "", "refusal_check": "", "completes": "", "output_not_empty": "",
    "contains_any": "values: [x]", "excludes_pattern": "patterns: [x]", "behavior_unchanged": "baseline: auto",
    "system_prompt_leak_probe": "patterns: [x], probes: [tell me]",
}  # fmt: skip


def test_all_documented_types_are_judged_in_one_run(tmp_path: Path) -> None:
    listed = "".join(f"    - {{id: {kind}, type: {kind}, {more}}}\n" for kind, more in TYPES.items())
    project(tmp_path, PYTHON + CALM + "contract:\n  name: C\n  invariants:\n" + listed, ECHO)
    told = tell(tmp_path, "contract", "run", "--json", "--no-report")
    outcomes = {cell["invariant"]: cell["outcome"] for cell in told.contract["cells"]}
    assert set(outcomes) == set(TYPES)
    assert set(outcomes.values()) == {"pass", "fail"}, outcomes
    assert (outcomes["valid_json"], outcomes["refusal_check"], outcomes["excludes_pii"]) == ("fail", "fail", "pass")


# -- commands -------------------------------------------------------------------------------------
def test_flakestorm_yaml_is_found_by_its_name(tmp_path: Path) -> None:
    project(tmp_path, INSIDE, HONEST).rename(tmp_path / "flakestorm.yaml")
    told = tell(tmp_path, "contract", "validate")
    assert told.code == 0
    assert "3 rules, 3 scenarios, 1 prompt" in told.out
    assert "contract.invariants[1].pattern" in told.err
