"""Repeats, seeds, weights, aggregation, tasks and what a contract run wants."""

import pytest
from spec_texts import HTTP, MATRIX, RULES

from golden_words import Golden
from holdfast.spec import find_contract_problems

ALL = HTTP + RULES + MATRIX


@pytest.mark.parametrize("version", ["1", "1.0", '"1.0"', '"2.0"'])
def test_version_decides_nothing(file, version):
    assert file.spec(f"version: {version}\n" + ALL).invariants


def test_seed_precedence(file):
    assert file.spec(ALL).seed == 0
    assert file.spec(ALL + "advanced: {seed: 3}\n").seed == 3
    assert file.spec(ALL + "determinism: {seed: 4}\n").seed == 4
    assert file.spec(ALL + "advanced: {seed: 3}\ndeterminism: {seed: 3}\n").seed == 3
    assert file.spec(ALL + "advanced: {seed: 3}\n", seed=0).seed == 0


def test_replicas_in_both_spellings(file):
    assert file.spec(ALL).replicas == 1
    assert file.spec(ALL + "replicas: 3\n").replicas == 3
    assert file.spec(ALL + "parallelism: {replicas: 4}\n").replicas == 4
    assert file.spec(ALL + "replicas: 3\n", replicas=5).replicas == 5
    assert file.error(ALL + "replicas: 3\nparallelism: {replicas: 3}\n").code == "conflict"


def test_matrix_of_params_gives_every_combination_in_file_order(file):
    spec = file.spec(ALL + "parallelism: {matrix: {model: [a, b], n: [1, 2]}}\n")
    assert spec.params == tuple({"model": model, "n": n} for model in "ab" for n in (1, 2))


@pytest.mark.parametrize(
    ("scoring", "kind", "value"),
    [
        ("all", "all", None),
        ("any", "any", None),
        ("majority", "majority", None),
        ("{at_least: 2}", "at_least", 2),
        ("{rate: 0.8}", "rate", 0.8),
    ],
)
def test_replica_aggregation_forms(file, scoring, kind, value):
    spec = file.spec(ALL + f"replicas: 3\nscoring: {{replica_aggregation: {scoring}}}\n")
    assert (spec.scoring.replica_aggregation.kind, spec.scoring.replica_aggregation.value) == (kind, value)


@pytest.mark.parametrize("scoring", ["most", "{at_least: 0}", "{rate: 2}", "{atleast: 1}", "[all]", "3"])
def test_bad_aggregation_is_an_error(file, scoring):
    found = file.error(ALL + f"scoring: {{replica_aggregation: {scoring}}}\n")
    assert found.path.startswith("scoring.replica_aggregation")


def test_at_least_above_replicas_is_an_error(file, golden: Golden):
    text = ALL + "replicas: 3\nscoring: {replica_aggregation: {at_least: 4}}\n"
    golden(file.error(text).message)
    assert file.spec(text, replicas=4)


def test_mean_is_for_composites_only(file):
    assert "mean" in file.error(ALL + "scoring: {replica_aggregation: mean}\n").message
    scenario = "invariants:\n  m: {description: d, check: {type: completes}}\nscoring: {replica_aggregation: mean}\n"
    assert file.spec(HTTP + scenario)
    mutations = "invariants: [{type: completes}]\nscoring: {replica_aggregation: mean}\n"
    assert "mean" in file.error(HTTP + mutations, part="mutation").message


def test_rule_may_carry_its_own_aggregation(file):
    own = RULES.replace("value: Paris", "value: Paris, replica_aggregation: any")
    assert file.spec(HTTP + own + MATRIX).invariants[0].replica_aggregation.kind == "any"


@pytest.mark.parametrize("weights", ["{weights: {mutation: 0.3, chaos: 0.25}}", "{mutation: 0.3, chaos: 0.25}"])
def test_weights_nested_or_flat_with_missing_ones_at_their_defaults(file, weights):
    assert file.spec(ALL + f"scoring: {weights}\n")


@pytest.mark.parametrize("weights", ["{weights: {mutation: 0.3}}", "{mutation: 0.3}"])
def test_weights_must_sum_to_one(file, weights):
    found = file.error(ALL + f"scoring: {weights}\n")
    assert found.code == "bad-weights"
    assert "1.100" in found.message


def test_weights_within_a_thousandth_are_fine(file):
    assert file.spec(ALL + "scoring: {weights: {mutation: 0.201}}\n")
    assert file.error(ALL + "scoring: {weights: {mutation: 0.202}}\n").code == "bad-weights"


def test_contract_asks_golden_prompts_else_the_task(file):
    task = "task: {prompt: do it, turns: [and then, and last]}\n"
    assert [t.turns for t in file.spec(ALL + task).tasks] == [("What is the capital of France?",)]
    (only,) = file.spec("agent: {endpoint: 'http://x'}\n" + task + RULES + MATRIX).tasks
    assert (only.turns, only.kind) == (("do it", "and then", "and last"), "task")


def test_contract_needs_a_name_and_rules(file):
    assert [p.path for p in file.errors(HTTP + "contract: {}\n")] == ["contract.name", "contract.invariants"]


def test_requires_contract_names_what_is_missing(file):
    spec = file.spec("agent: {endpoint: 'http://x'}\n")
    assert [p.path for p in find_contract_problems(spec)] == ["contract.invariants", "chaos_matrix", "golden_prompts"]
    assert all(p.line == 1 for p in find_contract_problems(spec))
    assert find_contract_problems(file.spec(ALL)) == []


def test_run_list_is_not_a_contract(file):
    spec = file.spec(HTTP + MATRIX + "invariants:\n  - {type: completes}\n")
    assert [p.path for p in find_contract_problems(spec)] == ["contract.invariants"]


def test_output_section_is_kept(file):
    spec = file.spec(ALL + "output: {format: json, filename_template: 'r-{run}-{date}-{timestamp}'}\n")
    assert spec.output == {"format": "json", "path": "./reports", "filename_template": "r-{run}-{date}-{timestamp}"}


@pytest.mark.parametrize(("written", "declared"), [("", False), ("output:\n", False), ("output: {}\n", True)])
def test_an_output_section_without_keys_declares_no_report(file, written, declared):
    assert bool(file.spec(ALL + written).output) is declared


@pytest.mark.parametrize("name", ["{id}", "{}", "{Run}", "{run:03}"])
def test_an_unknown_placeholder_of_a_filename_is_an_error_with_the_known_ones(file, name):
    wrong = file.error(ALL + f"output: {{filename_template: 'r-{name}'}}\n")
    assert (wrong.path, wrong.message) == ("output.filename_template", f"unknown placeholder {name!r}")
    assert "{run}, {date}, {time}, {timestamp}" in wrong.hint


def test_name_and_description_come_from_the_contract_else_the_file(file):
    assert file.spec(ALL).name == "C"
    other = file.spec(HTTP + "id: my-case\ndescription: words\n")
    assert (other.name, other.description) == ("my-case", "words")


def test_sections_a_contract_does_not_need_are_validated_and_do_not_block(file):
    extra = """
model: {provider: ollama, name: qwen}
models: {paragon-fast: {provider: openai, name: gpt, api_key: "${KEY}"}}
mutations: {count: 5, types: [noise], weights: {noise: 2}, custom_templates: {x: "{prompt}!"}}
chaos: {llm_faults: [{mode: garbage}]}
replays:
  sessions: [{id: a, input: b, tool_responses: [{tool: t, status: 0}]}]
  sources: [{type: langsmith, project: p}]
invariants: [{type: completes}]
"""
    assert file.spec(ALL + extra, {"KEY": "key-of-mine"}).unbuilt == ()


@pytest.mark.parametrize(
    ("extra", "path"),
    [
        ("mutations: {types: [nois]}", "mutations.types[0]"),
        ("mutations: {weights: {nois: 1}}", "mutations.weights.nois"),
        ("chaos: {llm_faults: [{mode: nonsense}]}", "chaos.llm_faults[0].mode"),
        ("replays: {sessions: [{id: a}]}", "replays.sessions[0]"),
        ("replays: {sources: [{type: langsmith_run}]}", "replays.sources[0].run_id"),
        ("model: {provider: openia}", "model.provider"),
        ("output: {format: pdf}", "output.format"),
        ("advanced: {concurrency: 0}", "advanced.concurrency"),
        ("id: Not Kebab", "id"),
        ("advanced: {seed: 3}\ndeterminism: {seed: 4}", "advanced.seed"),
        ("scoring: {weights: {mutation: 0.2}, chaos: 0.35}", "scoring.chaos"),
        ("task: {}", "task.prompt"),
    ],
)
def test_sections_are_validated_to_the_last_key(file, extra, path):
    assert file.error(ALL + extra + "\n").path == path


def test_digest_is_of_the_bytes(file):
    assert file.spec(ALL).digest == file.spec(ALL).digest
    assert file.spec(ALL).digest != file.spec(ALL + "# more\n").digest


def test_spec_round_trips_through_the_codec(file):
    from holdfast.model.codec import create_decoder, encode
    from holdfast.model.spec import Spec

    text = ALL.replace("value: Paris", "value: Paris, probes: [a]") + "parallelism: {matrix: {m: [1]}}\n"
    spec = file.spec(text)
    assert create_decoder(Spec).decode(encode(spec)) == spec
