import json

import pytest

from holdfast.faults.tools.error_in_body import ErrorInBody

BODY = {"error": {"code": 500, "message": "no stock"}, "status": "error"}


@pytest.mark.parametrize("value", [{"a": 1}, [1], 5, None])
def test_error_in_body_is_a_body_that_says_it_failed(meeting, value):
    m = meeting(ErrorInBody(message="no stock"), value)
    assert m.run() == BODY
    assert m.forwarded == 1


def test_error_in_body_is_json_text_where_the_reply_is_text(meet):
    assert json.loads(meet(ErrorInBody(message="no stock"), "rows")) == BODY
    received = meet(ErrorInBody(message="no stock", error_code=17), b"rows")
    assert isinstance(received, bytes)
    assert json.loads(received)["error"]["code"] == 17
