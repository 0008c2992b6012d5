"""A `${VAR}` in a text that keeps it, such as a prompt."""

from __future__ import annotations

from typing import Any

import pytest

SPEC = """
agent: {type: python, endpoint: "agent:ask", env: {A: "${SET}"}}
golden_prompts:
  - "PROMPT"
  - "other"
contract:
  name: c
  invariants:
    - {id: a, type: contains, value: "VALUE", probes: ["PROBE"]}
  chaos_matrix: [{name: calm}]
"""
PLAIN = {"PROMPT": "plain", "VALUE": "plain", "PROBE": "plain"}


def written(texts: dict[str, str]) -> str:
    spec = SPEC
    for word, text in (PLAIN | texts).items():
        spec = spec.replace(word, text)
    return spec


@pytest.mark.parametrize(
    ("texts", "keys"),
    [
        ({"PROMPT": "What does ${NOPE} cost?"}, ("golden_prompts[0]",)),
        ({"PROMPT": "${NOPE:-x}"}, ("golden_prompts[0]",)),
        ({"VALUE": "${NOPE}"}, ("contract.invariants[0].value",)),
        ({"PROBE": "${NOPE}"}, ("contract.invariants[0].probes[0]",)),
        ({"PROMPT": "${NOPE}", "PROBE": "${SET}"}, ("golden_prompts[0]", "contract.invariants[0].probes[0]")),
    ],
)
def test_one_warning_names_every_key(file: Any, texts: dict[str, str], keys: tuple[str, ...]) -> None:
    (found,) = file.warnings(written(texts), "lint-unfilled-variable")
    assert (found.path, found.values) == (keys[0], keys)
    assert found.line > 0


@pytest.mark.parametrize(
    ("rule", "key"),
    [
        ("type: excludes_pattern, patterns: ['${NOPE}']", "patterns[0]"),
        ("type: regex, pattern: 'costs ${NOPE}'", "pattern"),
    ],
)
def test_a_pattern_with_a_reference_cannot_match_what_is_meant(file: Any, rule: str, key: str) -> None:
    spec = written({}).replace('type: contains, value: "plain"', rule)
    (found,) = file.warnings(spec, "lint-unfilled-variable")
    assert found.values == (f"contract.invariants[0].{key}",)
    assert not file.warnings(spec.replace("${N", r"\${N"), "lint-unfilled-variable")


@pytest.mark.parametrize("text", ["$5", "$HOME", "{NOPE}", "${{ x }}", "${not a name}", "costs ${"])
def test_other_dollars_are_text(file: Any, text: str) -> None:
    assert not file.warnings(written({"PROMPT": text}), "lint-unfilled-variable")
