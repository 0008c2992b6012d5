"""What a planner learns of a trial: codes, the ledger and call sites."""

from __future__ import annotations

from holdfast.model.judged import CallSite, VerdictCode, judged_trial
from holdfast.model.observation import FaultMet, Observation, Turn
from holdfast.model.trace import REFUSED, TraceEvent
from holdfast.model.verdict import Verdict


def event(tool: str, plane: str = "tool", **more: object) -> TraceEvent:
    return TraceEvent(0.0, "http_call" if plane == "http" else "tool_call", tool, plane, **more)  # type: ignore[arg-type]


def test_retries_belong_to_the_call_that_they_repeat() -> None:
    trace = (
        event("search", n=1),
        event("search", n=2, retry=1),
        event("search", n=3),
        event("GET http://shop.test/a", "http"),
        event("POST http://shop.test/a", "http"),
        event("pay", phase="declared"),
        event("GET http://elsewhere.test/", "http", error_type=REFUSED),
    )
    assert judged_trial(Observation("t", trace=trace), ()).calls == (
        CallSite("tool", "search", 1),
        CallSite("tool", "search", 2),
        CallSite("http", "http://shop.test/a", 1),
        CallSite("http", "http://shop.test/a", 2),
    )


def test_verdicts_are_values_without_words() -> None:
    met = FaultMet(0, "tool", "search", "error", 1)
    seen = Observation("t", (Turn("?", ending="raised"),), (met,))
    found = judged_trial(seen, [Verdict("t", "says", "fail", 0.0, "some words", code="missing", key=("total",))])
    assert found.verdicts == (VerdictCode("says", "fail", "missing", ("total",)),)
    assert (found.trial, found.ending, found.ledger) == ("t", "raised", (met,))
