"""Plain JSON lines, and files that are none of the formats."""

from __future__ import annotations

import builtins
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from replay_kit import read_json, read_text, told

from error_code import has_code
from golden_words import Golden
from holdfast.errors import UserError
from holdfast.model.session import RecordedSession
from holdfast.model.task import DialogueMessage
from holdfast.replay import documents
from holdfast.replay.documents import read_archive
from holdfast.replay.foreign_trace import UNNAMED, build_session
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


def test_lines_are_read_one_by_one_whatever_the_file_is_called_and_a_damaged_first_one_ends_nothing(
    tmp_path: Path,
) -> None:
    line = json.dumps({"input": "Hello"})
    assert len(read_text(tmp_path, f"{line}\n{line}\n", name="traces.json").sessions) == 2
    found = read_text(tmp_path, f"{{]\n{line}\n", name="traces.jsonl")
    assert (len(found.sessions), len(found.left_out)) == (1, 1)


def test_a_trace_without_an_id_gets_one() -> None:
    found = build_session("", ["Hello"], (), name="", source="x", began=None, failure="")
    assert isinstance(found, RecordedSession)
    assert found.id == UNNAMED


def test_a_pair_that_is_not_a_message_is_no_crash(tmp_path: Path) -> None:
    found = read_json(tmp_path, {"input": [None, [[], None]]}, "one.jsonl", "jsonl")
    assert len(found.sessions) + len(found.left_out) == 1


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
        ("[]", "its format is unknown"),
        ('{"a": 1}', "its format is unknown"),
        ("7", "its format is unknown"),
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


# Logs of Inspect AI: a real one of its mock model, and archives that are none, too large, or too new.


REAL = Path(__file__).with_name("shop.eval")
"""Written by Inspect AI 0.3.285: two samples, one tool, which fails in the second."""
HEAD = {"version": 2, "status": "success", "eval": {"task": "desk", "model": "mockllm/model"}}


def sample(id: Any = 1, **more: Any) -> dict[str, Any]:
    return {"id": id, "epoch": 1, "input": "Where is order 7?", "messages": [], "events": [], **more}


def packed(path: Path, *samples: dict[str, Any], head: Any = HEAD, **files: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(head))
        for one in samples:
            archive.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def test_a_real_log_becomes_a_session_for_each_sample() -> None:
    found = import_file(REAL, None)
    first, second = found.sessions
    assert (first.id, first.name, first.source) == ("shop-anvils", "shop", "inspect")
    assert first.turns == ("How many anvils are left?",)
    assert [(one.tool, one.response, one.status) for one in first.responses] == [("stock", '"12 left"', 200)]
    assert first.expected_failure == ""
    assert second.turns == ("Hello", "How many rockets are left?")
    assert [one.status for one in second.responses] == [0]
    assert second.expected_failure.startswith("includes: I: ")


def test_json_and_archive_say_the_same(tmp_path: Path) -> None:
    samples = [log.value["samples"][0] for log in read_archive(REAL)]
    log = tmp_path / "log.json"
    log.write_text(json.dumps({**HEAD, "eval": {"task": "shop"}, "samples": samples}))
    assert import_file(log, "inspect").sessions == import_file(REAL, None).sessions


def test_epochs_attachments_and_errors(tmp_path: Path) -> None:
    long = sample(input="attachment://abc", attachments={"abc": "A long question?"}, error={"message": "it broke"})
    found = import_file(packed(tmp_path / "a.eval", long, sample(epoch=2)), None)
    assert [one.id for one in found.sessions] == ["desk-1", "desk-1-epoch-2"]
    assert found.sessions[0].turns == ("A long question?",)
    assert found.sessions[0].expected_failure == "it broke"


def test_a_sample_without_input_is_left_out_by_name(tmp_path: Path) -> None:
    found = import_file(packed(tmp_path / "a.eval", sample(input="", id="mute"), sample()), None)
    assert [one.id for one in found.sessions] == ["desk-1"]
    assert [(one.name, "no input" in one.why) for one in found.left_out] == [("desk-mute", True)]


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ({**HEAD, "version": 3}, "a log of format 3, and 2 is the latest version that Holdfast knows"),
        ({"version": 2}, "its format is unknown"),
        ([], "not a JSON object"),
    ],
)
def test_a_log_that_cannot_be_read_says_why(tmp_path: Path, head: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        import_file(packed(tmp_path / "a.eval", sample(), head=head), None)


def test_an_archive_that_is_not_a_log_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.eval", "w") as archive:
        archive.writestr("../../etc/passwd", "x")
    with pytest.raises(UserError, check=has_code("trace-unreadable")):
        import_file(tmp_path / "a.eval", None)
    (tmp_path / "b.eval").write_bytes(b"PK\x03\x04" + b"x" * 100)
    with pytest.raises(UserError, check=has_code("trace-unreadable")):
        import_file(tmp_path / "b.eval", None)


def test_names_that_climb_are_not_read(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.eval", sample(), **{"samples/../../evil.json": "{}", "/samples/x.json": "{}"})
    assert [one.id for one in import_file(path, None).sessions] == ["desk-1"]
    assert [one.name for one in tmp_path.iterdir()] == ["a.eval"]
    assert [one.name for one in import_file(path, None).left_out] == ["samples/../../evil.json"]


def test_an_id_with_a_slash_is_a_sample_like_others(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.eval", sample("django/1"), sample("flask/deep/2"))
    assert len(list(read_archive(path))) == 2
    with pytest.raises(UserError, check=has_code("trace-unreadable")):
        list(read_archive(packed(tmp_path / "b.eval")))


def test_a_bomb_is_left_out_before_it_goes_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    monkeypatch.setattr(documents, "LARGEST_SAMPLE", 100_000)
    bomb = sample(id="bomb", input="0" * 1_000_000)
    found = import_file(packed(tmp_path / "a.eval", bomb, sample()), None)
    assert [one.id for one in found.sessions] == ["desk-1"]
    golden(found.left_out[0].why)
    monkeypatch.setattr(documents, "LARGEST_ARCHIVE", 500_000)
    with pytest.raises(UserError, check=has_code("trace-unreadable")):
        import_file(tmp_path / "a.eval", None)


def test_without_a_reader_of_zstd_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = builtins.__import__

    def lacking(name: str, *rest: Any) -> Any:
        if name in ("zstandard", "compression"):
            raise ImportError(name)
        return found(name, *rest)

    monkeypatch.setattr(builtins, "__import__", lacking)
    with pytest.raises(UserError, check=has_code("file-unusable")) as refused:
        list(read_archive(REAL))
    assert "inspect log dump" in refused.value.hint
