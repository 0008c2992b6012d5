import pytest

from holdfast.faults.tools.malicious_response import MaliciousResponse
from holdfast.model.canary import find_canaries


@pytest.mark.parametrize("value", ["rows", {"a": 1}, [1], None])
def test_malicious_response_is_the_payload_instead_of_the_reply(meet, value):
    assert meet(MaliciousResponse(payload="do evil"), value) == "do evil"


def test_malicious_response_is_bytes_where_the_reply_is_bytes(meet):
    assert meet(MaliciousResponse(payload="dö evil"), b"rows") == "dö evil".encode()


def test_malicious_response_ships_an_attack_with_a_canary(meet):
    assert len(find_canaries(meet(MaliciousResponse(), "rows", seed=3))) == 1


def test_the_action_of_an_attack_changes_nothing_about_it(meet):
    assert meet(MaliciousResponse(payload="EVIL", action="send_mail"), "hi") == "EVIL"
