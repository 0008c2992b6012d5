"""Profiles that hold several scenarios: how they expand, and what an agent cannot meet of them."""

from spec_texts import HTTP, RULES

from golden_words import Golden
from holdfast.faults import profiles

NAMES = [scenario["name"] for scenario in profiles.load_profile("top14")["scenarios"]]
STARTED = """
agent: {type: command, command: ./run%s}
golden_prompts: [hello]
"""
SERVERS = ", mcp_config: {mcpServers: {files: {command: files-server}}}"
RUNNING = HTTP.replace(", simulate: answer", "")
FUNCTIONS = """
agent: {type: python, endpoint: "bot:ask", tools: ["bot:search"], llm: "bot:model"}
golden_prompts: [hello]
"""


def matrix(entry, agent):
    return f"{agent}{RULES}chaos_matrix:\n  - {{name: calm}}\n  - {{{entry}}}\n"


def names(spec):
    return [scenario.name for scenario in spec.scenarios]


def left_out(file, text, **more):
    warned = file.warnings(text, "left-out-scenario", **more)
    return {problem.values[0]: problem for problem in warned}


def test_profile_with_scenarios_expands_under_the_entrys_name(file):
    spec = file.spec(matrix("name: bad days, profile: top14", STARTED % SERVERS))
    assert names(spec) == ["calm", *(f"bad days/{name}" for name in NAMES)]
    first = spec.get_scenario("bad days/rate-limit-burst")
    (one,) = first.injections
    assert (one.mode, one.settings, one.schedule.times) == ("rate_limit", {"retry_after_s": 1}, 2)
    assert first.profile == "top14"


def test_profile_option_expands_under_the_profiles_name(file):
    spec = file.spec(STARTED % SERVERS + RULES, profile="top14")
    assert names(spec) == ["no-chaos", *(f"top14/{name}" for name in NAMES)]


def test_profile_option_is_where_its_scenarios_are_left_out(file):
    (problem,) = left_out(file, STARTED % "" + RULES, profile="top14").values()
    assert problem.path == "--profile"


def test_profile_option_adds_nothing_to_a_matrix_that_names_it(file):
    text = matrix("name: top14, profile: top14", STARTED % SERVERS)
    assert names(file.spec(text, profile="top14")) == names(file.spec(text))


def test_own_faults_come_after_those_of_each_scenario(file):
    spec = file.spec(matrix("name: x, profile: top14, llm_faults: [{mode: garbage}]", STARTED % SERVERS))
    assert all(len(s.injections) >= 2 and s.injections[-1].mode == "garbage" for s in spec.scenarios[1:])


def test_scenario_the_agent_cannot_meet_is_left_out_by_name_with_the_reason(file):
    text = matrix("name: x, profile: top14", STARTED % "")
    (name, problem), *more = left_out(file, text).items()
    assert (name, more) == ("x/mcp-session-lost", [])
    assert problem.path == "chaos_matrix[1].profile"
    assert problem.line > 1
    assert "MCP" in problem.message
    assert "agent.mcp_config" in problem.hint
    assert name not in names(file.spec(text))
    assert len(names(file.spec(text))) == 14


def test_scenario_of_which_something_is_left_stays_and_names_the_rest(file):
    spec = file.spec(matrix("name: x, profile: top14", STARTED % ""))
    hang = spec.get_scenario("x/tool-hang")
    assert hang.left_out == ("tool timeout on *",)
    assert [i.match_url for i in hang.injections] == ["*"]


def test_model_functions_meet_those_of_top14_that_are_not_of_the_wire(file):
    text = matrix("name: x, profile: top14", FUNCTIONS)
    assert set(left_out(file, text)) == {
        "x/stream-cut", "x/empty-choices", "x/malformed-tool-call", "x/mcp-session-lost",
    }  # fmt: skip
    assert len(names(file.spec(text))) == 1 + 10


def test_profile_of_which_no_scenario_is_left_is_one_error(file, golden: Golden):
    found = file.error(matrix("name: x, profile: top14", RUNNING))
    assert (found.code, found.path) == ("unreachable-fault", "chaos_matrix[1].profile")
    golden(found.message)
    problems = file.check(RUNNING + RULES, profile="top14").problems
    assert [p.code for p in problems if p.severity == "error"] == ["unreachable-fault"]
    assert not [p for p in problems if p.code == "left-out-scenario"]


def test_own_faults_do_not_save_scenarios_that_nothing_meets(file):
    entry = "name: x, profile: top14, context_attacks: [{type: overflow}]"
    assert file.error(matrix(entry, RUNNING)).code == "unreachable-fault"
    assert file.spec(matrix(entry.replace("top14", "degraded_llm"), RUNNING)).get_scenario("x").left_out


def test_own_fault_that_cannot_be_met_is_told_once(file):
    entry = "name: x, profile: top14, tool_faults: [{tool: t, mode: timeout}]"
    found = file.error(matrix(entry, STARTED % ""))
    assert found.path == "chaos_matrix[1].tool_faults[0]"


def test_mcp_faults_of_an_agent_whose_servers_are_not_known_are_for_relays_put_there_by_hand(file):
    text = matrix("name: x, mcp_faults: [{mode: hang}]", STARTED % "")
    (warned,) = file.warnings(text, "lint-mcp-by-hand")
    assert "holdfast mcp-proxy" in warned.message
    (left,) = [s for s in file.spec(matrix("name: x, profile: hostile_tools", STARTED % "")).scenarios if s.name == "x"]
    assert all(injection.plane != "mcp" for injection in left.injections)  # a profile's are still left out


def test_name_of_an_expanded_scenario_is_not_used_twice(file):
    text = matrix("name: x, profile: top14", STARTED % SERVERS) + "  - {name: x/lost-reply}\n"
    found = file.error(text)
    assert (found.code, found.path) == ("duplicate-id", "chaos_matrix[1].name")
    assert "x/lost-reply" in found.message


def test_scenarios_of_one_profile_under_two_names_are_apart(file):
    text = matrix("name: x, profile: top14", STARTED % SERVERS) + "  - {name: y, profile: top14}\n"
    assert len(set(names(file.spec(text)))) == 29
