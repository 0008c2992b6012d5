"""Results that no model of this trial asked for: examples, kept conversations, loaded histories. They are no calls."""

from __future__ import annotations

import asyncio

import pytest
from results_kit import FAULT, FIRST, Talk, Trial, every_format

from holdfast.model.completion import ToolCall
from holdfast.model.scenario import Injection
from holdfast.planes.llm import known_results
from holdfast.planes.llm import tool_results as plane
from holdfast.planes.llm.codecs.anthropic import ANTHROPIC
from holdfast.planes.llm.codecs.codec import Codec
from holdfast.planes.llm.codecs.gemini import GEMINI
from holdfast.planes.llm.codecs.ollama import OLLAMA_CHAT
from holdfast.planes.llm.codecs.openai_chat import OPENAI_CHAT
from holdfast.planes.llm.codecs.openai_responses import OPENAI_RESPONSES


@every_format
@pytest.mark.parametrize("closed", [True, False])
def test_an_example_in_the_prompt_is_not_a_call_and_the_real_one_after_it_is_the_first(
    codec: Codec, closed: bool
) -> None:
    trial, talk = Trial(FIRST), Talk(codec)
    talk.example(closed=closed)
    talk.user("How many kettles?")
    assert trial.reads(talk) == ["-"]
    assert (trial.calls, trial.met) == ([], 0)
    trial.asks(talk, "call_1")
    talk.round("call_1")
    assert trial.reads(talk) == ["-", FAULT]
    assert trial.calls == [(1, "error")]
    trial.asks(talk, "call_2", "pan")
    talk.round("call_2", "pan")
    assert trial.reads(talk) == ["-", FAULT, "-"]
    assert trial.reads(talk, again=True) == ["-", FAULT, "-"]
    assert trial.calls == [(1, "error"), (2, "")]


@every_format
def test_an_example_with_the_id_of_the_real_call_is_not_a_call_either(codec: Codec) -> None:
    trial, talk = Trial(FIRST), Talk(codec)
    talk.example("call_1")
    talk.user("How many kettles?")
    trial.reads(talk)
    trial.asks(talk, "call_1")
    talk.round("call_1")
    talk_later = trial.reads(talk)
    talk.model("Three kettles.")
    assert talk_later == trial.reads(talk) == ["-", FAULT]
    assert trial.calls == [(1, "error")]


@every_format
@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize(("id", "q"), [("ex_1", "kettle"), ("ex_1", "pot"), ("call_1", "pot")])
def test_an_example_in_the_prompt_of_another_agent_does_not_use_up_the_open_call(
    codec: Codec, q: str, closed: bool, id: str
) -> None:
    trial, talk, other = Trial(FIRST), Talk(codec), Talk(codec)
    talk.user("How many kettles?")
    trial.reads(talk)
    trial.asks(talk, "call_1")
    other.example(id, q, closed=closed)
    other.user("Write a poem.")
    assert trial.reads(other) == ["-"]
    assert (trial.calls, trial.met) == ([], 0)
    talk.round("call_1")
    assert trial.reads(talk) == [FAULT]
    assert trial.reads(other) == ["-"]
    other.model("Roses are red.")
    other.user("Another one.")
    assert trial.reads(other) == ["-"]
    assert trial.calls == [(1, "error")]


@every_format
def test_an_example_first_shown_to_another_agent_after_the_real_call_passes_untouched(codec: Codec) -> None:
    trial, talk, other = Trial(FIRST), Talk(codec), Talk(codec)
    talk.user("How many kettles?")
    trial.asks(talk, "call_1")
    talk.round("call_1")
    assert trial.reads(talk) == [FAULT]
    other.example()
    other.user("Write a poem.")
    assert trial.reads(other) == ["-"]
    assert trial.calls == [(1, "error")]


@every_format
@pytest.mark.parametrize("before", [True, False])
def test_an_example_that_is_put_into_the_middle_later_passes_untouched(codec: Codec, before: bool) -> None:
    trial, talk = Trial(FIRST), Talk(codec)
    talk.user("How many kettles?")
    trial.reads(talk)
    trial.asks(talk, "call_1")
    if before:
        talk.example()
        talk.user("Now go on.")
    talk.round("call_1")
    if not before:
        assert trial.reads(talk) == [FAULT]
        talk.model("Three.")
        talk.example()
        talk.user("Now go on.")
    assert trial.reads(talk) == (["-", FAULT] if before else [FAULT, "-"])
    assert trial.calls == [(1, "error")]


@every_format
@pytest.mark.parametrize("left_open", [True, False])
def test_a_conversation_that_is_kept_from_an_earlier_trial_leaks_nothing(codec: Codec, left_open: bool) -> None:
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


@every_format
def test_a_loaded_history_alone_proves_nothing(codec: Codec) -> None:
    trial, talk = Trial(Injection("tool", "search", "error")), Talk(codec)
    talk.user("How many kettles?")
    talk.round("call_1")
    assert trial.reads(talk) == ["-"]
    assert (trial.calls, trial.met) == ([], 0)


def test_a_client_that_makes_up_ids_is_known_by_name_arguments_and_place() -> None:
    trial, talk = Trial(FIRST), Talk(OPENAI_CHAT)
    talk.example()
    talk.user("How many kettles?")
    trial.reads(talk)
    trial.asks(talk, "call_1")
    talk.round("made-up")
    assert trial.reads(talk) == ["-", FAULT]
    assert trial.calls == [(1, "error")]


@pytest.mark.parametrize("codec", [OPENAI_CHAT, OPENAI_RESPONSES, ANTHROPIC], ids=lambda codec: codec.name)
@pytest.mark.parametrize("later", [True, False])
def test_an_example_at_the_end_of_a_prompt_does_not_take_the_open_call_of_its_tool(codec: Codec, later: bool) -> None:
    trial, talk, other = Trial(FIRST), Talk(codec), Talk(codec)
    for one in (talk, other):
        one.user("How many kettles?")
    trial.reads(talk)
    trial.asks(talk, "call_1")
    other.round("ex_1", "pot")
    if later:
        other.user("Now you.")
    assert trial.reads(other) == ["-"]
    assert (trial.calls, trial.met) == ([], 0)
    talk.round("call_1")
    assert trial.reads(talk) == [FAULT]
    assert trial.calls == [(1, "error")]


@every_format
def test_an_agent_that_tells_the_time_once_is_met(codec: Codec) -> None:
    trial, talk = Trial(FIRST), Talk(codec)
    talk.user("It is 12:00.")
    talk.user("How many kettles?")
    trial.reads(talk)
    trial.asks(talk, "call_1")
    del talk.sent[0]
    talk.round("call_1")
    assert trial.reads(talk) == [FAULT]


@pytest.mark.parametrize("codec", [OPENAI_CHAT, OPENAI_RESPONSES, ANTHROPIC], ids=lambda codec: codec.name)
@pytest.mark.parametrize("words", [True, False])
def test_a_result_goes_by_its_id_though_all_that_was_said_is_another_now(codec: Codec, words: bool) -> None:
    trial, talk = Trial(FIRST), Talk(codec)
    talk.user("It is 12:00. How many kettles?")
    trial.reads(talk)
    trial.asks(talk, "call_1")
    for _ in range(2):  # the agent itself asks once more
        talk = Talk(codec)
        talk.user("It is 12:01. How many kettles?")
        talk.round("call_1")
        if words:
            talk.user("Answer in one sentence.")
        assert trial.reads(talk) == [FAULT]
    assert (trial.calls, trial.perhaps) == ([(1, "error")], [])


def test_words_next_to_a_result_in_one_message_hide_no_call() -> None:
    trial, talk = Trial(FIRST), Talk(ANTHROPIC)
    talk.user("It is 12:00. How many kettles?")
    trial.asks(talk, "call_1")
    talk.sent[0]["content"] = "It is 12:01. How many kettles?"
    talk.round("call_1")
    talk.sent[-1]["content"].append({"type": "text", "text": "(3 steps left)"})
    assert trial.reads(talk) == [FAULT]


@pytest.mark.parametrize("codec", [GEMINI, OLLAMA_CHAT], ids=lambda codec: codec.name)
@pytest.mark.parametrize("prompt", ["It is 12:01. How many kettles?", ""])
def test_without_ids_a_result_that_waits_for_the_model_goes_by_name_and_arguments(codec: Codec, prompt: str) -> None:
    trial, talk = Trial(FIRST), Talk(codec)
    talk.user("It is 12:00. How many kettles?")
    trial.asks(talk, "")
    for clock in ("", " It is late."):  # the agent itself asks once more
        talk = Talk(codec)
        if prompt:
            talk.user(prompt + clock)
        talk.round("", "kettle")
        assert trial.reads(talk) == [FAULT]
    assert (trial.calls, trial.perhaps) == ([(1, "error")], [])
    trial.asks(talk, "", "pan")
    talk.round("", "pan")
    assert trial.reads(talk) == [FAULT, "-"]


@pytest.mark.parametrize("codec", [GEMINI, OLLAMA_CHAT], ids=lambda codec: codec.name)
def test_without_ids_a_result_in_another_conversation_with_other_arguments_takes_no_call(codec: Codec) -> None:
    trial, talk, other = Trial(FIRST), Talk(codec), Talk(codec)
    talk.user("How many kettles?")
    trial.asks(talk, "")
    other.user("How many pots?")
    other.round("", "pot")
    assert trial.reads(other) == ["-"]
    assert trial.calls == []


def test_words_that_are_gone_the_next_time_hide_no_call() -> None:
    trial, talk = Trial(FIRST), Talk(ANTHROPIC)
    talk.user("How many kettles?")
    talk.user("(4 steps left)")
    trial.asks(talk, "call_1")
    talk.sent.pop()
    talk.round("call_1")
    talk.user("(3 steps left)")
    assert trial.reads(talk) == [FAULT]


def test_a_result_whose_call_only_the_server_holds_goes_by_its_id() -> None:
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


def test_results_of_one_reply_that_stand_each_after_its_call_are_all_met() -> None:
    for codec in (OPENAI_RESPONSES, GEMINI):
        trial, talk = Trial(), Talk(codec)
        talk.user("How many kettles and pots?")
        trial.asks(talk, "call_1")
        trial.asks(talk, "call_2", "pot")
        talk.round("call_1")
        talk.round("call_2", "pot")
        trial.reads(talk)
        assert [n for n, _ in trial.calls] == [1, 2]


def test_a_result_is_met_though_the_agent_answered_by_itself_meanwhile() -> None:
    trial, talk = Trial(FIRST), Talk(GEMINI)
    talk.user("How many kettles?")
    trial.asks(talk, "")
    talk.round("")
    talk.model("Three, says the tool.")
    talk.user("And pots?")
    assert trial.reads(talk) == [FAULT]


def test_calls_that_only_came_to_an_end_now_are_asked_for_before_a_result_is_given_up() -> None:
    trial, talk = Trial(FIRST), Talk(OPENAI_CHAT)
    talk.user("How many kettles?")
    before = talk.asked()
    talk.round("call_1")

    def late() -> None:
        trial.results.record_calls((ToolCall("call_1", "search", '{"q": "kettle"}'),), before)

    changed = asyncio.run(trial.results.settle(talk.asked(), record_late_calls=late))
    assert changed["call_1"].text == FAULT


def test_of_calls_without_results_the_oldest_are_reported_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plane, "OPEN_KEPT", 2)
    trial, talk = Trial(), Talk(OPENAI_CHAT)
    talk.user("How many kettles?")
    for n in range(3):
        trial.asks(talk, f"call_{n}", f"{n}")
    assert [(event.phase, event.input) for event in trial.context.trace] == [("declared", '{"q": "0"}')]
    talk.round("call_2", "2")
    trial.reads(talk)
    assert trial.calls == [(1, "")]


def test_a_call_that_was_perhaps_written_into_a_text_is_met_and_else_not_told_of() -> None:
    for made in (True, False):
        trial, talk = Trial(FIRST), Talk(OPENAI_CHAT)
        talk.user("How many kettles?")
        trial.results.record_calls((ToolCall("", "search", '{"q": "kettle"}'),), talk.asked(), certain=False)
        if made:
            talk.round("made-up")
            assert trial.reads(talk) == [FAULT]
        trial.results.close()
        assert len(trial.context.trace) == made


def test_what_is_kept_of_results_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
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
