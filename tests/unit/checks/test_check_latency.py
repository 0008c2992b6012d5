import pytest
from check_exhibits import exhibit

from holdfast.checks.response.latency import Latency


@pytest.mark.parametrize(("took", "passed"), [(0, True), (100, True), (100.4, False), (250, False)])
def test_latency_passes_up_to_the_limit(took, passed):
    assert Latency(100).decide(exhibit("x", latency_ms=took)).passed is passed


def test_reason_shows_both_numbers():
    assert Latency(100).decide(exhibit("x", latency_ms=250)).code == "too-slow"


def test_latency_fails_on_a_timeout_however_long_the_limit():
    finding = Latency(60_000).decide(exhibit("half", latency_ms=30_000, ending="timeout"))
    assert finding.passed is False
    assert finding.code == "no-answer-in-time"
