"""What a planner learns of a trial: codes, the ledger and call sites."""

from __future__ import annotations

from holdfast.hunt.sites import judged_trial, lineage
from holdfast.model.judged import CallSite, Feed, VerdictCode
from holdfast.model.observation import FaultMet, Observation, Turn
from holdfast.model.trace import REFUSED, Cost, TraceEvent
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


def test_a_reply_feeds_what_later_sends_its_values() -> None:
    turn = Turn("Charge order-7781 for 5 days", text="Charged $1,219.50, receipt R-99310.")
    trace = (
        event("find", input='{"order_id": "order-7781"}', output='{"customer": "C-40417", "total": 1219.5, "days": 5}'),
        event("charge", input='{"customer": "c-40417", "order": "order-7781"}', output='{"receipt": "R-99310"}'),
        event("log", input='{"days": 5}', output="customer noted"),
    )
    # What was asked, a short number and a key of JSON are no lineage.
    assert list(lineage(Observation("t", (turn,), trace=trace))) == [Feed(0, 1), Feed(0, None), Feed(1, None)]


def test_a_live_model_makes_a_trial_unscripted() -> None:
    live = TraceEvent(0.0, "llm_call", "gpt", "llm", cost=Cost("gpt", 1, 1))
    found = judged_trial(
        Observation("t", trace=(live, event("charge", write=True), event("send", write=True, unsent=True))), ()
    )
    assert (found.scripted, found.writes, found.calls[0].target) == (False, (1,), "*")
