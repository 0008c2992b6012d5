import pytest
from check_exhibits import exhibit

from holdfast.checks.response.output_not_empty import OutputNotEmpty


@pytest.mark.parametrize(("text", "passed"), [("x", True), (" x\n", True), ("", False), (" \n\t\u00a0", False)])
def test_whitespace_alone_is_not_output(text, passed):
    assert OutputNotEmpty().decide(exhibit(text)).passed is passed
