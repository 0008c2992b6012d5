import pytest

from holdfast.faults.tools.rate_limit import RateLimit
from holdfast.protocols.fault import Failed


def test_rate_limit_is_429_with_the_time_to_wait(meeting):
    m = meeting(RateLimit(retry_after_s=2.5))
    with pytest.raises(Failed, match="429 Too Many Requests") as failed:
        m.run()
    assert (failed.value.status, failed.value.retry_after_s, m.forwarded) == (429, 2.5, 0)


def test_rate_limit_asks_for_one_second_by_default(meet):
    with pytest.raises(Failed) as failed:
        meet(RateLimit())
    assert failed.value.retry_after_s == 1
