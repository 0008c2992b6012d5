"""Why a fault of a service or of the machine was never met, in words."""

from holdfast.model.scenario import Injection, Scenario
from holdfast.score.unmet import CALLED, NOT_CALLED, called_instead, never_met, was_called

DOWN = Injection("service", "db", "down")
FULL = Injection("world", "*", "disk_full", {"after_ms": 500})


def test_a_service_that_nobody_connected_to_is_named():
    why = never_met(Scenario("s", (DOWN,)), [0], NOT_CALLED)
    assert (why.code, why.key) == ("fault-not-called", ("the service db",))
    assert not was_called([DOWN], {"service:cache": 1, "transaction:db": 1})


def test_a_connection_that_met_nothing_was_not_due():
    assert was_called([DOWN], {"service:db": 1})
    why = never_met(Scenario("s", (DOWN,)), [0], CALLED)
    assert (why.code, why.key) == ("fault-not-due", ("the service db",))


def test_a_fault_of_the_machine_was_not_due():
    assert never_met(Scenario("s", (FULL,)), [0], NOT_CALLED).code == "fault-not-due"


def test_a_model_that_was_asked_in_a_format_nobody_reads_is_named() -> None:
    calls = {"unread:bedrock-runtime.eu-west-1.amazonaws.com speaks Bedrock Converse": 1}
    beside = called_instead([Injection("llm", "*", "rate_limit")], calls)
    assert beside.startswith("bedrock-runtime.eu-west-1.amazonaws.com speaks Bedrock Converse")
    assert called_instead([Injection("tool", "*", "error")], calls) == ""
