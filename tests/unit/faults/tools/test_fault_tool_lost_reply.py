import pytest

from holdfast.faults.tools.lost_reply import LostReply
from holdfast.protocols.fault import Dropped


def test_lost_reply_does_the_call_and_loses_the_answer(meeting):
    m = meeting(LostReply(), "created")
    with pytest.raises(Dropped):
        m.run()
    assert m.forwarded == 1
