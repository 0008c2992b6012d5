import msgspec
import pytest

from error_code import has_code
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
TOP14 = [
    "rate-limit-burst",
    "overloaded-burst",
    "stream-cut",
    "silent-truncation",
    "empty-choices",
    "content-filter",
    "malformed-tool-call",
    "tool-error-then-heal",
    "tool-hang",
    "lost-reply",
    "wrong-value",
    "empty-result",
    "mcp-session-lost",
    "indirect-injection",
]
FAMILIES = {
    "tool_faults": ("faults.tool", "mode"),
    "llm_faults": ("faults.llm", "mode"),
    "context_attacks": ("faults.context", "type"),
    "mcp_faults": ("faults.mcp", "mode"),
}
SCHEDULE = {"probability", "after_calls", "times", "every", "on_call", "match", "match_url", "trigger_probability"}


def faults(profile):
    for section, (family, key) in FAMILIES.items():
        for entry in profile.get(section, []):
            yield section, family, entry[key], {k: v for k, v in entry.items() if k not in {key, "tool", *SCHEDULE}}


def test_all_documented_profiles_ship():
    assert profiles.list_profiles() == [*DOCUMENTED, "top14"]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_profile_holds_only_faults_that_exist_with_settings_they_read(name):
    profile = profiles.load_profile(name)
    assert set(profile) <= {"description", *FAMILIES}
    assert profile["description"].endswith(".")
    assert_made(profile)


def assert_made(profile):
    placed = list(faults(profile))
    assert placed
    for _, family, mode, settings in placed:
        plugin = plugins.find(family, mode)
        assert set(settings) <= set(plugin.__dataclass_fields__)
        fault = msgspec.convert(settings, plugin)
        assert list(fault.problems() if hasattr(fault, "problems") else ()) == []


@pytest.mark.parametrize("name", DOCUMENTED)
def test_delays_in_profiles_are_modest(name):
    assert all(settings.get("delay_ms", 0) <= 3000 for *_, settings in faults(profiles.load_profile(name)))


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_first_call_meets_a_fault_in_every_section_but_those_that_come_later(name):
    profile = profiles.load_profile(name)
    early = [e for s in FAMILIES for e in profile.get(s, []) if not {"after_calls", "every"} & set(e)]
    assert early


def test_each_profile_breaks_what_its_name_says():
    modes = {name: {(s, m) for s, _, m, _ in faults(profiles.load_profile(name))} for name in DOCUMENTED}
    assert modes["api_outage"] == {("tool_faults", "error"), ("llm_faults", "timeout")}
    assert modes["degraded_llm"] == {("llm_faults", "truncated_response"), ("llm_faults", "rate_limit")}
    assert ("tool_faults", "malicious_response") in modes["hostile_tools"]
    assert ("tool_faults", "slow") in modes["high_latency"]
    assert modes["indirect_injection"] == {("context_attacks", "indirect_injection")}
    assert {("tool_faults", "error"), ("llm_faults", "timeout")} <= modes["cascading_failure"]
    assert modes["model_version_drift"] == {("llm_faults", "response_drift")}


def test_an_unknown_profile_is_refused_with_the_names_there_are():
    with pytest.raises(UserError, check=has_code("profile-unknown")) as refused:
        profiles.load_profile("outage")
    assert "api_outage" in refused.value.hint


# -- top14 --------------------------------------------------------------------------------------
def top14():
    return {scenario["name"]: scenario for scenario in profiles.load_profile("top14")["scenarios"]}


def test_top14_is_fourteen_scenarios_of_the_faults_best_evidenced_in_public():
    profile = profiles.load_profile("top14")
    assert set(profile) == {"description", "scenarios"}
    assert [scenario["name"] for scenario in profile["scenarios"]] == TOP14


def test_a_scenario_of_a_profile_holds_only_faults_that_exist_with_settings_they_read():
    for name in TOP14:
        scenario = top14()[name]
        assert set(scenario) <= {"name", *FAMILIES}, name
        assert_made(scenario)


def test_each_scenario_of_top14_breaks_one_thing():
    modes = {name: {mode for *_, mode, _ in faults(scenario)} for name, scenario in top14().items()}
    assert all(len(found) == 1 for found in modes.values())
    assert len({mode for found in modes.values() for mode in found}) == 14


def test_bursts_of_top14_are_two_and_then_it_heals():
    for name in ("rate-limit-burst", "overloaded-burst", "tool-error-then-heal"):
        (entry,) = next(iter(top14()[name][section] for section in FAMILIES if section in top14()[name]))
        assert entry["times"] == 2


def test_a_hang_of_top14_is_shorter_than_an_agents_usual_limit():
    assert [entry["delay_ms"] for entry in top14()["tool-hang"]["tool_faults"]] == [5000, 5000]


def test_silent_truncation_claims_to_be_whole():
    (entry,) = top14()["silent-truncation"]["llm_faults"]
    assert entry["silent"] is True


@pytest.mark.parametrize("name", ["tool-hang", "lost-reply"])
def test_faults_that_results_cannot_show_also_act_by_url(name):
    by_name, by_url = top14()[name]["tool_faults"]
    assert by_url == {**by_name, "match_url": "*"}
