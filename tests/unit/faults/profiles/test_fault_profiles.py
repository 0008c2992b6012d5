import msgspec
import pytest

from holdfast import plugins
from holdfast.errors import UserError
from holdfast.faults import profiles

DOCUMENTED = [
    "api_outage",
    "cascading_failure",
    "degraded_llm",
    "high_latency",
    "hostile_tools",
    "indirect_injection",
    "model_version_drift",
]
FAMILIES = {
    "tool_faults": ("faults.tool", "mode"),
    "llm_faults": ("faults.llm", "mode"),
    "context_attacks": ("faults.context", "type"),
}
SCHEDULE = {"probability", "after_calls", "times", "every", "on_call", "match", "trigger_probability"}


def faults(profile):
    for section, (family, key) in FAMILIES.items():
        for entry in profile.get(section, []):
            yield section, family, entry[key], {k: v for k, v in entry.items() if k not in {key, "tool", *SCHEDULE}}


def test_all_documented_profiles_ship():
    assert profiles.names() == DOCUMENTED


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_profile_holds_only_faults_that_exist_with_settings_they_read(name):
    profile = profiles.load(name)
    assert set(profile) <= {"description", *FAMILIES}
    assert profile["description"].endswith(".")
    placed = list(faults(profile))
    assert placed
    for _, family, mode, settings in placed:
        plugin = plugins.find(family, mode)
        assert set(settings) <= set(plugin.__dataclass_fields__)
        fault = msgspec.convert(settings, plugin)
        assert list(fault.problems() if hasattr(fault, "problems") else ()) == []


@pytest.mark.parametrize("name", DOCUMENTED)
def test_delays_in_profiles_are_modest(name):
    assert all(settings.get("delay_ms", 0) <= 3000 for *_, settings in faults(profiles.load(name)))


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_first_call_meets_a_fault_in_every_section_but_those_that_come_later(name):
    profile = profiles.load(name)
    early = [e for s in FAMILIES for e in profile.get(s, []) if not {"after_calls", "every"} & set(e)]
    assert early


def test_each_profile_breaks_what_its_name_says():
    modes = {name: {(s, m) for s, _, m, _ in faults(profiles.load(name))} for name in DOCUMENTED}
    assert modes["api_outage"] == {("tool_faults", "error"), ("llm_faults", "timeout")}
    assert modes["degraded_llm"] == {("llm_faults", "truncated_response"), ("llm_faults", "rate_limit")}
    assert ("tool_faults", "malicious_response") in modes["hostile_tools"]
    assert ("tool_faults", "slow") in modes["high_latency"]
    assert modes["indirect_injection"] == {("context_attacks", "indirect_injection")}
    assert {("tool_faults", "error"), ("llm_faults", "timeout")} <= modes["cascading_failure"]
    assert modes["model_version_drift"] == {("llm_faults", "response_drift")}


def test_an_unknown_profile_is_refused_with_the_names_there_are():
    with pytest.raises(UserError, match="no profile is called 'outage'") as refused:
        profiles.load("outage")
    assert "api_outage" in refused.value.hint
