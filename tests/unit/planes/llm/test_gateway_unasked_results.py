"""Results that no model of this trial asked for: examples, kept conversations, loaded histories. They are no calls."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.model.completion import ToolCall
from holdfast.model.spec import Injection, Schedule
from holdfast.planes.llm import results as plane
from holdfast.planes.llm import settling
from holdfast.planes.llm.anthropic import ANTHROPIC
from holdfast.planes.llm.codec import Codec
from holdfast.planes.llm.gemini import GEMINI
from holdfast.planes.llm.ollama import OLLAMA_CHAT
from holdfast.planes.llm.openai_chat import OPENAI_CHAT
from holdfast.planes.llm.openai_responses import OPENAI_RESPONSES
from holdfast.planes.llm.results import Results
from planes_kit import FakeTrip

SAME = '{"left": 3}'
FIRST = Injection("tool", "search", "error", schedule=Schedule(on_call=1))
PATH = "/v1beta/models/m:generateContent"
CODECS: tuple[Codec, ...] = (OPENAI_CHAT, OPENAI_RESPONSES, ANTHROPIC, GEMINI, OLLAMA_CHAT)
every_format = pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)


class Talk:
    """A conversation in one format, message by message; formats without ids send none."""

    def __init__(self, codec: Codec) -> None:
        self.codec = codec
        self.sent: list[dict[str, Any]] = []

    def user(self, text: str) -> None:
        self._say("user", text)

    def model(self, text: str) -> None:
        self._say("assistant", text)

    def round(self, id: str, q: str = "kettle", text: str = SAME) -> None:
        """A call and its result."""
        self.called(id, q)
        self.gave(id, text)

    def called(self, id: str, q: str = "kettle") -> None:
        given = {"q": q}
        match self.codec.name:
            case "openai_chat":
                function = {"name": "search", "arguments": f'{{"q": "{q}"}}'}
                self.sent.append({"role": "assistant", "tool_calls": [{"id": id, "function": function}]})
            case "openai_responses":
                item = {"type": "function_call", "call_id": id, "name": "search", "arguments": f'{{"q": "{q}"}}'}
                self.sent.append(item)
            case "anthropic":
                block = {"type": "tool_use", "id": id, "name": "search", "input": given}
                self.sent.append({"role": "assistant", "content": [block]})
            case "gemini":
                part = {"functionCall": {"name": "search", "args": given}}
                self.sent.append({"role": "model", "parts": [part]})
            case _:
                function = {"name": "search", "arguments": given}
                self.sent.append({"role": "assistant", "content": "", "tool_calls": [{"function": function}]})

    def gave(self, id: str, text: str = SAME) -> None:
        match self.codec.name:
            case "openai_chat":
                self.sent.append({"role": "tool", "tool_call_id": id, "content": text})
            case "openai_responses":
                self.sent.append({"type": "function_call_output", "call_id": id, "output": text})
            case "anthropic":
                block = {"type": "tool_result", "tool_use_id": id, "content": text}
                self.sent.append({"role": "user", "content": [block]})
            case "gemini":
                part = {"functionResponse": {"name": "search", "response": {"result": text}}}
                self.sent.append({"role": "user", "parts": [part]})
            case _:
                self.sent.append({"role": "tool", "tool_name": "search", "content": text})

    def example(self, id: str = "ex_1", q: str = "kettle", text: str = SAME, *, closed: bool = True) -> None:
        self.user("How many pots are left?")
        self.round(id, q, text)
        if closed:
            self.model("Three.")

    def asked(self) -> Any:
        field = {"gemini": "contents", "openai_responses": "input"}.get(self.codec.name, "messages")
        return self.codec.asked(PATH, {"model": "m", field: self.sent})

    def _say(self, role: str, text: str) -> None:
        if self.codec.name == "gemini":
            self.sent.append({"role": "model" if role == "assistant" else role, "parts": [{"text": text}]})
        else:
            self.sent.append({"role": role, "content": text})


class Trial:
    """The results of one trial, with what came of them."""

    def __init__(self, *injections: Injection) -> None:
        self.trip = FakeTrip(injections)
        self.results = Results(self.trip, frozenset, faulty=True)

    def asks(self, talk: Talk, id: str, q: str = "kettle") -> None:
        """The model answers the conversation with a call; formats without ids give none."""
        given = "" if talk.codec in (GEMINI, OLLAMA_CHAT) else id
        self.results.declared((ToolCall(given, "search", f'{{"q": "{q}"}}'),), talk.asked())

    def reads(self, talk: Talk, *, again: bool = False) -> list[str]:
        """What the model reads of the results: `-` where it is what the tool gave."""
        changed = asyncio.run(self.results.settle(talk.asked(), again=again))
        return [changed[r.key].text or "" if r.key in changed else "-" for r in talk.asked().results]

    @property
    def calls(self) -> list[tuple[int, str]]:
        return [(event.n, event.fault) for event in self.trip.trace if event.phase == "done"]

    @property
    def met(self) -> int:
        return len(self.trip.ledger)


FAULT = "Error: 503 Service Unavailable"


@every_format
@pytest.mark.parametrize("closed", [True, False])
def test_an_example_in_the_prompt_is_no_call_and_the_real_one_after_it_is_the_first(codec: Codec, closed: bool) -> None:
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
def test_an_example_with_the_id_of_the_real_call_is_no_call_either(codec: Codec) -> None:
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
@pytest.mark.parametrize("q", ["kettle", "pot"])
@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("id", ["ex_1", "call_1"])
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
    trial.results.close()
    assert (trial.trip.trace, trial.met) == ([], 0)


@pytest.mark.parametrize("q", ["kettle", "Kettle"])
def test_a_client_that_makes_up_ids_is_known_by_name_and_place(q: str) -> None:
    trial, talk = Trial(FIRST), Talk(OPENAI_CHAT)
    talk.example()
    talk.user("How many kettles?")
    trial.reads(talk)
    trial.asks(talk, "call_1")
    talk.round("made-up", q)
    assert trial.reads(talk) == ["-", FAULT]
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


def test_a_result_goes_by_its_id_though_all_that_was_said_is_another_now() -> None:
    trial, talk, short = Trial(FIRST), Talk(OPENAI_CHAT), Talk(OPENAI_CHAT)
    talk.user("How many kettles?")
    trial.asks(talk, "call_1")
    short.user("(a summary)")
    short.round("call_1")
    assert trial.reads(short) == [FAULT]


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
    assert [event.input for event in trial.trip.trace] == ['{"q": "kettle"}'] * 2
    assert trial.calls == [(1, "error"), (2, "")]


def test_a_second_result_of_one_call_is_no_second_call() -> None:
    trial, talk = Trial(), Talk(OPENAI_CHAT)
    talk.user("How many kettles?")
    trial.asks(talk, "call_1")
    talk.round("call_1")
    talk.gave("call_1", "and more")
    trial.reads(talk)
    assert trial.calls == [(1, "")]


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
        trial.results.declared((ToolCall("call_1", "search", '{"q": "kettle"}'),), before)

    changed = asyncio.run(trial.results.settle(talk.asked(), late=late))
    assert changed["call_1"].text == FAULT


def test_of_calls_without_results_the_oldest_are_told_of_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plane, "OPEN_KEPT", 2)
    trial, talk = Trial(), Talk(OPENAI_CHAT)
    talk.user("How many kettles?")
    for n in range(3):
        trial.asks(talk, f"call_{n}", f"{n}")
    assert [(event.phase, event.input) for event in trial.trip.trace] == [("declared", '{"q": "0"}')]
    talk.round("call_2", "2")
    trial.reads(talk)
    assert trial.calls == [(1, "")]


def test_a_call_that_was_perhaps_written_into_a_text_is_met_and_else_not_told_of() -> None:
    for made in (True, False):
        trial, talk = Trial(FIRST), Talk(OPENAI_CHAT)
        talk.user("How many kettles?")
        trial.results.declared((ToolCall("", "search", '{"q": "kettle"}'),), talk.asked(), sure=False)
        if made:
            talk.round("made-up")
            assert trial.reads(talk) == [FAULT]
        trial.results.close()
        assert len(trial.trip.trace) == made


def test_what_is_kept_of_results_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settling, "MARKS_KEPT", 50)
    trial, talk = Trial(Injection("tool", "search", "error")), Talk(OPENAI_CHAT)
    talk.user("How many kettles?")
    for n in range(100):
        talk.round(f"ex_{n}")
    assert trial.reads(talk) == ["-"] * 100
    trial.asks(talk, "call_1")
    talk.round("call_1")
    assert trial.reads(talk)[-1] == FAULT
    assert len(trial.results._settled._kept) == 50
