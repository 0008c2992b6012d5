"""Whose names do not resolve."""

from holdfast.model.scenario import Injection, Scenario
from holdfast.planes.tcp.names import list_unresolved


def test_names_that_a_fault_may_keep_from_resolving():
    scenario = Scenario(
        "s",
        (
            Injection("service", "db", "dns_failure"),
            Injection("service", "cache", "down"),
            Injection("http", "*", "dns_failure"),
        ),
    )
    assert list_unresolved(scenario) == {"db"}
