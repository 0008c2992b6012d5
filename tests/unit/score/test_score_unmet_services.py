"""Why a fault of a service or of the machine was never met, in words."""

from holdfast.model.scenario import Injection, Scenario
from holdfast.score.unmet import CALLED, NOT_CALLED, describe_other_calls, explain_unmet, has_target_call

DOWN = Injection("service", "db", "down")
FULL = Injection("world", "*", "disk_full", {"after_ms": 500})


def test_a_service_that_nobody_connected_to_is_named():
    why = explain_unmet(Scenario("s", (DOWN,)), [0], NOT_CALLED)
    assert (why.code, why.key) == ("fault-not-called", ("the service db",))
    assert not has_target_call([DOWN], {"service:cache": 1, "transaction:db": 1})


def test_a_connection_that_met_nothing_was_not_due():
    assert has_target_call([DOWN], {"service:db": 1})
    why = explain_unmet(Scenario("s", (DOWN,)), [0], CALLED)
    assert (why.code, why.key) == ("fault-not-due", ("the service db",))


def test_a_fault_of_the_machine_was_not_due():
    assert explain_unmet(Scenario("s", (FULL,)), [0], NOT_CALLED).code == "fault-not-due"


def test_a_model_that_was_asked_in_a_format_nobody_reads_is_named() -> None:
    calls = {"unread:bedrock-runtime.eu-west-1.amazonaws.com speaks Bedrock Converse": 1}
    beside = describe_other_calls([Injection("llm", "*", "rate_limit")], calls)
    assert beside.startswith("bedrock-runtime.eu-west-1.amazonaws.com speaks Bedrock Converse")
    assert describe_other_calls([Injection("tool", "*", "error")], calls) == ""
