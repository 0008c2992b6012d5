"""What a planner learns of a trial: codes, the ledger and call sites."""

from __future__ import annotations

import pytest

from holdfast.hunt.judged_trial import build_judged_trial
from holdfast.hunt.lineage import trace_lineage
from holdfast.model.fingerprint import fingerprints, followed_values
from holdfast.model.judged import CallSite, VerdictCode
from holdfast.model.observation import FaultMet, Observation, ServiceExchange, Turn
from holdfast.model.trace import REFUSED, Cost, TraceEvent
from holdfast.model.verdict import Verdict
from holdfast.model.world import AuditEvent, FileTexts


def event(tool: str, plane: str = "tool", **more: object) -> TraceEvent:
    return TraceEvent(0.0, "http_call" if plane == "http" else "tool_call", tool, plane, **more)  # type: ignore[arg-type]


def feeds(observation: Observation) -> list[tuple[int, int | str]]:
    """The source of each feed, and where it appears: the number of a call, a file, a row, or `answer`."""
    found = trace_lineage(observation).feeds
    return [(one.source, one.name or one.kind if one.target is None else one.target) for one in found]


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
    assert build_judged_trial(Observation("t", trace=trace), ()).calls == (
        CallSite("tool", "search", 1),
        CallSite("tool", "search", 2),
        CallSite("http", "http://shop.test/a", 1),
        CallSite("http", "http://shop.test/a", 2),
    )


def test_verdicts_are_values_without_words() -> None:
    met = FaultMet(0, "tool", "search", "error", 1)
    seen = Observation("t", (Turn("?", ending="raised"),), (met,))
    found = build_judged_trial(seen, [Verdict("t", "says", "fail", 0.0, "some words", code="missing", key=("total",))])
    assert found.verdicts == (VerdictCode("says", "fail", "missing", ("total",)),)
    assert (found.trial, found.ending, found.ledger) == ("t", "raised", (met,))


def test_a_reply_feeds_what_later_sends_its_values() -> None:
    turn = Turn("Charge order-7781 for 5 days", text="Charged $1,219.50, receipt R-99310.")
    trace = (
        event("find", input='{"order_id": "order-7781"}', output='{"customer": "C-40417", "total": 1219.5, "days": 5}'),
        event("charge", input='{"customer": "c-40417", "order": "order-7781"}', output='{"receipt": "R-99310"}'),
        event("log", input='{"days": 5}', output="customer noted"),
    )
    seen = Observation("t", (turn,), trace=trace)
    # What was asked, a short number and a key of JSON are no lineage.
    assert feeds(seen) == [(0, 1), (0, "answer"), (1, "answer")]
    assert trace_lineage(seen).feeds[0].values == ("C-40417",)


def test_a_reply_feeds_the_path_of_a_url() -> None:
    trace = (
        event("find", output='{"customer": "C-40417", "city": "S\\u00e3o Bernardo"}'),
        event("GET http://crm.test/customers/c-40417?city=S%C3%A3o+Bernardo", "http", output="ok"),
        event("GET http://c-40417.test/other", "http"),
    )
    assert feeds(Observation("t", trace=trace)) == [(0, 1)]
    assert trace_lineage(Observation("t", trace=trace)).feeds[0].values == ("Bernardo", "C-40417")


def test_the_reply_to_a_retry_feeds_as_that_of_the_call() -> None:
    trace = (
        event("find", n=1, error_type="timeout"),
        event("find", n=2, retry=1, output="C-40417"),
        event("charge", input="C-40417"),
    )
    assert feeds(Observation("t", trace=trace)) == [(0, 1)]


def test_a_call_inside_of_another_is_not_fed_by_the_reply_of_the_outer_one() -> None:
    trace = (
        event("book", duration_ms=10.0, output="R-99310"),
        TraceEvent(0.001, "http_call", "POST http://shop.test/", "http", input="R-99310"),
    )
    assert feeds(Observation("t", trace=trace)) == []


def test_a_reply_feeds_files_and_rows() -> None:
    def exchange(at: float, n: int, sent: str = "", received: str = "", *tables: str) -> ServiceExchange:
        values = (fingerprints(followed_values(text)) for text in (sent, received))
        return ServiceExchange(at, at, "transaction", "db", n, *values, tables=tables)

    seen = Observation(
        "t",
        calls={"transaction:db": 2, "find": 1},
        trace=(TraceEvent(2.0, "tool_call", "find", "tool", input="C-40417", output="receipt R-99310"),),
        exchanges=(exchange(1.0, 1, "", "C-40417"), exchange(3.0, 2, "R-99310", "", "orders")),
        audit=(
            AuditEvent(4.0, 1, "file_write", {"path": "log.txt"}, FileTexts("C-40417", "C-40417 paid")),
            AuditEvent(4.0, 2, "file_write", {"path": "bill.txt"}, FileTexts(None, "receipt R-99310")),
        ),
    )
    # Transactions come first in the numbers, because only their count is certain.
    assert feeds(seen) == [(0, 2), (2, 1), (2, "bill.txt"), (2, "db.orders")]
    found = trace_lineage(seen)
    assert (found.order, found.rows) == ((0, 2, 1), (1,))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1219.5", "$1,219.50"),
        ("1219.5", "1.219,50 EUR"),
        ("order C-40417", "c_40417"),
        ("/orders/C-40417/items", "C-40417"),
        ("receipt:R-99310", "R-99310."),
        ("caf\u00e9 Montm\u00e9dy", '"caf\\u00e9 Montm\\u00e9dy"'),
    ],
)
def test_values_have_one_spelling(one: str, other: str) -> None:
    assert followed_values(one).keys() & followed_values(other)


def test_ids_of_two_kinds_are_two_values() -> None:
    assert not followed_values("customer C-40417").keys() & followed_values("receipt R-40417, total 40417")


def test_short_values_and_keys_are_accidents() -> None:
    assert followed_values('{"customer_number": 12, "state": "paid", "day": "07"}') == {}


def test_a_live_model_makes_a_trial_unscripted() -> None:
    live = TraceEvent(0.0, "llm_call", "gpt", "llm", cost=Cost("gpt", 1, 1))
    found = build_judged_trial(
        Observation("t", trace=(live, event("charge", write=True), event("send", write=True, unsent=True))), ()
    )
    assert (found.scripted, found.writes, found.calls[0].target) == (False, (1,), "*")
