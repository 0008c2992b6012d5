"""OpenAI's own library reads what the Responses codec writes."""

from __future__ import annotations

import openai
import pytest
from codec_clients import openai_client, plain, refused, stream

from codec_kit import CALLING, SUNNY
from holdfast.model.completion import Completion, Finish, Hollow, Text, Trouble
from holdfast.planes.llm.codecs.openai_responses import OPENAI_RESPONSES
from holdfast.protocols.fault import Failed

ASK = {"model": "model-1", "input": "Hello"}


def test_plain_text_status_and_usage() -> None:
    reply = openai_client(plain(OPENAI_RESPONSES, SUNNY)).responses.create(**ASK)
    assert (reply.output_text, reply.status) == (SUNNY.text, "completed")
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (12, 7)


def test_plain_tool_calls() -> None:
    reply = openai_client(plain(OPENAI_RESPONSES, CALLING)).responses.create(**ASK)
    calls = [item for item in reply.output if item.type == "function_call"]
    assert [(call.call_id, call.name, call.arguments) for call in calls] == [
        (call.id, call.name, call.arguments) for call in CALLING.tool_calls
    ]
    assert len({item.id for item in reply.output}) == 3


def test_the_whole_sequence_of_events() -> None:
    events = list(openai_client(stream(OPENAI_RESPONSES, CALLING)).responses.create(**ASK, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    seen = [event.type.removeprefix("response.") for event in events]
    assert seen[:3] == ["created", "in_progress", "output_item.added"]
    assert seen[3:8] == [
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
    ]
    call = ["output_item.added", *["function_call_arguments.delta"] * 4, "function_call_arguments.done"]
    assert seen[8:14] == call
    assert seen[-2:] == ["output_item.done", "completed"]


def test_the_library_puts_the_stream_together_hollow_events_and_all() -> None:
    mixed = Completion((Hollow(), *CALLING.deltas[:2], Hollow(), *CALLING.deltas[2:]), "model-1")
    with openai_client(stream(OPENAI_RESPONSES, mixed)).responses.stream(**ASK) as events:
        list(events)
        final = events.get_final_response()
    assert final.output_text == "Let me look."
    calls = [(item.call_id, item.name, item.arguments) for item in final.output if item.type == "function_call"]
    assert calls == [(call.id, call.name, call.arguments) for call in CALLING.tool_calls]


@pytest.mark.parametrize(("finish", "reason"), [("length", "max_output_tokens"), ("content_filter", "content_filter")])
def test_an_incomplete_reply_says_why(finish: str, reason: str) -> None:
    completion = Completion((Finish(finish),), "m")  # type: ignore[arg-type]
    reply = openai_client(plain(OPENAI_RESPONSES, completion)).responses.create(**ASK)
    assert (reply.status, reply.incomplete_details and reply.incomplete_details.reason) == ("incomplete", reason)
    *_, last = openai_client(stream(OPENAI_RESPONSES, completion)).responses.create(**ASK, stream=True)
    assert last.type == "response.incomplete"
    assert last.response.incomplete_details is not None
    assert last.response.incomplete_details.reason == reason


def test_trouble_is_a_failed_response() -> None:
    completion = Completion((Text("half"), Trouble("rate_limit", "slow down")), "m")
    *_, last = openai_client(stream(OPENAI_RESPONSES, completion)).responses.create(**ASK, stream=True)
    assert last.type == "response.failed"
    assert last.response.error is not None
    assert (last.response.error.code, last.response.error.message) == ("rate_limit_exceeded", "slow down")
    reply = openai_client(plain(OPENAI_RESPONSES, completion)).responses.create(**ASK)
    assert (reply.status, reply.error and reply.error.code) == ("failed", "rate_limit_exceeded")


def test_a_stream_that_never_finished_has_no_last_event() -> None:
    events = list(
        openai_client(stream(OPENAI_RESPONSES, Completion((Text("a"),)))).responses.create(**ASK, stream=True)
    )
    assert events[-1].type == "response.output_item.done"


def test_a_reply_that_lacks_its_output() -> None:
    reply = openai_client(plain(OPENAI_RESPONSES, Completion((Text("x"),), "m", "choices"))).responses.create(**ASK)
    assert reply.output == []
    assert b'"output":null' in OPENAI_RESPONSES.body(
        Completion((Text("x"),), "m", "message"), OPENAI_RESPONSES.read_request("", ASK)
    )


def test_errors_raise_as_in_production() -> None:
    wire = refused(OPENAI_RESPONSES.refusal(Failed("none left", kind="quota")))
    with pytest.raises(openai.RateLimitError) as raised:
        openai_client(wire).responses.create(**ASK)
    assert raised.value.code == "insufficient_quota"
