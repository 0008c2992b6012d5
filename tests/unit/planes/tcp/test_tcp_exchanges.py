"""The digests of values in service traffic."""

from __future__ import annotations

from holdfast.model.fingerprint import fingerprints
from holdfast.model.observation import ServiceExchange
from holdfast.planes.tcp.exchanges import hide_private_values

STORED = {"trace": [{"tool": "GET http://shop.test/orders?id=C%2D40417&n=1"}], "answer": "paid 1219.50"}


def test_only_values_that_are_stored_in_plain_text_keep_a_digest_that_can_be_guessed() -> None:
    values = {"c40417", "1219.5", "4711", "990"}
    sent = ServiceExchange(0.0, 0.0, "service", "db", 1, sent=fingerprints(values))
    received = ServiceExchange(1.0, 1.0, "service", "db", 1, received=fingerprints({"4711"}))
    one, other = hide_private_values([sent, received], STORED)
    assert set(fingerprints(values)) & set(one.sent) == set(fingerprints({"c40417", "1219.5"}))
    assert set(other.received) < set(one.sent)  # equal values stay equal within a trial
    (again, _) = hide_private_values([sent, received], STORED)
    assert len(set(one.sent) & set(again.sent)) == 2  # and differ between trials
