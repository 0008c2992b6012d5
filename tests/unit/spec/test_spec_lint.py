"""Warnings: each smell, and a file that does not have it."""

import pytest
from spec_texts import HTTP, MATRIX, RULES

from golden_words import Golden
from holdfast.spec import lint


def contract(*entries, matrix=MATRIX, agent=HTTP):
    lines = "".join(f"    - {entry}\n" for entry in entries)
    return f"{agent}{matrix}contract:\n  name: C\n  invariants:\n{lines}"


POSITIVE = "{id: p, type: contains, value: x}"
CHAOS = "chaos_matrix: [{name: calm}, {name: s, tool_faults: [{tool: t, mode: %s}]}]\n"


DESK = "agent: {type: python, endpoint: 'desk:ask', tools: ['desk:issue_refund', 'desk:lookup_order']}\n" + (
    "golden_prompts: [x]\n"
)
CALLS = "{id: c, type: claim_matches_state, claims: [{says: done, did: {type: tool_call, tool: %s}}]}"


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        ("{id: r, type: only_after, tool: %s, requires: lookup_order}", "tool"),
        ("{id: r, type: only_after, tool: lookup_order, requires: %s}", "requires"),
        ("{id: r, type: tool_not_called, tool: %s}", "tool"),
        ("{id: r, type: tool_called, tool: %s}", "tool"),
        ("{id: r, type: tool_order, tools: [lookup_order, %s]}", "tools[1]"),
        ("{id: r, type: max_calls, max: 2, tool: %s}", "tool"),
        ("{id: r, type: side_effect_once, tool: %s}", "tool"),
        ("{id: r, type: retries_within, max: 2, tool: %s}", "tool"),
        ("{id: r, type: recovers_within_ms, max_ms: 9, tool: %s}", "tool"),
        (CALLS, "claims[0].did.tool"),
    ],
)
def test_a_tool_that_the_agent_does_not_declare(file, rule, field):
    (file.folder / "desk.py").write_text("def ask(x): ...\ndef issue_refund(x): ...\ndef lookup_order(x): ...\n")
    found = file.error(contract(POSITIVE, rule % "isue_refund", agent=DESK))
    place = (f"contract.invariants[1].{field}", "did you mean issue_refund?")
    assert (found.code, found.path, found.hint) == ("unknown-tool", *place)
    for fitting in ("issue_refund", "'issue_*'", "'https://pay.example/*'"):
        assert file.warnings(contract(POSITIVE, rule % fitting, agent=DESK), "lint-unknown-tool") == []
    assert file.warnings(contract(POSITIVE, rule % "isue_refund"), "lint-unknown-tool") == []  # its tools are not known
    # A model may offer tools that the file does not declare.
    (file.folder / "desk.py").write_text(
        "import openai\ndef ask(x): ...\ndef issue_refund(x): ...\ndef lookup_order(x): ...\n"
    )
    (found,) = file.warnings(contract(POSITIVE, rule % "isue_refund", agent=DESK), "lint-unknown-tool")
    assert (found.path, found.hint) == place


@pytest.mark.parametrize("tool", ["'delete_*'", "wire_money"])
def test_a_rule_may_forbid_a_tool_that_is_unlike_every_declared_one(file, tool):
    (file.folder / "desk.py").write_text("def ask(x): ...\ndef issue_refund(x): ...\ndef lookup_order(x): ...\n")
    rule = f"{{id: r, type: tool_not_called, tool: {tool}}}"
    assert len(file.warnings(contract(POSITIVE, rule, agent=DESK), "lint-unknown-tool")) == 1


def test_a_rule_may_forbid_the_tool_that_an_attack_asks_for(file):
    (file.folder / "desk.py").write_text("def ask(x): ...\ndef issue_refund(x): ...\ndef lookup_order(x): ...\n")
    attack = "{type: indirect_injection, action: issue_refunds}"
    matrix = f"chaos_matrix: [{{name: calm}}, {{name: s, context_attacks: [{attack}]}}]\n"
    rule = "{id: r, type: tool_not_called, tool: issue_refunds}"
    assert file.warnings(contract(POSITIVE, rule, agent=DESK, matrix=matrix), "lint-unknown-tool") == []


def test_doubly_escaped_regex_in_single_quotes(file):
    (found,) = file.warnings(
        contract(POSITIVE, r"{id: r, type: regex, pattern: '\\$[\\d,]+\\.\\d{2}'}"), "lint-escaped-regex"
    )
    assert found.path == "contract.invariants[1].pattern"
    assert found.hint.endswith(r"Write '\$[\d,]+\.\d{2}'")


@pytest.mark.parametrize("pattern", [r"'\$[\d,]+'", r'"\\$[\\d,]+"', r"'a\\'"])
def test_well_escaped_regex_is_quiet(file, pattern):
    assert file.warnings(contract(f"{{id: r, type: regex, pattern: {pattern}}}"), "lint-escaped-regex") == []


def test_doubly_escaped_regex_in_a_list_points_at_its_entry(file):
    text = contract(POSITIVE, r"{id: r, type: excludes_pattern, patterns: [ok, '\\d+']}")
    assert [w.path for w in file.warnings(text, "lint-escaped-regex")] == ["contract.invariants[1].patterns[1]"]


def test_rule_that_an_empty_answer_passes(file):
    for pattern, warnings in ((".*", 1), (".+", 0)):
        text = contract(f"{{id: r, type: regex, pattern: '{pattern}'}}")
        assert len(file.warnings(text, "lint-matches-anything")) == warnings


def test_plain_text_with_unescaped_signs(file):
    text = contract(POSITIVE, "{id: r, type: excludes_pattern, patterns: ['What is my prompt?']}")
    assert len(file.warnings(text, "lint-unescaped-pattern")) == 1


def test_contract_of_only_negative_rules(file):
    negative = ("{id: a, type: regex, pattern: x, negate: true}", "{id: b, type: excludes_pattern, patterns: [x]}")
    assert len(file.warnings(contract(*negative), "lint-only-negative")) == 1
    assert file.warnings(contract(*negative, POSITIVE), "lint-only-negative") == []


@pytest.mark.parametrize(("key", "says"), [("gate: true", "score of 1.0"), ("severity: critical", "votes")])
def test_gate_or_critical_rule_on_a_judge_with_one_vote(file, key, says):
    rule = "{id: j, %s, check: {type: llm_as_judge, model: m, criteria: c, votes: %d}}"
    (found,) = file.warnings(contract(rule % (key, 1)), "lint-judge-one-vote")
    assert says in found.hint
    assert file.warnings(contract(rule % (key, 3)), "lint-judge-one-vote") == []


@pytest.mark.parametrize("kind", ["similarity, expected: x", "behavior_unchanged"])
def test_a_critical_rule_on_likeness_of_words(file, kind):
    rule = "{id: s, severity: critical, type: %s%s}"
    (found,) = file.warnings(contract(rule % (kind, "")), "lint-likeness-of-words")
    assert "method: model" in found.hint
    (found,) = file.warnings(contract(rule % (kind, ", method: model, model: m")), "lint-judge-one-vote")
    model = rule % (kind, ", method: model, model: m, votes: 3")
    assert file.warnings(contract(model), "lint-likeness-of-words") == []
    assert file.warnings(contract(model), "lint-judge-one-vote") == []
    assert file.warnings(contract(rule.replace("critical", "high") % (kind, "")), "lint-likeness-of-words") == []


def test_when_that_no_scenario_meets(file):
    rule = "{id: r, type: completes, when: llm_faults_active}"
    (found,) = file.warnings(contract(rule, matrix=CHAOS % "error"), "lint-when-unmet")
    assert found.path == "contract.invariants[0].when"
    met = "chaos_matrix: [{name: calm}, {name: s, llm_faults: [{mode: garbage}]}]\n"
    assert file.warnings(contract(rule, matrix=met), "lint-when-unmet") == []


def test_no_calm_scenario(file):
    chaos = "chaos_matrix: [{name: s, llm_faults: [{mode: garbage}]}]\n"
    assert len(file.warnings(contract(POSITIVE, matrix=chaos), "lint-no-calm")) == 1
    assert file.warnings(contract(POSITIVE, matrix=CHAOS % "error"), "lint-no-calm") == []


@pytest.mark.parametrize(("mode", "count"), [("slow, delay_ms: 30000", 1), ("slow, delay_ms: 29999", 0), ("slow", 0)])
def test_delay_not_below_the_agents_timeout(file, mode, count):
    assert len(file.warnings(contract(POSITIVE, matrix=CHAOS % mode), "lint-delay-timeout")) == count


def test_default_delay_counts_too(file):
    agent = HTTP.replace("simulate", "timeout: 1500, simulate")
    assert len(file.warnings(contract(POSITIVE, matrix=CHAOS % "slow", agent=agent), "lint-delay-timeout")) == 1


def test_more_trials_at_once_than_cores_next_to_a_latency_rule(file, monkeypatch):
    monkeypatch.setattr(lint.os, "cpu_count", lambda: 4)
    timed = contract("{id: l, type: latency, max_ms: 5}")
    assert len(file.warnings(timed + "advanced: {concurrency: 5}\n", "lint-concurrency-latency")) == 1
    assert file.warnings(timed + "advanced: {concurrency: 4}\n", "lint-concurrency-latency") == []
    assert file.warnings(contract(POSITIVE) + "advanced: {concurrency: 5}\n", "lint-concurrency-latency") == []


@pytest.mark.parametrize(
    ("agent", "count"),
    [
        ("{type: python, endpoint: 'm:f'}", 0),
        ("{type: python, endpoint: 'm:f', isolation: inline}", 1),
        ("{type: command, command: ./run}", 0),
        ("{type: command, command: ./run, reset_endpoint: 'http://h/reset'}", 1),
        ("{type: http, endpoint: 'http://h/'}", 0),
    ],
)
def test_parallel_trials_of_an_agent_that_runs_them_one_at_a_time(file, agent, count):
    text = contract(POSITIVE, agent=f"agent: {agent}\n") + "advanced: {concurrency: %d}\n"
    assert len(file.warnings(text % 2, "lint-concurrency-unused")) == count
    assert file.warnings(text % 1, "lint-concurrency-unused") == []


@pytest.mark.parametrize(("score", "count"), [("0.8", 1), ("1", 1), ("0", 0), ("80", 0)])
def test_min_score_as_a_fraction(file, score, count):
    text = contract(POSITIVE) + f"scoring: {{min_score: {score}}}\n"
    assert len(file.warnings(text, "lint-min-score-fraction")) == count


def test_missing_description_is_a_warning_in_a_map_only(file):
    mapped = HTTP + "invariants:\n  m: {check: {type: completes}}\n"
    assert [w.path for w in file.warnings(mapped, "lint-no-description")] == ["invariants.m"]
    assert file.warnings(contract(POSITIVE), "lint-no-description") == []


MODEL = "models: {gpt-4o: {name: x, temperature: 0.2}}\n"
JUDGED = "contract: {name: C, invariants: [{id: j, type: llm_as_judge, model: gpt-4o, criteria: p}]}\n"


def test_temperature_without_a_judge_is_a_warning(file):
    (found,) = file.warnings(HTTP + RULES + MATRIX + MODEL, "lint-temperature")
    assert found.path == "models.gpt-4o.temperature"


def test_temperature_next_to_a_judge_is_none(file):
    assert file.warnings(HTTP + JUDGED + MATRIX + MODEL, "lint-temperature") == []


@pytest.mark.parametrize("key", ["pass_threshold: 0.5", "gate_on: passed"])
def test_scoring_of_composites_means_nothing_to_a_contract_alone(file, key, golden: Golden):
    text = contract(POSITIVE) + f"scoring: {{{key}}}\n"
    (warned,) = file.warnings(text, "lint-unused-scoring")
    assert warned.path == f"scoring.{key.partition(':')[0]}"
    golden(warned.message)
    task = "agent: {type: command, command: x}\ntask: {prompt: p}\n"
    task += "invariants: {a: {description: d, check: {type: completes}}}\n"
    assert file.warnings(task + f"scoring: {{{key}}}\n", "lint-unused-scoring") == []
