"""Results that no model of this trial requested (examples, kept conversations, loaded histories) are not calls."""

from __future__ import annotations

import asyncio

import pytest
from results_kit import CODECS, FAULT, FIRST, WITH_IDS, WITHOUT_IDS, Talk, Trial, every_format, play

from holdfast.model.completion import ToolCall
from holdfast.model.scenario import Injection
from holdfast.planes.llm import known_results
from holdfast.planes.llm import tool_results as plane
from holdfast.planes.llm.codecs.anthropic import ANTHROPIC
from holdfast.planes.llm.codecs.codec import Codec
from holdfast.planes.llm.codecs.gemini import GEMINI
from holdfast.planes.llm.codecs.openai_chat import OPENAI_CHAT
from holdfast.planes.llm.codecs.openai_responses import OPENAI_RESPONSES

SCRIPTS: dict[str, tuple[tuple[Codec, ...], str, str]] = {
    "an example in the prompt": (
        CODECS,
        "example; user; reads -; asks c1; round c1; reads - X; asks c2 pan; round c2 pan; reads - X -; again - X -",
        "1X 2",
    ),
    "an example that the model has not answered": (
        CODECS,
        "open; user; reads -; asks c1; round c1; reads - X; asks c2 pan; round c2 pan; reads - X -; again - X -",
        "1X 2",
    ),
    "an example with the id of the real call": (
        CODECS,
        "example c1; user; reads -; asks c1; round c1; reads - X; model; reads - X",
        "1X",
    ),
    **{
        f"the example {one} of another agent": (
            CODECS,
            f"user; reads; asks c1; other:{one}; other:user A_poem.; other:reads -; round c1; reads X; other:reads -;"
            "other:model Roses.; other:user Another.; other:reads -",
            "1X",
        )
        for one in ("example", "example ex_1 pot", "example c1 pot", "open", "open ex_1 pot", "open c1 pot")
    },
    "the example of another agent after the real call": (
        CODECS,
        "user; asks c1; round c1; reads X; other:example; other:user A_poem.; other:reads -",
        "1X",
    ),
    "an example in the middle, before the call": (
        CODECS,
        "user; reads; asks c1; example; user Go_on.; round c1; reads - X",
        "1X",
    ),
    "an example in the middle, after the call": (
        CODECS,
        "user; reads; asks c1; round c1; reads X; model; example; user Go_on.; reads X -",
        "1X",
    ),
    "a loaded history alone": (CODECS, "user; round c1; reads -", ""),
    "a client that invents ids": (WITH_IDS[:1], "example; user; reads -; asks c1; round made-up; reads - X", "1X"),
    "an example at the end of another prompt": (
        WITH_IDS,
        "user; other:user; reads; asks c1; other:round ex pot; other:reads -; round c1; reads X",
        "1X",
    ),
    "an example at the end of another prompt, with words behind it": (
        WITH_IDS,
        "user; other:user; reads; asks c1; other:round ex pot; other:user Now.; other:reads -; round c1; reads X",
        "1X",
    ),
    "an agent that says the time only once": (
        CODECS,
        "user It_is_12:00.; user; reads; asks c1; drop 0; round c1; reads X",
        "1X",
    ),
    "a known id in another conversation": (
        WITH_IDS,
        "user It_is_12:00.; reads; asks c1; b:user It_is_12:01.; b:round c1; b:reads X;"
        "c:user It_is_12:02.; c:round c1; c:user Briefly.; c:reads X",
        "1X",
    ),
    "without ids, by name and arguments": (
        WITHOUT_IDS,
        "user It_is_12:00.; asks c1; b:user It_is_12:01.; b:round c1; b:reads X; c:round c1; c:reads X;"
        "c:asks c2 pan; c:round c2 pan; c:reads X -",
        "1X 2",
    ),
    "without ids, other arguments in another conversation": (
        WITHOUT_IDS,
        "user; asks c1; other:user How_many_pots?; other:round c1 pot; other:reads -",
        "",
    ),
    "words that are gone the next time": (
        WITH_IDS[2:],
        "user; user (4_steps_left); asks c1; drop 1; round c1; user (3_steps_left); reads X",
        "1X",
    ),
    "two calls in one reply, each before its result": (
        (OPENAI_RESPONSES, GEMINI),
        "user; asks c1; asks c2 pot; round c1; round c2 pot; reads X -",
        "1X 2",
    ),
    "an agent that answers itself": ((GEMINI,), "user; asks c1; round c1; model; user And_pots?; reads X", "1X"),
    "two conversations with equal ids and results": (
        WITH_IDS[:1],
        "user; asks c1; round c1; reads X; other:user; other:asks c1; other:round c1; other:reads -",
        "1X 2",
    ),
    "two concurrent conversations, and a retried request": (
        WITH_IDS[:1],
        "user; other:user; asks c1; round c1; other:asks c1; other:round c1; reads X; again X; other:reads -",
        "1X 2",
    ),
    "a second result of one call": (WITH_IDS[:1], "user; asks c1; round c1; gave c1 more; reads X -", "1X"),
    "a call that is known only later": (WITH_IDS[:1], "b:user; user; round c1; reads -; b:asks c1; reads X", "1X"),
    "no call, also after an unread reply": (WITH_IDS[2:], "open; user; reads -; unread; reads -", ""),
}
ROWS = [
    pytest.param(codec, script, calls, id=f"{codec.name}: {name}")
    for name, (codecs, script, calls) in SCRIPTS.items()
    for codec in codecs
]


@pytest.mark.parametrize(("codec", "script", "calls"), ROWS)
def test_only_results_of_requested_calls_are_calls(codec: Codec, script: str, calls: str) -> None:
    trial = play(codec, script)
    assert " ".join(f"{n}{'X' * bool(fault)}" for n, fault in trial.calls) == calls
    assert trial.met == calls.count("X")


@pytest.mark.parametrize("name", ["an example in the prompt", "a second result of one call", "a known id in another "
                                  "conversation", "a call that is known only later", "no call, also after an unread "
                                  "reply", "without ids, by name and arguments"])  # fmt: skip
def test_requested_calls_and_examples_leave_no_doubt(name: str) -> None:
    codecs, script, _ = SCRIPTS[name]
    for codec in codecs:
        trial = play(codec, script)
        assert (trial.perhaps, trial.context.notes) == ([], [])


@every_format
@pytest.mark.parametrize("left_open", [True, False])
def test_results_kept_from_an_earlier_trial_are_no_calls(codec: Codec, left_open: bool) -> None:
    talk = Talk(codec)
    earlier, later = Trial(FIRST), Trial(FIRST)
    for trial in (earlier, later):
        talk.user("How many kettles?")
        kept = len(talk.asked().results)
        assert trial.reads(talk) == ["-"] * kept
        assert (trial.calls, trial.met) == ([], 0)
        trial.asks(talk, "call_1")
        talk.round("call_1")
        assert trial.reads(talk) == [*["-"] * kept, FAULT]
        if not left_open:
            talk.model("Three.")
    assert later.calls == [(1, "error")]


def test_a_result_may_share_its_message_with_text() -> None:
    trial, talk = Trial(FIRST), Talk(ANTHROPIC)
    talk.user("It is 12:00. How many kettles?")
    trial.asks(talk, "call_1")
    talk.sent[0]["content"] = "It is 12:01. How many kettles?"
    talk.round("call_1")
    talk.sent[-1]["content"].append({"type": "text", "text": "(3 steps left)"})
    assert trial.reads(talk) == [FAULT]


def test_a_result_is_found_by_id_when_the_server_keeps_its_call() -> None:
    trial = Trial(FIRST)
    for n, q in enumerate(("kettle", "kettle", "pot")):
        talk = Talk(OPENAI_RESPONSES)
        if n:
            talk.gave("call_0")
        talk.user("Go on." if n else "How many kettles?")
        assert trial.reads(talk) == ([] if not n else [FAULT] if n == 1 else ["-"])
        trial.asks(talk, "call_0", q)
    assert [event.input for event in trial.context.trace] == ['{"q": "kettle"}'] * 2
    assert trial.calls == [(1, "error"), (2, "")]


def test_calls_of_a_reply_that_ends_meanwhile_are_recorded_first() -> None:
    trial, talk = Trial(FIRST), Talk(OPENAI_CHAT)
    talk.user("How many kettles?")
    before = talk.asked()
    talk.round("call_1")

    def late() -> None:
        trial.results.record_calls((ToolCall("call_1", "search", '{"q": "kettle"}'),), before)

    changed = asyncio.run(trial.results.settle(talk.asked(), record_late_calls=late))
    assert changed["call_1"].text == FAULT


def test_the_number_of_calls_without_results_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plane, "OPEN_KEPT", 2)
    trial, talk = Trial(), Talk(OPENAI_CHAT)
    talk.user("How many kettles?")
    for n in range(3):
        trial.asks(talk, f"call_{n}", f"{n}")
    assert [(event.phase, event.input) for event in trial.context.trace] == [("declared", '{"q": "0"}')]
    talk.round("call_2", "2")
    trial.reads(talk)
    assert trial.calls == [(1, "")]


def test_a_call_in_a_text_counts_only_with_a_result() -> None:
    for made in (True, False):
        trial, talk = Trial(FIRST), Talk(OPENAI_CHAT)
        talk.user("How many kettles?")
        trial.results.record_calls((ToolCall("", "search", '{"q": "kettle"}'),), talk.asked(), certain=False)
        if made:
            talk.round("made-up")
            assert trial.reads(talk) == [FAULT]
        trial.results.close()
        assert len(trial.context.trace) == made


def test_the_number_of_remembered_results_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_results, "MARKS_KEPT", 50)
    trial, talk = Trial(Injection("tool", "search", "error")), Talk(OPENAI_CHAT)
    talk.user("How many kettles?")
    for n in range(100):
        talk.round(f"ex_{n}")
    assert trial.reads(talk) == ["-"] * 100
    trial.asks(talk, "call_1")
    talk.round("call_1")
    assert trial.reads(talk)[-1] == FAULT
    assert len(trial.results._decisions._by_mark) == 50
