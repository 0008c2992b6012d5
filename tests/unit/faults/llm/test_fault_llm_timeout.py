import pytest

from holdfast.faults.llm.timeout import Timeout
from holdfast.protocols.fault import TimedOut


def test_llm_timeout_hangs_and_never_asks_the_model(meeting):
    m = meeting(Timeout(delay_ms=300), "hi")
    with pytest.raises(TimedOut, match="300 ms"):
        m.run()
    assert (m.slept_ms, m.forwarded) == (300, 0)


def test_llm_timeout_waits_ten_seconds_by_default():
    assert Timeout().delay_ms == 10_000
