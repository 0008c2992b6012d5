"""The fault coverage: which faults stored trials met at which call site, on every plane."""

from __future__ import annotations

import pytest

from holdfast.hunt.fault_map import ANY_TIME, TrialResult, TriedFaults
from holdfast.model.judged import CallSite
from holdfast.model.observation import FaultMet, Observation
from holdfast.model.scenario import Injection, Scenario, Schedule
from holdfast.model.trace import TraceEvent

CONNECTION, TRANSACTION = CallSite("service", "db", 2), CallSite("transaction", "db", 2)
AFTER_WRITE, WORLD = CallSite("world", "*", 3), CallSite("world", "*", ANY_TIME)


def tried(result: TrialResult, ledger: list[FaultMet], *faults: Injection, trace: tuple[TraceEvent, ...] = ()):  # type: ignore[no-untyped-def]
    found = TriedFaults()
    found.add(Observation("t", ledger=tuple(ledger), trace=trace), Scenario("s", faults), result)
    return found


@pytest.mark.parametrize(
    ("fault", "site"),
    [
        (Injection("service", "db", "reset_peer"), CONNECTION),
        (Injection("service", "db", "killed_mid_transaction"), TRANSACTION),
        (Injection("service", "db", "killed_mid_transaction", {"at": "commit", "outcome": "done"}), TRANSACTION),
        (Injection("world", "*", "killed", {"after_event": {"write": 3}}), AFTER_WRITE),
        (Injection("world", "*", "disk_full", {"after_ms": 50}), WORLD),
    ],
    ids=lambda one: one.mode if isinstance(one, Injection) else "",
)
def test_faults_of_services_and_of_the_world_count(fault: Injection, site: CallSite) -> None:
    target = "world" if fault.plane == "world" else fault.target
    met = FaultMet(0, fault.plane, target, fault.mode, 2)
    for result in ("held", "failed"):
        assert tried(result, [met], fault).get_state(site, fault.mode).state == result  # type: ignore[arg-type]
    assert tried("unjudged", [met], fault).get_state(site, fault.mode).state == "open"
    unmet = FaultMet(0, fault.plane, target, fault.mode, 2, "no_effect")
    assert tried("held", [unmet], fault).get_state(site, fault.mode).state == "not met"
    assert tried("held", [], fault).get_state(site, fault.mode).state == "not met"


@pytest.mark.parametrize(
    ("fault", "site"),
    [
        (Injection("tool", "find*", "error"), CallSite("tool", "find_order", 1)),
        (Injection("tool", "mail", "error", match_url="http://smtp/*"), CallSite("http", "http://smtp/api", 1)),
        (Injection("llm", "*", "rate_limit"), CallSite("llm", "*", 4)),
        (Injection("tool", "find_order", "error", schedule=Schedule(on_call=2)), CallSite("tool", "find_order", 2)),
    ],
)
def test_a_fault_that_never_fired_was_not_met(fault: Injection, site: CallSite) -> None:
    found = tried("held", [], fault)
    assert found.get_state(site, fault.mode).state == "not met"
    assert found.get_state(CallSite("tool", "other", 1), fault.mode).state == "open"


def test_a_fault_on_a_retry_counts_for_the_call() -> None:
    trace = (
        TraceEvent(0.0, "llm_call", "gpt", "llm", n=1, error_type="429"),
        TraceEvent(0.1, "llm_call", "gpt", "llm", n=2, retry=1),
        TraceEvent(0.2, "llm_call", "gpt", "llm", n=3),
    )
    fault = Injection("llm", "*", "rate_limit")
    found = tried("held", [FaultMet(0, "llm", "gpt", "rate_limit", 2, retry=1)], fault, trace=trace)
    assert found.get_state(CallSite("llm", "*", 1), "rate_limit").state == "held"
    assert found.get_state(CallSite("llm", "*", 2), "rate_limit").state == "open"


def test_two_faults_that_failed_together_say_nothing_about_each() -> None:
    faults = Injection("service", "db", "reset_peer"), Injection("world", "*", "disk_full")
    ledger = [FaultMet(0, "service", "db", "reset_peer", 2), FaultMet(1, "world", "world", "disk_full", 1)]
    found = tried("failed", ledger, *faults)
    assert (found.get_state(CONNECTION, "reset_peer").state, found.list_met_modes()) == ("open", {})
