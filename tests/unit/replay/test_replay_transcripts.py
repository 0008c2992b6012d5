"""Plain JSON lines, and files that are none of the formats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from replay_kit import read_json, read_text, told

from error_code import has_code
from golden_words import Golden
from holdfast.errors import UserError
from holdfast.model.task import DialogueMessage
from holdfast.replay import documents
from holdfast.replay.formats import import_file

CHAT = {
    "messages": [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi"},
        {"role": "user", "content": [{"type": "text", "text": "Refund order 7"}]},
        {"role": "assistant", "content": None,
         "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": '{"order": 7}'},
        {"role": "assistant", "content": "Done."},
    ]
}  # fmt: skip


def lines(*values: Any) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def test_the_last_question_of_a_transcript_is_asked_and_its_tools_answer_as_they_did(tmp_path: Path) -> None:
    (found,) = read_text(tmp_path, lines(CHAT), "chats.jsonl").sessions
    assert found.turns == ("Refund order 7",)
    assert found.context == (
        DialogueMessage("system", "Be kind."),
        DialogueMessage("user", "Hello"),
        DialogueMessage("assistant", "Hi"),
    )
    assert told(found.responses) == [("find", {"order": 7}, 200)]


def test_lines_without_ids_are_named_by_their_place(tmp_path: Path) -> None:
    found = read_text(
        tmp_path, lines(CHAT, {"input": "two", "output": "x"}, {"id": "own", "prompt": "three"}), "c.jsonl"
    )
    assert [one.id for one in found.sessions] == ["c-1", "c-2", "own"]
    assert [one.turns[0] for one in found.sessions] == ["Refund order 7", "two", "three"]


def test_an_id_that_comes_twice_gets_a_number(tmp_path: Path) -> None:
    found = read_text(tmp_path, lines({"id": "a", "input": "one"}, {"id": "a", "input": "two"}), "c.jsonl")
    assert [one.id for one in found.sessions] == ["a", "a-2"]


def test_a_line_that_is_damaged_deep_or_without_input_is_left_out_by_its_number(tmp_path: Path, golden: Golden) -> None:
    text = lines({"input": "one"}) + "{broken\n" + "[" * 100_000 + "\n" + lines({"output": "x"}, {"input": ""}, [1])
    found = read_text(tmp_path, text, "c.jsonl")
    assert [one.turns[0] for one in found.sessions] == ["one"]
    assert [one.name for one in found.left_out] == ["c.jsonl:2", "c.jsonl:3", "c.jsonl:4", "c.jsonl:5", "c.jsonl:6"]
    golden(found.left_out[0].why)
    assert "has no input" in found.left_out[2].why


def test_recorded_responses_of_our_own_keep_status_and_latency(tmp_path: Path) -> None:
    one = {"input": "q", "tool_responses": [{"tool": "t", "response": [1], "status": 503, "latency_ms": 20}]}
    (found,) = read_text(tmp_path, lines(one, one), "c.jsonl").sessions[:1]
    assert told(found.responses) == [("t", [1], 503)]
    assert found.responses[0].latency_ms == 20.0


def test_an_answer_too_deep_for_a_session_file_leaves_the_trace_out(tmp_path: Path) -> None:
    deep: Any = 1
    for _ in range(95):
        deep = [deep]
    one = {"id": "deep", "input": "q", "tool_responses": [{"tool": "t", "response": deep}]}
    found = read_text(tmp_path, lines(one, {"input": "fine"}), "c.jsonl")
    assert [left.name for left in found.left_out] == ["deep"]
    assert len(found.sessions) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("not json at all", "not readable as JSON"),
        ("[" * 200_000, "not readable as JSON|nested too deeply"),
        ("[]", "its format is none that is known"),
        ('{"a": 1}', "its format is none that is known"),
        ("7", "its format is none that is known"),
    ],
)
def test_a_file_that_is_none_of_the_formats_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        read_text(tmp_path, text, "x.json")


def test_another_format_than_the_one_that_was_said_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, check=has_code("trace-unreadable")):
        read_json(tmp_path, CHAT, format="otlp")


def test_a_document_that_is_too_large_is_refused_and_a_long_line_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "LARGEST", 200)
    big = {"input": "x" * 300}
    with pytest.raises(UserError, check=has_code("trace-unreadable")):
        read_json(tmp_path, big)
    found = read_text(tmp_path, lines({"input": "a"}, big, {"input": "b"}), "c.jsonl")
    assert [one.turns[0] for one in found.sessions] == ["a", "b"]
    assert [one.name for one in found.left_out] == ["c.jsonl:2"]


def test_a_file_that_is_not_there_is_the_users(tmp_path: Path) -> None:
    with pytest.raises(UserError, check=has_code("file-unusable")):
        import_file(tmp_path / "no.json", None)


RUN = '{"id": "r", "trace_id": "r", "run_type": "chain", "inputs": {"input": "How many?"}, "outputs": {"output": "3"}}'
ODD = '{"exported_by": "a tool", "version": 2}'
TALK = '{"messages": [{"role": "user", "content": "hello"}]}'


@pytest.mark.parametrize("lines", [(ODD, RUN, RUN), (TALK, RUN, RUN), (RUN, TALK, RUN), (RUN, RUN, ODD)])
def test_every_record_tells_the_format_and_the_line_that_does_not_fit_is_named(
    tmp_path: Path, lines: tuple[str, ...], golden: Golden
) -> None:
    file = tmp_path / "export.jsonl"
    file.write_text("\n".join(line.replace('"r"', f'"r{n}"') for n, line in enumerate(lines)))
    found = import_file(file, None)
    assert [one.id for one in found.sessions] == [f"r{n}" for n, line in enumerate(lines) if line == RUN]
    at = next(n for n, line in enumerate(lines, 1) if line != RUN)
    (left,) = found.left_out
    assert left.name == f"export.jsonl:{at}"
    golden(left.why)


def test_a_format_that_is_given_holds_where_any_record_has_it(tmp_path: Path) -> None:
    file = tmp_path / "export.jsonl"
    file.write_text(f"{ODD}\n{TALK}\n{RUN}\n")
    assert len(import_file(file, "langsmith").sessions) == 1
    with pytest.raises(UserError, check=has_code("trace-unreadable")):
        import_file(file, "otlp")


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "data:x"}},
        {"type": "input_audio", "input_audio": {}},
        {"type": "file", "file": {}},
        {"inline_data": {"mime_type": "image/png"}},
    ],
)
def test_a_question_with_a_picture_is_left_out_by_name(tmp_path: Path, part: dict[str, Any]) -> None:
    text = {"type": "text", "text": "What is this?"}
    seen = {"messages": [{"role": "user", "content": [text, part]}, {"role": "assistant", "content": "A cat."}]}
    before = {"messages": [{"role": "user", "content": [text, part]}, {"role": "user", "content": "And now?"}]}
    found = read_text(tmp_path, lines(seen, before, CHAT), "chats.jsonl")
    assert [one.turns for one in found.sessions] == [("Refund order 7",)]
    assert len(found.left_out) == 2
