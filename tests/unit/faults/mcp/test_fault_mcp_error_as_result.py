from mcp_fault import Firing

from holdfast.faults.mcp.error_as_result import ErrorAsResult
from holdfast.protocols.fault import Failed


def test_the_servers_own_error_becomes_the_result():
    assert Firing(ErrorAsResult(), raises=Failed("out of stock")).run() == "out of stock"


def test_a_call_that_went_well_gives_the_message():
    firing = Firing(ErrorAsResult(message="Error: no"))
    assert firing.run() == "Error: no"
    assert len(firing.forwarded) == 1
