"""The JSON Schema and the reference page, made from the same types as the reader."""

from __future__ import annotations

import ast
import json
from collections import defaultdict
from pathlib import Path
from typing import Annotated

import jsonschema_rs
import pytest
from msgspec import Struct
from spec_texts import HTTP, MATRIX, RULES

import holdfast
from holdfast.reading.fields import about, get_keys
from holdfast.reading.tree import parse
from holdfast.spec import check, json_schema
from holdfast.spec.catalogue.schema import build_properties
from holdfast.spec.rules.fault_entry import FAMILIES
from holdfast.spec.sections.file import File
from reference import build_reference

REPO = Path(__file__).parents[3]
WRITTEN = [
    path
    for folder in ("examples", "src/holdfast/starter", "src/holdfast/demo")
    for path in sorted((REPO / folder).rglob("*.yaml"))
    if path.name not in ("model.yaml", "recipe.yaml", "judge.yaml") and path.parent.name != "replays"
]
"""The specs of the repository."""


@pytest.fixture(scope="module")
def schema():
    return json_schema()


@pytest.fixture(scope="module")
def validator(schema):
    return jsonschema_rs.validator_for(schema)


def valid(validator, text):
    return validator.is_valid(parse(text)[0].to_plain())


def test_schema_is_2020_12_and_closed(schema):
    assert schema["$schema"].endswith("2020-12/schema")
    jsonschema_rs.Draft202012Validator(schema)
    assert schema["additionalProperties"] is False
    assert schema["properties"]["agent"]["description"]


@pytest.mark.parametrize(
    "text",
    [
        HTTP + RULES + MATRIX,
        HTTP + "invariants:\n  a: {check: {type: regex, pattern: x}}\n",
        HTTP + "chaos: {context_attacks: {memory_poisoning: {payload: x}, overflow: }}\n",
        HTTP + "secrets: [A, {name: B, from: generated}]\n",
        "agent: {endpoint: x, timeout: 5m, llm: 'a:b', tools: ['a:b', {callable: 'c:d'}]}\n",
        HTTP + "replicas: ${N}\nresources: {cpu: '${CPU:-2}', memory: '${MEM}'}\n",
        HTTP + "services: [{name: a, type: http_mock, ports: ['${PORT}']}]\n",
        "agent: {endpoint: x, timeout: '${T}', method: '${M}', keep_alive: '${K}'}\n",
    ],
)
def test_schema_accepts_what_loads(validator, text):
    assert valid(validator, text)


@pytest.mark.parametrize(
    "text",
    [
        "golden_prompts: [x]",
        HTTP + "scorng: {}",
        HTTP + "scoring: {min_score: 101}",
        HTTP + "contract: {name: C, invariants: [{id: a, type: regex}]}",
        HTTP + "contract: {name: C, invariants: [{id: a, type: regex, pattern: x, max_ms: 4}]}",
        HTTP + "chaos_matrix: [{name: a, tool_faults: [{tool: t, mode: nonsense}]}]",
        HTTP + "chaos_matrix: [{name: a, tool_faults: [{mode: error}]}]",
        HTTP + "mutations: {weights: {nois: 1}}",
        HTTP + "replicas: many\n",
        "agent: {endpoint: x, type: '${T}'}\n",  # a type is not a variable
    ],
)
def test_schema_refuses_what_does_not_load(validator, text):
    assert not valid(validator, text)


def test_schema_accepts_every_spec_of_the_repository(validator):
    assert len(WRITTEN) > 30
    wrong = {
        str(path): [error.message for error in validator.iter_errors(parse(path.read_text())[0].to_plain())]
        for path in WRITTEN
    }
    assert {path: errors for path, errors in wrong.items() if errors} == {}


def test_the_published_schema_is_the_one_of_this_version(schema):
    published = (REPO / "docs/holdfast.schema.json").read_text()
    assert json.loads(published) == schema, "write it anew: make docs"
    assert schema["$id"] == "urn:holdfast:spec"


def test_every_key_of_the_schema_has_words(schema):
    """What an editor shows of a key that the cursor is on; a reference is as good as what it leads to."""
    bare = [
        f"{name}.{key}"
        for name, section in [("", schema), *schema["$defs"].items()]
        for variant in (section, *section.get("anyOf", ()))
        for key, value in variant.get("properties", {}).items()
        if "description" not in value and "$ref" not in value
    ]
    assert bare == []


def test_schema_says_defaults_ranges_and_enums(schema):
    agent = schema["$defs"]["AgentSection"]["properties"]
    assert agent["method"]["default"] == "POST"
    assert "worker" in agent["isolation"]["anyOf"][0]["enum"]
    assert schema["properties"]["replicas"]["anyOf"][0]["minimum"] == 1


def test_reference_has_every_section():
    page = build_reference()
    for section in ("agent", "contract", "chaos_matrix[]", "scoring.weights", "services[].routes[]", *FAMILIES):
        assert f"### `{section}`" in page


def test_reference_has_every_key_of_a_fault_once():
    faults = build_reference().partition("\n## Faults\n")[2]
    on_calls = [family for family in FAMILIES.values() if family.name != "world_faults"]
    for key in ("probability", "match"):
        assert faults.count(f"| `{key}` |") == 1
        assert all(key in [field.key for field in get_keys(family.keys)] for family in on_calls)
    assert faults.count("| `raises` |") == 2


def test_reference_rows_give_type_default_and_words():
    row = "| `retries` | a whole number, 0 to 100 | `2` | Retries after a harness error. |"
    assert row in build_reference()


def test_every_key_has_words():
    rows = [line.replace("\\|", "").split("|") for line in build_reference().splitlines() if line.startswith("| `")]
    keys = [row for row in rows if len(row) == 6]
    assert len(keys) > 150
    assert [row for row in keys if row[4].strip() == ""] == []


def test_words_inside_of_an_optional_type_are_the_key_s_words():
    class Odd(Struct, frozen=True):
        inner: Annotated[dict[str, int], about("What it counts.")] | None = None
        outer: Annotated[dict[str, int] | None, about("What it weighs.")] = None

    assert [field.hint.description for field in get_keys(Odd)] == ["What it counts.", "What it weighs."]
    assert [one["description"] for one in build_properties(Odd).values()] == ["What it counts.", "What it weighs."]


# No key of the spec file is accepted and ignored: something outside its section reads every one of them.


SOURCE = Path(holdfast.__file__).parent
SECTIONS = SOURCE / "spec" / "sections"


def keys() -> list[tuple[Path, str, str]]:
    """File, class and field of every key of a section; `forms.py` reads the keys that it declares itself."""
    return [
        (path, node.name, field.target.id)
        for path in SECTIONS.glob("*.py")
        if path.stem != "forms"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        for field in node.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and field.target.id != "at"
    ]


def reads() -> dict[str, set[Path]]:
    """The files that read an attribute or an item of that name, without the pages that only describe the keys."""
    found: dict[str, set[Path]] = defaultdict(set)
    for path in SOURCE.rglob("*.py"):
        if "catalogue" not in path.parts:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                    found[node.attr].add(path)
                elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                    found[str(node.slice.value)].add(path)
    return found


@pytest.mark.slow
def test_every_key_is_read_outside_its_section() -> None:
    known, readers = keys(), reads()
    assert len(known) > 150
    assert [(owner, name) for path, owner, name in known if not readers[name] - {path}] == []


def test_a_section_with_defaults_may_be_written_without_keys(tmp_path: Path) -> None:
    path = tmp_path / "holdfast.yaml"
    names = [field.key for field in get_keys(File) if field.is_section]
    assert {"advanced", "network", "scoring"} <= set(names)
    path.write_text("agent: {endpoint: 'http://localhost:1'}\n" + "".join(f"{name}:\n" for name in names))
    errors = [one for one in check(path, environ={}).problems if one.severity == "error"]
    assert [one for one in errors if one.path in names] == []
