"""An overloaded provider that fails in the middle of its stream."""

from llm_replies import ASKED, CHUNKS, SAID

from holdfast.faults.llm.overloaded import Overloaded
from holdfast.model.completion import ErrorChunk, Text


def test_overloaded_in_a_stream_begins_well_and_ends_in_an_error(meet):
    received = meet(Overloaded(shape="stream_error"), SAID)
    assert received.deltas[:2] == CHUNKS[:2]
    assert received.deltas[2] == Text(",")
    assert isinstance(received.deltas[3], ErrorChunk)
    assert (received.deltas[3].kind, received.finish, len(received.deltas)) == ("overloaded", None, 4)


def test_overloaded_in_a_stream_of_calls_is_only_the_error(meet):
    (error,) = meet(Overloaded(shape="stream_error"), ASKED).deltas
    assert error.kind == "overloaded"
