import pytest
from mcp_fault import Firing

from holdfast.faults.mcp.result_as_error import ResultAsError
from holdfast.protocols.fault import Failed


def test_the_result_is_in_the_data_of_an_error():
    with pytest.raises(Failed, match=r"^Internal error$") as raised:
        Firing(ResultAsError(), {"a": 1}).run()
    assert (raised.value.kind, raised.value.body) == ("rpc_error", {"a": 1})


def test_a_call_that_failed_anyway_fails_as_it_did():
    own = Failed("out of stock")
    with pytest.raises(Failed) as raised:
        Firing(ResultAsError(), raises=own).run()
    assert raised.value is own
