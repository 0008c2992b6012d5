"""Faults by which the provider turns a call away: overloaded, server_error, context_length, quota."""

import pytest
from llm_replies import ASKED, CHUNKS, SAID

from holdfast.faults.llm.context_length import ContextLength
from holdfast.faults.llm.overloaded import Overloaded
from holdfast.faults.llm.quota import Quota
from holdfast.faults.llm.server_error import ServerError
from holdfast.model.completion import ErrorChunk, Text
from holdfast.protocols.fault import Failed


def refused(meeting, fault, value=SAID):
    m = meeting(fault, value)
    with pytest.raises(Failed) as failed:
        m.run()
    assert failed.value.retry_after_s is None
    return failed.value, m.forwarded


@pytest.mark.parametrize(
    ("fault", "kind", "status"),
    [
        (Overloaded(), "overloaded", 503),
        (ServerError(), "server_error", 500),
        (ServerError(status=502), "server_error", 502),
        (ContextLength(), "context_length", 400),
        (Quota(), "quota", 429),
    ],
)
def test_a_refusal_says_its_kind_and_never_asks_the_model(meeting, fault, kind, status):
    failed, forwarded = refused(meeting, fault)
    assert (failed.kind, failed.status, forwarded) == (kind, status, 0)
    assert str(failed).startswith(str(status))
    assert failed.body["error"]["message"] == str(failed)


def test_server_error_may_be_a_gateways_page(meeting):
    failed, _ = refused(meeting, ServerError(status=502, body="html"))
    assert (failed.kind, failed.status) == ("html", 502)
    assert failed.body.startswith("<html>")
    assert "502 Bad Gateway" in failed.body


def test_overloaded_in_a_stream_begins_well_and_ends_in_an_error(meet):
    received = meet(Overloaded(shape="stream_error"), SAID)
    assert received.deltas[:2] == CHUNKS[:2]
    assert received.deltas[2] == Text(",")
    assert isinstance(received.deltas[3], ErrorChunk)
    assert (received.deltas[3].kind, received.finish, len(received.deltas)) == ("overloaded", None, 4)


def test_overloaded_in_a_stream_of_calls_is_nothing_but_the_error(meet):
    (trouble,) = meet(Overloaded(shape="stream_error"), ASKED).deltas
    assert trouble.kind == "overloaded"


def test_overloaded_has_no_stream_to_break_in_a_model_function(meeting):
    failed, _ = refused(meeting, Overloaded(shape="stream_error"), "hi")
    assert failed.kind == "overloaded"
