"""A recording: what is kept of a reply, and how it is answered from."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from upstream_kit import called, chat, message, query, read, script

from golden_words import Golden
from holdfast.errors import UserError
from holdfast.planes.llm.codecs.openai_chat import OpenAIChat
from holdfast.planes.llm.sources.cassette import (
    Cassette,
    NotRecorded,
    PrefixSource,
    compute_key,
    decode_chunks,
    mask_chunks,
)
from holdfast.planes.llm.sources.router import RecordedSource, Recorder
from holdfast.planes.llm.sources.source import ModelSource, PassedReply, Query, SourceReply, StoredReply, UpstreamDown

SECRET = "sk-live-0123456789"
KEYED = (("authorization", f"Bearer {SECRET}"),)


def mask(text: str) -> str:
    return text.replace(SECRET, "[masked]")


class Echo:
    """Answers in Chat Completions with texts of its own, one a call."""

    def __init__(self, *texts: str, status: int = 200) -> None:
        self._texts = list(texts)
        self._status = status

    async def answer(self, asked: Query) -> SourceReply:
        text = self._texts.pop(0)
        headers = (
            ("Content-Type", "text/event-stream" if asked.stream else "application/json"),
            ("set-cookie", "id=1"),
        )
        return PassedReply(StoredReply(self._status, headers, tuple(_pieces(text, asked.stream))), "echo")


def _pieces(text: str, stream: bool) -> list[bytes]:
    if not stream:
        message = {"role": "assistant", "content": text}
        return [json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()]
    chunks = [{"choices": [{"index": 0, "delta": {"content": letter}}]} for letter in text]
    return [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks] + [b"data: [DONE]\n\n"]


def record(file: Path, source: ModelSource, *asked: Query, note: Any = print) -> list[list[bytes]]:
    """Records replies one after the other; what passed."""

    async def run() -> list[list[bytes]]:
        recorder = Recorder(file, mask, note)
        recorded = RecordedSource(source, recorder)
        passed = []
        for one in asked:
            answered = await recorded.answer(one)
            passed.append((await read(answered))[1] if isinstance(answered, PassedReply) else [])
        recorder.close()
        return passed

    return asyncio.run(run())


def replay(file: Path, *asked: Query) -> list[tuple[int, list[bytes]]]:
    async def run() -> list[tuple[int, list[bytes]]]:
        cassette = Cassette(file, mask)
        return [await read(await cassette.answer(one)) for one in asked]

    return asyncio.run(run())


def texts(replies: Sequence[tuple[int, list[bytes]]]) -> list[str]:
    return [OpenAIChat().read_reply(json.loads(b"".join(chunks))).text for _, chunks in replies]


@pytest.mark.parametrize("stream", [False, True])
def test_cassette_replays_the_bytes_chunk_by_chunk(tmp_path: Path, stream: bool) -> None:
    asked = chat("hi", stream=stream)
    passed = record(tmp_path / "c.jsonl", Echo("héllo"), asked)
    assert replay(tmp_path / "c.jsonl", asked) == [(200, passed[0])]
    assert len(passed[0]) == (7 - 1 if stream else 1)


def test_cassette_keeps_no_key_no_request_header_and_only_harmless_reply_headers(tmp_path: Path) -> None:
    record(tmp_path / "c.jsonl", Echo("yes"), chat(f"my key is {SECRET}", headers=KEYED))
    line = (tmp_path / "c.jsonl").read_text()
    assert SECRET not in line
    assert json.loads(line)["headers"] == [["content-type", "application/json"]]
    assert json.loads(line)["prompt"] == "my key is [masked]"
    assert (tmp_path / "c.jsonl").stat().st_mode & 0o077 == 0


def text_of(chunks: Sequence[bytes], stream: bool) -> str:
    whole = b"".join(chunks)
    return OpenAIChat().read_stream(whole).build_completion().text if stream else texts([(200, chunks)])[0]


@pytest.mark.parametrize("stream", [False, True])
def test_cassette_masks_a_secret_that_is_split_over_chunks(tmp_path: Path, stream: bool) -> None:
    asked = chat("hi", stream=stream)
    record(tmp_path / "c.jsonl", Echo(f"it is {SECRET}!"), asked)
    [(_, chunks)] = replay(tmp_path / "c.jsonl", asked)
    assert text_of(chunks, stream) == "it is [masked]!"


def test_cassette_answers_by_occurrence_in_each_trial_then_with_the_last(tmp_path: Path) -> None:
    file = tmp_path / "c.jsonl"
    a, b, new = chat("hi", trial="a"), chat("hi", trial="b"), chat("hi", trial="new")
    record(file, Echo("a1", "b1", "a2"), a, b, a)
    assert texts(replay(file, b, a, new, a, new, a, new)) == ["b1", "a1", "a1", "a2", "a2", "a2", "a2"]


def test_cassette_key_ignores_what_changes_from_run_to_run() -> None:
    one = chat("hi", *called("pay", "ok", id="call_1"), user="u1", metadata={"run": "1"})
    again = chat("hi", *called("pay", "ok", id="call_2"), user="u2", metadata={"run": "2"})
    assert compute_key(one, mask) == compute_key(again, mask)
    others = [chat("ho"), chat("hi", model="x"), chat("hi", stream=True), chat("hi", temperature=0.1), message("hi")]
    assert len({compute_key(other, mask) for other in (chat("hi"), *others)}) == len(others) + 1


def test_cassette_key_depends_on_the_arguments_of_tools() -> None:
    def asked(order: str) -> Query:
        call = {"type": "tool_use", "id": "toolu_1", "name": "refund", "input": {"id": order}}
        return query(
            {"messages": [{"role": "assistant", "content": [call]}]}, provider="anthropic", path="/v1/messages"
        )

    assert compute_key(asked("A1"), mask) != compute_key(asked("A2"), mask)


def test_cassette_miss_shows_the_nearest_recorded_prompt(tmp_path: Path) -> None:
    record(tmp_path / "c.jsonl", Echo("1", "2"), chat("What is the price of tea?"), chat("Who are you?"))
    with pytest.raises(NotRecorded) as raised:
        replay(tmp_path / "c.jsonl", chat("What's the price of teas?"))
    assert raised.value.code == "recording-no-reply"


def test_cassette_keeps_no_failure_of_a_provider(tmp_path: Path) -> None:
    file, asked = tmp_path / "c.jsonl", chat("hi")
    record(file, Echo("", status=429), asked)
    record(file, Echo("fine"), asked)
    assert texts(replay(file, asked)) == ["fine"]


def test_cassette_keeps_no_reply_that_the_agent_left_half_read(tmp_path: Path) -> None:
    async def run() -> None:
        recorder = Recorder(tmp_path / "c.jsonl", mask, print)
        answered = await RecordedSource(Echo("hello"), recorder).answer(chat("hi", stream=True))
        assert isinstance(answered, PassedReply)
        chunks = answered.wire.stream_body()
        await anext(chunks)
        await chunks.aclose()  # type: ignore[attr-defined]  # it is a generator
        recorder.close()

    asyncio.run(run())
    assert (tmp_path / "c.jsonl").read_bytes() == b""


@pytest.mark.parametrize("stream", [False, True])
def test_cassette_records_a_scripted_model_too(tmp_path: Path, stream: bool) -> None:
    asked = chat("hi", stream=stream)
    record(tmp_path / "c.jsonl", script(tmp_path, "  - {text: a b}\n"), asked)
    [(status, chunks)] = replay(tmp_path / "c.jsonl", asked)
    assert (status, text_of(chunks, stream)) == (200, "a b")


def test_cassette_drops_a_torn_last_line_and_refuses_a_broken_one(tmp_path: Path) -> None:
    file = tmp_path / "c.jsonl"
    record(file, Echo("fine"), chat("hi"))
    whole = file.read_bytes()
    file.write_bytes(whole + whole[:40])
    assert texts(replay(file, chat("hi"))) == ["fine"]
    file.write_bytes(whole + b"{}\n")
    with pytest.raises(UserError) as raised:
        replay(file, chat("hi"))
    assert raised.value.code == "recording-unusable"


@pytest.mark.parametrize("content", [None, b""])
def test_cassette_that_is_missing_or_empty_is_the_users_error(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "c.jsonl").write_bytes(content)
    with pytest.raises(UserError, match="the recording"):
        Cassette(tmp_path / "c.jsonl", mask)


def test_cassette_notes_a_secret_that_it_cannot_mask(tmp_path: Path, golden: Golden) -> None:
    notes: list[str] = []

    class Binary:
        async def answer(self, asked: Query) -> SourceReply:
            return PassedReply(StoredReply(200, (), (b"\xff" + SECRET.encode(),)), "binary")

    record(tmp_path / "c.jsonl", Binary(), chat("hi"), note=notes.append)
    assert (tmp_path / "c.jsonl").read_bytes() == b""
    golden(notes)


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=5))
def test_cassette_chunks_hold_every_byte(body: bytes, cuts: list[int]) -> None:
    places = [0, *sorted(cut for cut in cuts if cut <= len(body)), len(body)]
    chunks = [body[a:b] for a, b in pairwise(places)]
    asked = query(None, path="/v1/models", method="GET")
    stored = mask_chunks(asked, StoredReply(200, (), ()), chunks, mask)
    assert stored is not None
    assert b"".join(decode_chunks(*stored)) == body


def test_a_trial_that_leaves_the_recording_continues_live(tmp_path: Path) -> None:
    record(tmp_path / "c.jsonl", Echo("one", "two"), chat("hi"), chat("more"))
    source = PrefixSource(Cassette(tmp_path / "c.jsonl", mask), Echo("live 1", "live 2"), {})

    async def run() -> list[str]:
        asked = (chat("hi"), chat("something else"), chat("more"))
        replies = [await source.answer(one) for one in asked]
        return texts([await read(one) for one in replies if isinstance(one, PassedReply)])

    assert asyncio.run(run()) == ["one", "live 1", "live 2"]


class Down:
    """A model that nobody can reach."""

    async def answer(self, query: Query) -> SourceReply:
        raise UpstreamDown("nobody is there", kind="dns")


def test_a_model_that_is_down_is_reported_with_the_request_that_the_recording_lacks(tmp_path: Path) -> None:
    record(tmp_path / "c.jsonl", Echo("one"), chat("hi"))
    source = PrefixSource(Cassette(tmp_path / "c.jsonl", mask), Down(), {})

    async def run() -> None:
        for _ in range(2):  # the second request of the trial is reported like the first
            with pytest.raises(NotRecorded) as lacks:
                await source.answer(chat("fall back"))
            assert (lacks.value.code, lacks.value.kind) == ("recording-no-reply", "dns")
            assert all(part in str(lacks.value) for part in ("'fall back'", "nobody is there"))

    asyncio.run(run())
