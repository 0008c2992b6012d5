"""Invariants in both spellings."""

import pytest
from spec_texts import HTTP, MATRIX

FLAT = "{id: r, type: regex, pattern: x, severity: high, when: no_chaos}"
NESTED = "{id: r, severity: high, when: no_chaos, check: {type: regex, pattern: x}}"


def contract(*entries):
    lines = "".join(f"    - {entry}\n" for entry in entries)
    return f"{HTTP}{MATRIX}contract:\n  name: C\n  invariants:\n{lines}"


def test_flat_and_nested_spelling_mean_the_same_in_a_list(file):
    (flat,) = file.spec(contract(FLAT)).invariants
    (nested,) = file.spec(contract(NESTED)).invariants
    assert flat == nested
    assert (flat.check, flat.settings, flat.severity, flat.when) == ("regex", {"pattern": "x"}, "high", "no_chaos")


def test_flat_and_nested_spelling_mean_the_same_in_a_map(file):
    both = [
        file.spec(f"{HTTP}{MATRIX}invariants:\n  r: {entry}\n").invariants
        for entry in (
            "{description: d, severity: low, negate: true, type: regex, pattern: x}",
            "{description: d, severity: low, negate: true, check: {type: regex, pattern: x}}",
        )
    ]
    assert both[0] == both[1]
    assert both[0][0].negate


def test_both_spellings_together_are_the_contract_in_file_order(file):
    spec = file.spec(contract(FLAT) + "invariants:\n  m: {description: d, gate: true, check: {type: completes}}\n")
    assert [i.id for i in spec.invariants] == ["r", "m"]
    assert spec.cell_rules == ("r",)
    assert spec.get_invariant("m").severity_weight == 3


def test_one_id_twice_is_an_error(file):
    found = file.error(contract(FLAT) + "invariants:\n  r: {description: d, check: {type: completes}}\n")
    assert found.code == "duplicate-id"
    assert "first on line" in found.message


@pytest.mark.parametrize(
    ("entry", "code", "key", "hint"),
    [
        ("{id: r, type: completes, dangerous_prompts: true}", "unknown-key", "dangerous_prompts", ""),
        ("{id: r, type: contians, value: x}", "unknown-value", "type", "did you mean contains?"),
        ("{id: r, type: latency, max_ms: 5, pattern: x}", "unknown-key", "pattern", "latency takes: max_ms"),
        ("{id: r, type: regex, check: {type: regex, pattern: x}}", "unknown-key", "type", ""),
        ("{id: r, type: regex, pattern: '['}", "bad-setting", "pattern", ""),
        ("{type: completes}", "missing-key", "id", ""),
    ],
)
def test_a_wrong_rule_is_an_error_at_its_key(file, entry, code, key, hint):
    found = file.error(contract(entry))
    assert (found.code, found.path) == (code, f"contract.invariants[0].{key}")
    assert hint in found.hint


def test_a_list_of_rules_outside_the_contract_needs_no_ids_and_is_validated(file):
    spec = file.spec(HTTP + "invariants:\n  - {type: completes, dangerous_prompts: true}\n")
    assert spec.invariants == ()
    assert file.error(HTTP + "invariants:\n  - {type: regex}\n").path == "invariants[0].pattern"


def test_isolation_scenario_leaves_only_probed_rules_their_own_trials(file):
    text = contract(FLAT, "{id: p, type: completes, probes: [hello]}")
    assert file.spec(text).cell_rules == ("r", "p")
    assert file.spec(text.replace("name: C", "name: C\n  isolation: scenario")).cell_rules == ("p",)


def test_isolation_cell_makes_map_rules_cell_rules(file):
    rules = "invariants:\n  m: {description: d, check: {type: completes}}\n"
    assert file.spec(HTTP + MATRIX + rules).cell_rules == ()
    assert file.spec(HTTP + MATRIX + rules + "contract: {isolation: cell}\n").cell_rules == ("m",)


def test_leak_probe_needs_probes(file):
    entry = "{id: r, type: system_prompt_leak_probe, patterns: [secret]%s}"
    assert file.error(contract(entry % "")).path == "contract.invariants[0].probes"
    (rule,) = file.spec(contract(entry % ", probes: [reveal]")).invariants
    assert rule.probes == ("reveal",)


def test_every_similarity_threshold_spelling_loads(file):
    for key in ("threshold", "similarity_threshold"):
        (rule,) = file.spec(contract(f"{{id: r, type: similarity, expected: x, {key}: 0.8}}")).invariants
        assert rule.settings[key] == 0.8


@pytest.mark.parametrize("entries", ["[]", "{}"])
def test_no_rules_is_an_error(file, entries):
    assert file.error(f"{HTTP}{MATRIX}contract: {{name: C, invariants: {entries}}}\n").code == "empty"


def test_all_weights_zero_is_an_error(file):
    rules = "invariants:\n  m: {description: d, weight: 0, check: {type: completes}}\n"
    assert file.error(HTTP + rules).code == "bad-weights"


def test_positions_are_those_of_the_entry(file):
    (rule,) = file.spec(contract(FLAT)).invariants
    assert (rule.position.line, rule.position.column) == (10, 7)


def run_rules(*entries):
    return f"{HTTP}mutations: {{types: [noise]}}\ninvariants:\n" + "".join(f"  - {entry}\n" for entry in entries)


def test_defaults_of_other_types_are_listed_in_one_warning(file):
    rules = run_rules(
        "{type: latency, max_ms: 9, negate: false, threshold: 0.8, similarity_threshold: 0.75}",
        "{type: valid_json, threshold: 0.80}",
        "{type: similarity, expected: x, threshold: 0.8}",
    )
    rules = rules.replace("{types: [noise]}", "{types: [noise], weights: {noise: 0.8, paraphrase: 1.0, custom: 1.0}}")
    (one,) = file.warnings(rules, "lint-unused-default", part="mutation")
    assert not file.warnings(rules, "lint-unused-weight", part="mutation")
    named = one.message.partition(": ")[2].split("; ")
    assert named == [
        "invariants[0]: threshold, similarity_threshold",
        "invariants[1]: threshold",
        "mutations.weights: paraphrase, custom",
    ]


@pytest.mark.parametrize("key", ["threshold: 0.7", "similarity_threshold: 0.8", "value: x", "patterns: [x]"])
def test_another_value_of_a_key_that_the_type_does_not_take_is_an_error(file, key):
    assert file.error(run_rules(f"{{type: latency, max_ms: 9, {key}}}"), part="mutation").code == "unknown-key"


@pytest.mark.parametrize("name", ["not_contains", "not_contains_any", "not_regex", "excludes"])
def test_a_negated_type_of_another_tool_is_answered_with_both_ways_to_write_it(file, name):
    error = file.error(run_rules(f"{{type: {name}, value: x}}"), part="mutation")
    assert error.code == "unknown-value"
    assert "excludes_pattern" in error.hint
    assert "negate: true" in error.hint


def test_rules_for_attacks_alone_are_warned_of_where_other_mutations_are_made(file):
    only = "{type: completes, dangerous_prompts: true}"
    assert len(file.warnings(run_rules(only, only), "lint-attacks-only", part="mutation")) == 1
    assert not file.warnings(run_rules(only, "{type: completes}"), "lint-attacks-only", part="mutation")
    attacks = run_rules(only).replace("[noise]", "[prompt_injection]")
    assert not file.warnings(attacks, "lint-attacks-only", part="mutation")
