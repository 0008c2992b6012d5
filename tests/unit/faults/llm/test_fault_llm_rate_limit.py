import pytest

from holdfast.faults.llm.rate_limit import RateLimit
from holdfast.protocols.fault import Failed


@pytest.mark.parametrize(("fault", "seconds"), [(RateLimit(), 1), (RateLimit(retry_after_s=0.5), 0.5)])
def test_llm_rate_limit_is_429_with_the_time_to_wait(meeting, fault, seconds):
    m = meeting(fault, "hi")
    with pytest.raises(Failed, match="429") as failed:
        m.run()
    assert (failed.value.status, failed.value.retry_after_s, m.forwarded) == (429, seconds, 0)
