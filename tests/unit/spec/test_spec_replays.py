"""Session files and the `replays:` section: what they mean, and every error with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import SpecError
from holdfast.model.session import RecordedSession, SessionSource
from holdfast.model.task import DialogueMessage, RecordedResponse
from holdfast.spec import LoadOptions, check
from holdfast.spec.rules.replays import read_contract, read_sessions
from holdfast.spec.sections.run import parse_range

SPEC = """\
agent: {type: python, endpoint: "agent:ask"}
golden_prompts: [hello]
contract:
  name: Shop
  invariants: [{id: a, type: completes, description: d}]
  chaos_matrix: [{name: calm}]
"""


def read(tmp_path: Path, text: str, name: str = "s.yaml") -> tuple[RecordedSession, ...]:
    (tmp_path / name).write_text(text)
    return read_sessions(tmp_path / name, name)


def problems(tmp_path: Path, text: str) -> list[tuple[str, int, int]]:
    with pytest.raises(SpecError) as refused:
        read(tmp_path, text)
    return [(one.path, one.line, one.column) for one in refused.value.problems]


def section(tmp_path: Path, replays: str) -> list[tuple[str, str, int]]:
    (tmp_path / "agent.py").write_text("def ask(prompt): return prompt")
    (tmp_path / "spec.yaml").write_text(SPEC + replays)
    found = check(tmp_path / "spec.yaml", environ={}, options=LoadOptions(part="replay")).problems
    return [(one.path, one.code, one.line) for one in found if one.severity == "error"]


def test_every_key_of_a_session_is_read(tmp_path: Path) -> None:
    text = """\
id: incident-42
name: The double refund
source: langsmith
captured_at: 2026-11-10T12:00:00Z
input: Refund order 7
context:
  - {role: assistant, content: How can I help?}
  - I bought a kettle
tool_responses:
  - {tool: find, response: {order: 7}, latency_ms: 20}
  - {tool: refund, status: 0}
expected_failure: refunded twice
contract: Shop
"""
    (found,) = read(tmp_path, text)
    assert found == RecordedSession(
        id="incident-42",
        turns=("Refund order 7",),
        name="The double refund",
        source="langsmith",
        captured_at="2026-11-10T12:00:00Z",
        context=(DialogueMessage("assistant", "How can I help?"), DialogueMessage("user", "I bought a kettle")),
        responses=(RecordedResponse("find", '{"order":7}', 200, 20.0), RecordedResponse("refund", "null", 0)),
        expected_failure="refunded twice",
        contract="Shop",
        file="s.yaml",
        line=1,
    )


@pytest.mark.parametrize(
    "text",
    [
        '[{"id": "a", "input": "x"}, {"id": "b", "input": "y"}]',
        '{"sessions": [{"id": "a", "input": "x"}, {"id": "b", "input": "y"}]}',
        "sessions:\n- {id: a, input: x}\n- {id: b, input: y}\n",
    ],
)
def test_a_file_may_hold_several_in_yaml_or_json(tmp_path: Path, text: str) -> None:
    assert [(one.id, one.turns) for one in read(tmp_path, text)] == [("a", ("x",)), ("b", ("y",))]


def test_what_the_user_says_at_the_end_of_the_input_is_asked_the_rest_was_before(tmp_path: Path) -> None:
    (found,) = read(tmp_path, "id: a\ninput: [one, {role: assistant, content: two}, three, four]\ncontext: [zero]\n")
    assert found.turns == ("three", "four")
    assert [one.content for one in found.context] == ["zero", "one", "two"]


def test_every_error_of_a_file_is_reported_with_its_place(tmp_path: Path) -> None:
    text = """\
- id: a
  inptu: hello
- id: a
  input: [{role: robot, content: x}]
  tool_responses: [{response: 1}, {tool: t, status: 600}]
- id: b
  input: [{role: assistant, content: x}]
- {id: c, file: other.yaml}
"""
    assert problems(tmp_path, text) == [
        ("[0].input", 1, 3),
        ("[0].inptu", 2, 3),
        ("[1].id", 3, 7),
        ("[1].input[0].role", 4, 18),
        ("[1].tool_responses[0].tool", 5, 20),
        ("[1].tool_responses[1].status", 5, 53),
        ("[2].input", 7, 10),
        ("[3].file", 8, 11),
    ]


@pytest.mark.parametrize("text", ["[]", "sessions: []", "just text", "sessions: 7", "", "a: [", "&a [*a]"])
def test_a_file_without_sessions_is_refused(tmp_path: Path, text: str) -> None:
    assert problems(tmp_path, text)


def test_the_section_is_a_value_of_the_spec(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("id: a\ninput: x\n")
    replays = """\
replays:
  sessions:
    - file: s.yaml
    - {id: b, input: y}
  sources:
    - {type: langsmith, project: support, filter: {status: all, date_range: last_24_hours, min_latency_ms: 5}}
    - {type: langsmith_run, run_id: abc, auto_import: true}
"""
    assert section(tmp_path, replays) == []
    spec = check(tmp_path / "spec.yaml", environ={}).spec
    assert spec is not None
    assert spec.replays is not None
    first, second = spec.replays.sessions
    assert first == "s.yaml"
    assert isinstance(second, RecordedSession)
    assert (second.id, second.line) == ("b", 10)
    assert spec.replays.sources == (
        SessionSource("support", "", "all", "last_24_hours", 5.0),
        SessionSource(run="abc", auto_import=True),
    )


def test_a_session_file_that_cannot_be_used_is_an_error_of_the_spec(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("id: a\ninptu: x\n")
    found = section(tmp_path, "replays:\n  sessions:\n    - file: s.yaml\n    - file: gone.yaml\n")
    assert found == [
        ("replays.sessions[0].file", "bad-session", 9),
        ("replays.sessions[1].file", "missing-file", 10),
    ]


@pytest.mark.parametrize(
    ("replays", "path"),
    [
        ("{sessions: [{name: x}]}", "replays.sessions[0]"),
        ("{sessions: [{id: a}]}", "replays.sessions[0]"),
        ("{sessions: [{id: a, input: x}, {id: a, input: y}]}", "replays.sessions[1].id"),
        ("{sessions: [{file: agent.py, id: x}]}", "replays.sessions[0].id"),
        ("{sources: [{type: langsmith}]}", "replays.sources[0].project"),
        ("{sources: [{type: langsmith_run}]}", "replays.sources[0].run_id"),
        (
            "{sources: [{type: langsmith, project: p, filter: {date_range: lately}}]}",
            "replays.sources[0].filter.date_range",
        ),
    ],
)  # fmt: skip
def test_what_the_section_lacks_is_reported(tmp_path: Path, replays: str, path: str) -> None:
    assert path in [where for where, _, _ in section(tmp_path, f"replays: {replays}\n")]


def test_of_a_contract_its_rules_are_read_and_not_its_matrix(tmp_path: Path) -> None:
    path = tmp_path / "other.yaml"
    path.write_text("contract:\n  name: Other\n  invariants: [{id: r, type: completes}]\n  chaos_matrix: [{nme: 1}]\n")
    found = read_contract(path)
    assert (found.name, [rule.id for rule in found.rules]) == ("Other", ["r"])


@pytest.mark.parametrize(
    "text",
    ["agent: 7\n", "contract: {name: x}\n", "contract: {name: x, invariants: [{id: a, type: nope}]}\n",
     "contract: {name: x, invariants: [{id: a, type: completes}, {id: a, type: completes}]}\n"],
)  # fmt: skip
def test_a_file_without_a_usable_contract_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "other.yaml").write_text(text)
    with pytest.raises(SpecError):
        read_contract(tmp_path / "other.yaml")


def test_how_far_back_a_range_goes() -> None:
    assert parse_range("last_7_days") == 7 * 86_400
    assert parse_range("last_1_hour") == 3600
    assert parse_range("all") is None
    with pytest.raises(ValueError, match="expected last_7_days"):
        parse_range("yesterday")
