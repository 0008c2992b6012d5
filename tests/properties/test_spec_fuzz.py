"""No text, however mangled, gives a traceback; every problem has a place that exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from example_counts import examples
from holdfast.reading.tree import BREAK
from holdfast.spec import check
from holdfast.spec.explain import explain

SPEC = r"""
version: "2.0"
id: a-case
agent:
  type: python
  endpoint: "bot:ask"
  tools: ["bot:search", {name: mail, callable: "bot:send"}]
  llm: bot:model
  env: {AUTHORIZATION: "Bearer ${TOKEN}"}
  timeout: 30s
golden_prompts: ["What is ${X}?", "{{ params.m }}"]
task: {prompt: a, turns: [b]}
replicas: 3
parallelism: {matrix: {m: [1, two]}}
contract: &c
  name: C
  isolation: cell
  invariants:
    - {id: a, type: regex, pattern: '\\d+', severity: critical, when: always, negate: true, probes: [x]}
    - {id: b, check: {type: similarity, expected: x, threshold: 0.8}, replica_aggregation: {at_least: 2}}
    - {id: c, type: valid_json, schema: {type: object}, path: $.a}
    - {id: d, type: excludes_pii, entities: [email], allow: [a@b.c]}
    - {id: e, type: behavior_unchanged, baseline: auto}
  chaos_matrix:
    - name: no-chaos
    - name: s
      profile: api_outage
      tool_faults: [{tool: sear*, mode: schema_drift, probability: 0.5, match: {q: x}}, {tool: mail, mode: flapping}]
      llm_faults: [{mode: response_drift, drift_type: tone_shift, after_calls: 1}]
      context_attacks: {memory_poisoning: {payload: x}, indirect_injection: }
      world_faults: [{mode: disk_full, after_ms: 5}]
invariants:
  m: {description: d, weight: 0.5, gate: true, check: {type: file_content, path: a, pattern: b}}
  n: {check: {type: http_mock_assertions, service: smtp, assertions: [{field: request_count, equals: 1}]}}
services: [{name: smtp, type: http_mock, record: true, routes: [{path: /, status: 200}]}]
secrets: [A, {name: B, from: generated}]
resources: {disk: 1Mi}
scoring: {weights: {mutation: 0.2}, min_score: 80, replica_aggregation: majority}
output: {format: html}
advanced: {seed: 7, concurrency: 4}
replays: {sessions: [{id: a, input: b}]}
"""
LOADED = yaml.safe_load(SPEC)
TOKENS = re.findall(r"\w+|\s+|[^\w\s]", SPEC)
JUNK = [
    *("{", "}", "[", "]", ":", "- ", "\n", "  ", "&c ", "*c", "<<: *c", "null", "~", "-1", "1e999", ".nan", "true"),
    *("'", '"', "!!int ", "!x ", "|\n", "? ", "\t", "\x00", "\x85", "\u2028", "${", "}}", "9" * 500, "0x", "%", "#"),
]

edits = st.lists(
    st.tuples(
        st.sampled_from(["drop", "swap", "put", "twice"]),
        st.integers(0, len(TOKENS) - 1),
        st.integers(0, len(TOKENS) - 1),
        st.sampled_from([*JUNK, "regex", "tool_faults", "agent", "check", "mode", "name", "[]", "{}", "5", "x"]),
    ),
    min_size=1,
    max_size=6,
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "bot.py").write_text("def ask(p): return p\ndef search(q): return q\ndef send(x): ...\n")
    return folder / "spec.yaml"


def mangled(changes: list[tuple[str, int, int, str]]) -> str:
    tokens = list(TOKENS)
    for how, at, other, junk in changes:
        if how == "drop":
            tokens[at] = ""
        elif how == "swap":
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif how == "twice":
            tokens[at] += tokens[other]
        else:
            tokens[at] = junk
    return "".join(tokens)


def holds(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    checked = check(path, environ={})
    assert (checked.spec is None) == any(p.severity == "error" for p in checked.problems)
    lines = len(re.split(BREAK, checked.source))
    for problem in checked.problems:
        assert problem.message
        assert 0 <= problem.line <= lines
    text = explain("spec.yaml", checked.source, checked.problems)
    assert "\x1b" not in text
    text.encode()


def test_the_spec_that_is_mangled_loads(path: Path) -> None:
    path.write_text(SPEC)
    checked = check(path, environ={})
    assert checked.spec is not None, explain("spec.yaml", checked.source, checked.problems)


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=edits)
def test_mangled_specs_never_give_a_traceback(path: Path, changes: list[tuple[str, int, int, str]]) -> None:
    holds(path, mangled(changes).encode())


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(exclude_categories=("Cs",)), max_size=200))
@example("a: &a [*a]")
@example("agent: \x1b[31m")
@example("? {a: b}\n: c")
def test_random_text_never_gives_a_traceback(path: Path, text: str) -> None:
    holds(path, text.encode())


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200))
def test_random_bytes_never_give_a_traceback(path: Path, data: bytes) -> None:
    holds(path, data)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
KEYS = [line.split(":")[0] for line in SPEC.splitlines() if line and not line.startswith(" ")]


@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(section=st.sampled_from(KEYS), value=values)
def test_any_value_in_any_section_never_gives_a_traceback(path: Path, section: str, value: object) -> None:
    holds(path, yaml.safe_dump({**LOADED, section: value}, allow_unicode=True).encode())
