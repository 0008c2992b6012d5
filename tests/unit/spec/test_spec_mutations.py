"""The mutations of a file: defaults, and all that is wrong with them, at its place."""

from __future__ import annotations

import pytest

from holdfast.model import mutation
from holdfast.model.codec import create_decoder, encode
from holdfast.model.model_spec import ModelSpec
from holdfast.model.spec import Problem
from holdfast.reading.reader import Reader
from holdfast.reading.tree import parse
from holdfast.spec.rules.mutations import build_mutations
from holdfast.spec.sections.file import File

HTTP = 'agent: {endpoint: "http://localhost:8000/ask"}\ngolden_prompts: ["Hi"]\n'
PYTHON = 'agent: {type: python, endpoint: "m:f"}\ngolden_prompts: ["Hi"]\n'
MODEL = "model: {name: llama3}\n"


def read(text: str) -> tuple[mutation.MutationSpec, list[Problem]]:
    root, problems = parse(text)
    assert root is not None
    assert not problems
    reader = Reader()
    file = reader.read_section(File, root)
    assert isinstance(file, File)
    return build_mutations(reader, file), reader.problems


def only(text: str) -> Problem:
    (problem,) = read(text)[1]
    return problem


def test_a_file_without_a_section_has_the_defaults() -> None:
    made, problems = read(HTTP)
    assert problems == []
    assert made == mutation.MutationSpec()
    assert (made.count, made.types, made.listed) == (10, mutation.DEFAULT_MUTATIONS, False)
    assert made.weights == mutation.MUTATION_WEIGHTS


def test_the_tables_name_the_documented_types() -> None:
    assert len(mutation.MUTATIONS) == len(set(mutation.MUTATIONS)) == 24
    assert set(mutation.MUTATION_WEIGHTS) == set(mutation.MUTATIONS)
    assert len(mutation.REQUEST_MUTATIONS) == 9
    assert len(mutation.INTENT_KEPT) == 8
    assert set(mutation.MUTATIONS) > mutation.MODEL_MUTATIONS
    assert (mutation.MUTATION_WEIGHTS["advanced_jailbreak"], mutation.MUTATION_WEIGHTS["noise"]) == (2.0, 0.8)


def test_what_the_file_says_lies_over_the_defaults_and_can_be_stored() -> None:
    made, problems = read(
        HTTP + MODEL + "mutations:\n  count: 4\n  types: [noise, custom]\n  weights: {noise: 3}\n"
        '  custom_templates: {polite: "Please: {prompt}"}\n'
    )
    assert problems == []
    assert (made.count, made.types, made.listed) == (4, ("noise", "custom"), True)
    assert made.weights == {**mutation.MUTATION_WEIGHTS, "noise": 3.0}
    assert made.custom_templates == {"polite": "Please: {prompt}"}
    assert made.model == ModelSpec(provider="ollama", name="llama3", temperature=0.8)
    assert create_decoder(mutation.MutationSpec).decode(encode(made)) == made


def test_a_model_that_models_knows_is_that_entry() -> None:
    made, problems = read(HTTP + "model: {name: pen}\nmodels: {pen: {script: pen.yaml}}\n")
    assert problems == []
    assert made.model == ModelSpec(provider="script", name="pen", script="pen.yaml", temperature=0.8)
    own, _ = read(HTTP + "model: {name: pen, provider: openai}\nmodels: {pen: {script: pen.yaml}}\n")
    assert own.model == ModelSpec(provider="openai", name="pen", temperature=0.8)


@pytest.mark.parametrize(
    ("text", "path", "line", "code"),
    [
        (HTTP + "mutations: {types: [noise, paraphrase]}", "mutations.types[1]", 3, "no-model"),
        (PYTHON + "mutations: {types: [payload_size_attack]}", "mutations.types[0]", 3, "conflict"),
        (HTTP + "mutations: {types: [custom]}", "mutations.types[0]", 3, "missing-key"),
        (HTTP + "mutations:\n  types: [custom]\n  custom_templates: {a: no place}", "mutations.custom_templates.a", 5,
         "bad-value"),
        (HTTP + "mutations:\n  types: [custom]\n  custom_templates: {a: '{prompt}'}", "mutations.custom_templates.a", 5,
         "bad-value"),
        (HTTP + "mutations:\n  types: [noise]\n  weights: {noise: 0}", "mutations.weights", 5, "bad-weights"),
        (HTTP + "model: {provider: openai}\nmutations: {types: [tone_shift]}", "model.name", 3, "missing-key"),
        (HTTP + "model: {name: m, base_url: nowhere}", "model.base_url", 3, "bad-value"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_an_error_at_its_place(text: str, path: str, line: int, code: str) -> None:
    problem = only(text)
    assert (problem.severity, problem.path, problem.line, problem.code) == ("error", path, line, code)


@pytest.mark.parametrize(
    ("text", "path", "code"),
    [
        (HTTP + "mutations: {types: [noise], weights: {custom: 2}}", "mutations.weights.custom", "lint-unused-weight"),
        (HTTP + "mutations: {types: [noise, noise]}", "mutations.types[1]", "lint-repeated-type"),
        (HTTP + "invariants: [{type: contains, value: x}]\nmodel: {provider: openai}", "model", "lint-nameless-model"),
        (HTTP + 'mutations: {custom_templates: {a: "x {prompt}"}}', "mutations.custom_templates",
         "lint-unused-templates"),
    ],
)  # fmt: skip
def test_what_means_nothing_is_warned_of(text: str, path: str, code: str) -> None:
    problem = only(text)
    assert (problem.severity, problem.path, problem.code) == ("warning", path, code)


def test_a_model_without_a_name_that_nobody_asks_is_none() -> None:
    made, problems = read(HTTP + "model: {provider: openai, api_key: '${KEY}'}\nmutations: {types: [noise]}\n")
    assert (made.model, problems) == (None, [])


def test_a_type_that_is_listed_twice_is_taken_once() -> None:
    assert read(HTTP + "mutations: {types: [noise, noise]}")[0].types == ("noise",)


def test_request_types_are_fine_with_an_http_agent_and_written_ones_with_a_model() -> None:
    types = "mutations: {types: [payload_size_attack, paraphrase]}"
    assert read(HTTP + MODEL + types)[1] == []


def test_a_model_of_ollama_without_a_name_has_the_default_of_the_format() -> None:
    listed = HTTP + "mutations: {types: [paraphrase]}\n"
    for text in ("model: {temperature: 1.2}\n", "model: {provider: ollama}\n"):
        made, problems = read(listed + text)
        assert not problems
        assert made.model is not None
        assert (made.model.provider, made.model.name) == ("ollama", "qwen3:8b")
    assert only(listed + "model: {provider: google}\n").path == "model.name"
