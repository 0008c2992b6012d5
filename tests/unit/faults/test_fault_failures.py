"""Faults that make a call fail: the kind of failure, and whether the other side was called before."""

from typing import Any

import pytest

from holdfast.faults.llm.context_length import ContextLength
from holdfast.faults.llm.overloaded import Overloaded
from holdfast.faults.llm.quota import Quota
from holdfast.faults.llm.rate_limit import RateLimit as ModelRateLimit
from holdfast.faults.llm.server_error import ServerError
from holdfast.faults.llm.timeout import Timeout as ModelTimeout
from holdfast.faults.mcp.crash_mid_call import CrashMidCall
from holdfast.faults.mcp.error_as_result import ErrorAsResult
from holdfast.faults.mcp.hang import Hang
from holdfast.faults.mcp.malformed_rpc import MalformedRpc
from holdfast.faults.mcp.result_as_error import ResultAsError
from holdfast.faults.mcp.session_lost import SessionLost
from holdfast.faults.tools.auth_expired import AuthExpired
from holdfast.faults.tools.error import Error
from holdfast.faults.tools.lost_reply import LostReply
from holdfast.faults.tools.rate_limit import RateLimit
from holdfast.faults.tools.timeout import Timeout
from holdfast.protocols.fault import Dropped, Failed, TimedOut


@pytest.mark.parametrize(
    ("fault", "failure", "words", "expected"),
    [
        (Error(), Failed, "503 Service Unavailable", {"status": 503}),
        (Error(error_code=500, message="out of order"), Failed, "out of order", {"status": 500}),
        (Error(error_code=599), Failed, "599 Error", {"status": 599}),
        (AuthExpired(), Failed, "401 Unauthorized: the token has expired", {"status": 401}),
        (AuthExpired(message="log in again"), Failed, "log in again", {"status": 401}),
        (RateLimit(), Failed, "429 Too Many Requests", {"status": 429, "retry_after_s": 1}),
        (RateLimit(retry_after_s=2.5), Failed, "429 Too Many Requests", {"status": 429, "retry_after_s": 2.5}),
        (LostReply(), Dropped, "search: the connection was lost", {"forwarded": 1}),
        (Timeout(), TimedOut, "search: no answer after 5000 ms", {"slept_ms": 5000}),
        (Timeout(delay_ms=700), TimedOut, "search: no answer after 700 ms", {"slept_ms": 700}),
        (ModelTimeout(), TimedOut, "", {"slept_ms": 10_000}),
        (ModelRateLimit(), Failed, "429 ", {"kind": "rate_limit", "status": 429, "retry_after_s": 1}),
        (ModelRateLimit(retry_after_s=None), Failed, "429 ", {"kind": "rate_limit", "status": 429}),
        (Overloaded(), Failed, "503 ", {"kind": "overloaded", "status": 503}),
        (Overloaded(shape="stream_error"), Failed, "503 ", {"kind": "overloaded", "status": 503, "forwarded": 1}),
        (ServerError(), Failed, "500 ", {"kind": "server_error", "status": 500}),
        (ServerError(status=502), Failed, "502 ", {"kind": "server_error", "status": 502}),
        (ContextLength(), Failed, "400 ", {"kind": "context_length", "status": 400}),
        (Quota(), Failed, "429 ", {"kind": "quota", "status": 429}),
        (SessionLost(), Failed, "Session not found", {"kind": "session_lost", "status": 404}),
        (Hang(), TimedOut, "", {"kind": "hang"}),
        (Hang(done=True), TimedOut, "", {"kind": "hang", "forwarded": 1}),
        (CrashMidCall(), Dropped, "", {"kind": "crash"}),
        (CrashMidCall(done=True), Dropped, "", {"kind": "crash", "forwarded": 1}),
        (MalformedRpc(), Failed, "", {"kind": "malformed_rpc", "forwarded": 1}),
        (ResultAsError(), Failed, "Internal error", {"kind": "rpc_error", "forwarded": 1}),
    ],
    ids=lambda one: type(one).__name__ if hasattr(one, "apply") else None,
)
def test_a_fault_fails_the_call(
    meeting: Any, fault: Any, failure: type[Failed], words: str, expected: dict[str, Any]
) -> None:
    call = meeting(fault, "the reply")
    with pytest.raises(Failed) as raised:
        call.run()
    failed = raised.value
    found = {"kind": failed.kind, "status": failed.status, "retry_after_s": failed.retry_after_s}
    found |= {"forwarded": call.forwarded, "slept_ms": call.slept_ms}
    defaults = {"kind": "", "status": None, "retry_after_s": None, "forwarded": 0, "slept_ms": 0}
    assert found == {**defaults, **expected}
    assert type(failed) is failure
    assert str(failed).startswith(words)


@pytest.mark.parametrize("fault", [Error(), Overloaded(), RateLimit()])
def test_the_body_of_a_failure_repeats_its_message(meet: Any, fault: Any) -> None:
    with pytest.raises(Failed) as raised:
        meet(fault)
    assert raised.value.body == {"error": {"code": raised.value.status, "message": str(raised.value)}}


def test_a_server_error_can_be_the_page_of_a_gateway(meet: Any) -> None:
    with pytest.raises(Failed) as raised:
        meet(ServerError(status=502, body="html"))
    assert (raised.value.kind, raised.value.status) == ("html", 502)
    assert raised.value.body.startswith("<html>")
    assert "502 Bad Gateway" in raised.value.body


def test_a_result_becomes_the_data_of_an_mcp_error(meet: Any) -> None:
    with pytest.raises(Failed) as raised:
        meet(ResultAsError(), {"a": 1})
    assert raised.value.body == {"a": 1}


@pytest.mark.parametrize("fault", [ResultAsError(), ErrorAsResult()])
def test_the_servers_own_failure_meets_the_faults_of_results(meeting: Any, fault: Any) -> None:
    own = Failed("out of stock")
    call = meeting(fault, raises=own)
    if isinstance(fault, ErrorAsResult):
        assert call.run() == "out of stock"
    else:
        with pytest.raises(Failed) as raised:
            call.run()
        assert raised.value is own
