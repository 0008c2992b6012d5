import pytest

from holdfast.faults.tools.auth_expired import AuthExpired
from holdfast.protocols.fault import Failed


def test_auth_expired_is_401_and_never_calls_the_tool(meeting):
    m = meeting(AuthExpired())
    with pytest.raises(Failed, match="expired") as failed:
        m.run()
    assert (failed.value.status, m.forwarded) == (401, 0)


def test_auth_expired_says_what_it_is_told(meet):
    with pytest.raises(Failed, match=r"^log in again$"):
        meet(AuthExpired(message="log in again"))
