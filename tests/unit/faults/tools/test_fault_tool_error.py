import pytest

from holdfast.faults.tools.error import Error
from holdfast.protocols.fault import Failed


def test_error_fails_with_503_by_default_and_never_calls_the_tool(meeting):
    m = meeting(Error(), "rows")
    with pytest.raises(Failed) as failed:
        m.run()
    assert failed.value.status == 503
    assert str(failed.value) == "503 Service Unavailable"
    assert failed.value.body == {"error": {"code": 503, "message": "503 Service Unavailable"}}
    assert m.forwarded == 0


def test_error_says_what_it_is_told(meet):
    with pytest.raises(Failed, match=r"^out of order$") as failed:
        meet(Error(error_code=500, message="out of order"))
    assert failed.value.status == 500


def test_error_knows_words_for_a_status_without_any(meet):
    with pytest.raises(Failed, match=r"^599 Error$"):
        meet(Error(error_code=599))
