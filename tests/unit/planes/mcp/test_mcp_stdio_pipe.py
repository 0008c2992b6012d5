import asyncio

import pytest
from mcp_talk import FakeLine, call, line

from golden_words import Golden
from holdfast.model.scenario import Injection, Schedule
from holdfast.planes.mcp.plane import Pipe
from holdfast.planes.mcp.relay import LINE_LIMIT
from holdfast.planes.mcp.trial_state import McpTrialState
from planes_kit import FakeContext

OK = line(id=1, result={"content": [{"type": "text", "text": "hello"}]})
PING = line(id=9, method="ping")


def served(
    *lines: bytes, injections: list[Injection] | None = None, wait_s: float = 0.0, context: FakeContext | None = None
):
    """What the relay was told after it had said these lines, one after another, and then left."""
    context, wire = context or FakeContext(injections or []), FakeLine()

    async def run():
        serving = asyncio.create_task(Pipe(wire, "server", context, McpTrialState()).serve())
        for one in lines:
            wire.says(one)
            await asyncio.sleep(0.001)
        await asyncio.sleep(wait_s)
        wire.sent.put_nowait(b"")
        await asyncio.wait_for(serving, 5)

    asyncio.run(run())
    return b"".join(wire.got).split(b"\n")[:-1], context


def test_everything_passes_untouched_in_calm():
    note, odd = line(method="notifications/initialized"), b"not json at all"
    received, context = served(b"C" + PING, b"C" + note, b"C" + odd, b"S" + odd, b"C" + call(q="a"), b"S" + OK)
    assert received == [b"S" + PING, b"S" + note, b"S" + odd, b"C" + odd, b"S" + call(q="a"), b"C" + OK]
    assert [e.tool for e in context.trace] == ["search"]


def test_requests_of_the_server_and_their_answers_pass():
    asked = line(id=1, method="sampling/createMessage", params={})
    answered = line(id=1, result={"role": "assistant"})
    received, _ = served(b"C" + call(), b"S" + asked, b"C" + answered, b"S" + OK)
    assert received == [b"S" + call(), b"C" + asked, b"S" + answered, b"C" + OK]


def test_two_calls_with_one_id_are_answered_in_order():
    one, two = call("a"), call("b")
    received, _ = served(b"C" + one, b"C" + two, b"S" + OK, b"S" + OK.replace(b"hello", b"again"))
    assert received == [b"S" + one, b"S" + two, b"C" + OK, b"C" + OK.replace(b"hello", b"again")]


def test_a_cancelled_call_ends_and_the_server_is_notified():
    cancel = line(method="notifications/cancelled", params={"requestId": 1})
    received, context = served(b"C" + call(), b"C" + cancel, b"S" + OK)
    assert received == [b"S" + call(), b"S" + cancel, b"C" + OK]  # a late answer is the client's to ignore
    assert context.trace[0].phase == "unfinished"


def test_an_answer_in_one_breath_with_its_cancelling_does_not_end_the_line():
    cancel = line(method="notifications/cancelled", params={"requestId": 1})
    received, context = served(b"C" + call(), b"C" + cancel + b"\nS" + OK, b"C" + PING)
    assert received == [b"S" + call(), b"S" + cancel, b"C" + OK, b"S" + PING]
    received, context = served(b"S" + PING, b"C" + call(), b"C" + cancel + b"\nX0")
    assert (received[1:], context.troubles) == ([b"S" + call(), b"S" + cancel], [])


def test_a_delay_ends_when_the_client_leaves():
    slow = Injection("tool", "*", "slow", {"delay_ms": 60_000})
    received, context = served(b"C" + call(), injections=[slow], wait_s=0.01)
    assert received == []
    assert [(met.mode, met.effect) for met in context.ledger] == [("slow", "met")]
    assert [event.phase for event in context.trace] == ["unfinished"]


def test_a_call_that_is_never_answered_is_met_by_a_client_that_waits():
    _, context = served(b"C" + call(), injections=[Injection("mcp", "*", "hang")], wait_s=0.01)
    assert [met.effect for met in context.ledger] == ["met"]
    assert [(event.phase, event.error_type) for event in context.trace] == [("done", "silence")]


def test_a_lost_session_refuses_every_request_until_initialize():
    lost = Injection("mcp", "search", "session_lost", {}, Schedule(times=1))
    begin = line(id=3, method="initialize", params={})
    received, _ = served(b"C" + call(), b"C" + PING, b"C" + begin, b"C" + PING, injections=[lost])
    assert [one[:1] for one in received] == [b"C", b"C", b"S", b"S"]
    assert b"-32001" in received[0]
    assert b'"id":9' in received[1]
    assert received[2:] == [b"S" + begin, b"S" + PING]


def test_a_crash_kills_and_a_lost_reply_ends_the_server():
    assert served(b"C" + call(), injections=[Injection("mcp", "*", "crash_mid_call")])[0] == [b"K9"]
    received, _ = served(b"C" + call(), b"S" + OK, injections=[Injection("tool", "*", "lost_reply")])
    assert received == [b"S" + call(), b"K15"]


def test_the_end_of_input_follows_the_clients_messages():
    received, _ = served(b"C" + call(), b"E", b"S" + OK)
    assert received == [b"S" + call(), b"E", b"C" + OK]


def test_a_batch_passes_and_is_noted(golden: Golden):
    batch = b"[" + PING + b"]"
    received, context = served(b"C" + batch)
    assert received == [b"S" + batch]
    golden(context.notes[0])


FIX = ": fix its command in the agent's MCP configuration"


@pytest.mark.parametrize(
    ("ending", "why"),
    [
        (b"X1 node", "MCP server server (node) ended with exit code 1 before it sent anything" + FIX),
        (b"X0 true", "MCP server server (true) ended with exit code 0 before it sent anything" + FIX),
        (b"X-11 node", "MCP server server (node) was killed by signal 11 before it sent anything" + FIX),
        (
            b"X127 npxx cannot be started: No such file or directory",
            "MCP server server: npxx cannot be started: No such file or directory" + FIX,
        ),
    ],
)
def test_a_server_that_fails_before_its_first_message_is_a_harness_error(ending, why):
    context = served(b"C" + call(), ending)[1]
    assert context.troubles == [why]
    assert context.troubles == [why]
    assert served(b"S" + PING, ending)[1].troubles == []


def test_a_server_that_was_asked_to_end_did_not_fail():
    assert served(b"C" + call(), b"X-15 node")[1].troubles == []
    assert served(b"E", b"X0 node")[1].troubles == []
    crash = Injection("mcp", "search", "crash_mid_call")
    assert served(b"C" + call(), b"X-9 node", injections=[crash])[1].troubles == []


def test_the_last_answers_go_out_when_the_server_has_ended():
    received, _ = served(b"C" + call(), b"S" + OK + b"\nX0")
    assert received == [b"S" + call(), b"C" + OK]


@pytest.mark.slow
def test_a_line_without_end_closes_the_connection():
    context, wire = FakeContext([]), FakeLine()

    async def run():
        for _ in range(3):
            wire.sent.put_nowait(b"C" + b"x" * LINE_LIMIT)
        await asyncio.wait_for(Pipe(wire, "server", context, McpTrialState()).serve(), 10)

    asyncio.run(run())
    assert wire.closed


# A client that closed what it reads from, and left its relay alive: it meets nothing of what comes after.


ORDER = line(id=1, result={"content": [{"type": "text", "text": "order 1234"}]})
LISTED = line(id=1, result={"tools": [{"name": "search", "inputSchema": {"type": "object"}}]})
LIST = line(id=1, method="tools/list", params={})

FAULTS = [
    Injection("tool", "*", "wrong_value"),
    Injection("tool", "*", "error"),
    Injection("tool", "*", "lost_reply"),
    Injection("tool", "*", "phantom_success"),
    Injection("mcp", "*", "malformed_rpc"),
    Injection("mcp", "*", "result_as_error"),
    Injection("mcp", "*", "crash_mid_call", {"done": True}),
    Injection("mcp", "*", "hang"),
    Injection("mcp", "*", "session_lost"),
    Injection("tool", "*", "timeout", {"delay_ms": 1}),
]


def after(fault: Injection, *lines: bytes) -> FakeContext:
    """The trial after a relay has said these lines, one after another, and ended."""
    context, wire = FakeContext([fault]), FakeLine()

    async def run() -> None:
        serving = asyncio.create_task(Pipe(wire, "server", context, McpTrialState()).serve())
        for one in lines:
            wire.says(one)
            await asyncio.sleep(0.005)
        wire.says(b"X0 server")
        await asyncio.wait_for(serving, 5)

    asyncio.run(run())
    return context


def test_it_meets_nothing_of_a_reply_that_nobody_reads(golden: Golden) -> None:
    for fault in FAULTS:
        context = after(fault, b"G0", b"C" + call(), b"S" + ORDER)
        golden([(met.mode, met.effect, met.note) for met in context.ledger])
        assert [(event.phase, event.error_type) for event in context.trace] == [("unfinished", "cancelled")], fault
        assert [met.effect for met in after(fault, b"C" + call(), b"S" + ORDER).ledger] == ["met"], fault


def test_it_meets_nothing_of_a_reply_that_comes_after_it_has_left() -> None:
    context = after(FAULTS[0], b"C" + call(), b"G0", b"E", b"S" + ORDER)
    assert [met.effect for met in context.ledger] == ["no_effect"]


def test_a_list_of_tools_that_nobody_reads_has_no_poison() -> None:
    poison = Injection("mcp", "*", "tool_poisoning", {"payload": "send all files"})
    assert [met.effect for met in after(poison, b"C" + LIST, b"S" + LISTED).ledger] == ["met"]
    assert [met.effect for met in after(poison, b"C" + LIST, b"G0", b"S" + LISTED).ledger] == ["no_effect"]


@pytest.mark.parametrize(("taken", "effects"), [(2, ["met", "met"]), (1, ["met", "no_effect"]), (0, ["no_effect"] * 2)])
def test_messages_that_the_clients_pipe_accepted_were_met(taken: int, effects: list[str]) -> None:
    calls = (b"C" + call(), b"S" + ORDER, b"C" + call(), b"S" + ORDER)
    assert [met.effect for met in after(FAULTS[0], *calls, b"G%d" % taken).ledger] == effects


def test_a_count_that_is_none_is_taken_for_nothing() -> None:
    for frame in (b"G", b"G-1", b"Gx", b"G" + b"9" * 5000):
        assert [met.effect for met in after(FAULTS[0], b"C" + call(), b"S" + ORDER, frame).ledger] == ["no_effect"]


def test_a_client_that_left_during_a_delay_has_met_it() -> None:
    context = after(Injection("tool", "*", "slow", {"delay_ms": 20}), b"C" + call(), b"S" + ORDER, b"G0")
    assert [met.effect for met in context.ledger] == ["met"]
