"""The contract format, key by key: accepted, with its default, and never ignored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from files1 import (
    CALM,
    ECHO,
    PYTHON,
    RULES,
    SPEC,
    contract_run,
    errors_of,
    project,
    spec_of,
    tell,
)


# -- top ------------------------------------------------------------------------------------------
def test_only_agent_and_something_to_ask_are_needed_of_a_contract_file(tmp_path: Path) -> None:
    assert spec_of(tmp_path, SPEC).unbuilt == ()


def test_golden_prompts_are_all_asked(tmp_path: Path) -> None:
    told = contract_run(tmp_path, SPEC.replace('["What is the total?"]', "[one, two, three]"))
    assert [trial["prompt"] for trial in told.cell("cites")["trials"]] == ["one", "two", "three"]


def test_replicas_default_to_one_and_multiply_the_trials(tmp_path: Path) -> None:
    assert len(contract_run(tmp_path, SPEC).cell("cites")["trials"]) == 1
    assert len(contract_run(tmp_path, SPEC + "replicas: 3\n").cell("cites")["trials"]) == 3
    assert contract_run(tmp_path, SPEC + "replicas: 3\n", ECHO, "--replicas", "2").contract["replicas"] == 2


SECTIONS = {
    "model": 'model: {provider: openai, name: m, api_key: "${KEY}", base_url: "http://m", temperature: 0.1}',
    "mutations": "mutations: {count: 3, types: [noise, custom], weights: {noise: 0.5}, "
    "custom_templates: {loud: '{prompt}!'}}",
    "chaos": "chaos: {context_attacks: [{type: overflow}]}",
    "invariants": "invariants: [{type: contains, value: nowhere, dangerous_prompts: true}]",
    "replays": "replays: {sessions: [{id: s, input: hello, context: [], "
    "tool_responses: [{tool: t, response: 1, status: 0}]}]}",
    "output": "output: {format: terminal}",
    "models": "models: {fast: {provider: ollama, name: m}}",
    "scoring": "scoring: {min_score: 50, weights: {mutation: 0.2, chaos: 0.35, contract: 0.35, replay: 0.1}}",
    "advanced": "advanced: {concurrency: 2, retries: 1, seed: 4}",
}


@pytest.mark.parametrize("section", SECTIONS)
def test_every_top_section_loads_and_a_contract_run_goes_by(tmp_path: Path, section: str) -> None:
    project(tmp_path, SPEC + SECTIONS[section] + "\n")
    told = tell(tmp_path, "contract", "run", "--json", KEY="long-enough-key")
    assert told.code == 0, told
    assert len(told.contract["cells"]) == 1


@pytest.mark.parametrize("command", [("run",), ("run", "--chaos-only"), ("replay", "run")])
def test_commands_that_would_need_other_sections_refuse(tmp_path: Path, command: tuple[str, ...]) -> None:
    project(tmp_path, SPEC + SECTIONS["mutations"] + "\n")
    told = tell(tmp_path, *command)
    assert told.code == 4, told
    assert told.err


def test_ci_runs_what_the_file_has(tmp_path: Path) -> None:
    project(tmp_path, SPEC + SECTIONS["mutations"] + "\n")
    told = tell(tmp_path, "ci", "--json")
    assert (told.code, told.json["score"]) == (0, 100.0)
    assert [name for name, part in told.json["parts"].items() if part["ran"]] == ["contract"]
    assert tell(tmp_path, "score").out == "100.00\n"


REFUSED = {
    "model.provider": "model: {provider: opnai, name: m}",
    "model.temperature": "model: {name: m, temperature: 9}",
    "models.fast": "models: {fast: {provider: ollama}}",
    "mutations.count": "mutations: {count: 0}",
    "mutations.types[0]": "mutations: {types: [noize]}",
    "mutations.weights.noise": "mutations: {weights: {noise: -1}}",
    "mutations.weights.noize": "mutations: {weights: {noize: 1}}",
    "mutations.custom_templates.a": "mutations: {custom_templates: {a: [x]}}",
    "chaos.tool_faults[0].mode": "chaos: {tool_faults: [{tool: t, mode: eror}]}",
    "chaos.llm_faults[0].max_tokens": "chaos: {llm_faults: [{mode: truncated_response, max_tokens: -1}]}",
    "chaos.profile": "chaos: {profile: x}",
    "replays.sessions[0]": "replays: {sessions: [{id: s}]}",
    "replays.sessions[0].tool_responses[0].tool": "replays: {sessions: [{id: s, input: i, "
    "tool_responses: [{status: 1}]}]}",
    "replays.sources[0].project": "replays: {sources: [{type: langsmith}]}",
    "replays.sources[0].run_id": "replays: {sources: [{type: langsmith_run}]}",
    "replays.sources[0].filter.status": "replays: {sources: [{type: langsmith, project: p, filter: {status: bad}}]}",
    "replays.sessions[0].file": "replays: {sessions: [{file: nowhere.yaml}]}",
    "output.format": "output: {format: pdf}",
    "output.path": "output: {path: ''}",
    "advanced.concurrency": "advanced: {concurrency: 0}",
    "advanced.retries": "advanced: {retries: -1}",
    "advanced.seed": "advanced: {seed: -1}",
    "scoring.min_score": "scoring: {min_score: 101}",
    "scoring.weights.mutatoin": "scoring: {weights: {mutatoin: 0.2}}",
    "scoring.gate_on": "scoring: {gate_on: maybe}",
    "scoring.pass_threshold": "scoring: {pass_threshold: 2}",
    "invariants[0].value": "invariants: [{type: contains}]",
    "invariants[0].dangerous_prompts": "invariants: [{type: completes, dangerous_prompts: often}]",
}


@pytest.mark.parametrize("path", REFUSED)
def test_a_wrong_value_is_an_error_at_its_key(tmp_path: Path, path: str) -> None:
    project(tmp_path, SPEC + REFUSED[path] + "\n")
    told = tell(tmp_path, "validate", "--json")
    assert (told.code, [error["path"] for error in told.json["errors"]]) == (4, [path])


# -- agent (what a Python agent reads; HTTP keys have a file of their own) ------------------------


def test_langchain_type_is_asked_through_invoke(tmp_path: Path) -> None:
    agent = "class Chain:\n    def invoke(self, given): return {'output': 'source ' + given['input']}\nchain = Chain()"
    spec = SPEC.replace("type: python", "type: langchain").replace("bot:answer", "bot:chain")
    assert contract_run(tmp_path, spec, agent).trial("cites")["answer"].startswith("source What is")


def test_agent_env_reaches_the_agent_in_every_isolation(tmp_path: Path) -> None:
    agent = "import os\nfirst = os.environ['COLOUR']\ndef answer(p): return 'source ' + first + os.environ['COLOUR']"
    for isolation in ("fresh", "worker", "inline"):
        spec = SPEC.replace("type: python", f"type: python, isolation: {isolation}, env: {{COLOUR: blue, N: 3}}")
        spec = spec.replace("bot:answer", f"{isolation}_bot:answer")
        (tmp_path / f"{isolation}_bot.py").write_text(agent)
        told = contract_run(tmp_path, spec)
        assert told.code == 0, told
        assert told.trial("cites")["answer"] == "source blueblue"


UNBUILT = {
    "agent.type": "agent: {type: paragon, model: paragon-1}\nmodels: {paragon-1: {name: local}}",
}


@pytest.mark.parametrize("key", UNBUILT)
def test_agent_keys_of_later_releases_are_refused_by_a_run(tmp_path: Path, key: str) -> None:
    project(tmp_path, UNBUILT[key] + "\ngolden_prompts: [x]\n" + RULES + CALM)
    assert tell(tmp_path, "validate").code == 0
    told = tell(tmp_path, "contract", "run", "--json")
    assert (told.code, [e["path"] for e in told.json["errors"]]) == (4, [key])
    assert not (tmp_path / "ran").exists()


# -- contract and its invariants ------------------------------------------------------------------
def test_contract_name_and_description_are_in_the_report(tmp_path: Path) -> None:
    spec = SPEC.replace("name: C", "name: The Rules\n  description: Why")
    assert contract_run(tmp_path, spec).json["name"] == "The Rules"
    assert spec_of(tmp_path, spec).description == "Why"


RULE_KEYS = {
    "value": ("contains, value: source", "contains, value: nowhere"),
    "values": ("contains_any, values: [nowhere, source]", "contains_any, values: [nowhere]"),
    "pattern": ("regex, pattern: 'S[a-z]urce'", "regex, pattern: 'S[0-9]urce'"),
    "patterns": ("excludes_pattern, patterns: ['z+']", "excludes_pattern, patterns: ['z+', 'led.er']"),
    "literal": ("excludes_pattern, patterns: ['led.er'], literal: true", "excludes_pattern, patterns: ['led.er']"),
    "max_ms": ("latency, max_ms: 60000", "latency, max_ms: 0"),
    "expected": (
        "similarity, expected: 'Source: the ledger. You asked: What is the total?'",
        "similarity, expected: 'Penguins live on ice.'",
    ),
    "threshold": (
        "similarity, expected: 'Source: the ledger book. You asked: What is the total?', threshold: 0",
        "similarity, expected: 'Source: the ledger book. You asked: What is the total?', threshold: 0.99",
    ),
    "similarity_threshold": (
        "similarity, expected: 'Source: the ledger book. You asked: What is the total?', similarity_threshold: 0",
        "similarity, expected: 'Source: the ledger book. You asked: What is the total?', similarity_threshold: 0.99",
    ),
    "baseline": (
        "behavior_unchanged, baseline: 'Source: the ledger. You asked: What is the total?'",
        "behavior_unchanged, baseline: 'Penguins live on ice.'",
    ),
    "negate": ("contains, value: nowhere, negate: true", "contains, value: source, negate: true"),
    "probes": ("contains, value: tell me, probes: [tell me]", "contains, value: tell me, probes: [other]"),
    "one_of": ("ending, one_of: [answered]", "ending, one_of: [timeout]"),
    "completes negated": ("completes", "completes, negate: true"),
}  # fmt: skip


JSON_AGENT = """def answer(p): return '{"items": [{"n": 1}], "mail": "joe@example.org"}'"""
JSON_KEYS = {
    "path": ("valid_json, path: '$.items[0].n'", "valid_json, path: '$.items[5]'"),
    "dotted path": ("valid_json, path: items.0.n", "valid_json, path: items.9.n"),
    "schema": (
        "valid_json, schema: {type: object, required: [items]}",
        "valid_json, schema: {type: object, required: [nothing]}",
    ),
    "schema at path": (
        "valid_json, path: '$.items[0].n', schema: {type: integer}",
        "valid_json, path: '$.items[0].n', schema: {type: string}",
    ),
    "entities": ("excludes_pii, entities: [iban]", "excludes_pii, entities: [email]"),
    "allow": ("excludes_pii, allow: ['*@example.org']", "excludes_pii, allow: ['*@example.com']"),
}


@pytest.mark.parametrize(("keys", "agent"), [(RULE_KEYS, ECHO), (JSON_KEYS, JSON_AGENT)], ids=["text", "json"])
def test_rule_settings_decide(tmp_path: Path, keys: dict[str, tuple[str, str]], agent: str) -> None:
    pairs = [
        (f"{key}: {name}", text) for key, both in keys.items() for name, text in zip(("good", "bad"), both, strict=True)
    ]
    rules = "".join(f"    - {{id: '{id}', type: {text}}}\n" for id, text in pairs)
    told = contract_run(tmp_path, PYTHON + "contract:\n  name: C\n  invariants:\n" + rules + CALM, agent)
    outcomes = {id: told.cell(id)["outcome"] for id, _ in pairs}
    assert outcomes == {id: "pass" if id.endswith("good") else "fail" for id, _ in pairs}


def test_over_decides_which_turns_are_read(tmp_path: Path) -> None:
    spec = PYTHON.replace('golden_prompts: ["What is the total?"]', "task: {prompt: apple, turns: [pear]}") + CALM
    rules = "".join(
        f"    - {{id: {over}, type: contains, value: apple, over: {over}}}\n" for over in ("last", "any", "all")
    )
    told = contract_run(tmp_path, spec + "contract:\n  name: C\n  invariants:\n" + rules)
    assert [told.cell(over)["outcome"] for over in ("last", "any", "all")] == ["fail", "pass", "fail"]


def test_method_semantic_without_its_extra_is_an_error_with_the_pip_line_or_is_named(tmp_path: Path) -> None:
    found = errors_of(tmp_path, SPEC.replace("contains, value: source", "similarity, expected: x, method: semantic"))
    try:
        import wordllama  # noqa: F401  # only asks whether the extra is there
    except ImportError:
        assert [p.path for p in found] == ["contract.invariants[0].method"]
        assert "pip install" in found[0].message + found[0].hint
    else:
        assert found == []
    told = contract_run(tmp_path, SPEC.replace("contains, value: source", "similarity, expected: x"))
    assert "lexical" in json.dumps(told.trial("cites"))


FLAKY = """
import os
def answer(p):
    return "source" if os.environ["HOLDFAST_REPLICA"] in ("0", "2") else "none"
"""


@pytest.mark.parametrize(("how", "outcome"), [
    ("all", "fail"), ("any", "pass"), ("majority", "pass"), ("{at_least: 2}", "pass"), ("{at_least: 3}", "fail"),
    ("{rate: 0.6}", "pass"), ("{rate: 0.7}", "fail"),
])  # fmt: skip
def test_replica_aggregation_of_the_file_and_of_a_rule(tmp_path: Path, how: str, outcome: str) -> None:
    own = SPEC.replace("value: source", f"value: source, replica_aggregation: {how}")
    spec = own.replace("chaos_matrix", "    - {id: other, type: contains, value: source}\nchaos_matrix")
    told = contract_run(tmp_path, spec + "replicas: 3\n", FLAKY)
    assert (told.cell("cites")["outcome"], told.cell("other")["outcome"]) == (outcome, "fail")
    told = contract_run(tmp_path, SPEC + f"replicas: 3\nscoring: {{replica_aggregation: {how}}}\n", FLAKY)
    assert told.cell("cites")["outcome"] == outcome
    assert told.cell("cites")["flaky"] is True
