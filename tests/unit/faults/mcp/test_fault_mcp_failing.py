"""Faults that end a call by failing it: how each says what happens to the connection."""

import pytest
from mcp_fault import Firing

from holdfast.faults.mcp.crash_mid_call import CrashMidCall
from holdfast.faults.mcp.hang import Hang
from holdfast.faults.mcp.malformed_rpc import MalformedRpc
from holdfast.faults.mcp.session_lost import SessionLost
from holdfast.protocols.fault import Dropped, Failed, TimedOut


@pytest.mark.parametrize(
    ("fault", "kind", "failure", "asked"),
    [
        (SessionLost(), "session_lost", Failed, 0),
        (Hang(), "hang", TimedOut, 0),
        (Hang(done=True), "hang", TimedOut, 1),
        (CrashMidCall(), "crash", Dropped, 0),
        (CrashMidCall(done=True), "crash", Dropped, 1),
        (MalformedRpc(), "malformed_rpc", Failed, 1),
    ],
)
def test_a_failing_fault_says_what_happens_and_whether_the_server_was_asked(fault, kind, failure, asked):
    firing = Firing(fault)
    with pytest.raises(Failed) as raised:
        firing.run()
    assert (type(raised.value), raised.value.kind, len(firing.forwarded)) == (failure, kind, asked)


def test_session_lost_says_what_servers_say():
    with pytest.raises(Failed, match=r"^Session not found$") as raised:
        Firing(SessionLost()).run()
    assert raised.value.status == 404
