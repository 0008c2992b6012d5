import pytest

from holdfast.faults.tools.timeout import Timeout
from holdfast.protocols.fault import TimedOut


def test_timeout_hangs_for_its_delay_and_never_calls_the_tool(meeting):
    m = meeting(Timeout(delay_ms=700), "rows")
    with pytest.raises(TimedOut, match="700 ms"):
        m.run()
    assert (m.slept_ms, m.forwarded) == (700, 0)


def test_timeout_of_a_tool_waits_five_seconds_by_default():
    assert Timeout().delay_ms == 5000
