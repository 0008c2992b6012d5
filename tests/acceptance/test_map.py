"""`holdfast map` on the planes of launched agents: models, tool results, MCP and HTTP."""

from __future__ import annotations

from typing import Any

from cli import CALM, MakeProject, Project, contract, rule
from test_launched_faults import trading
from test_mcp_cli import shopping

SCRIPT = {
    "replies": [
        {"match": {"tool": "market_data_api", "result": "*order*"}, "text": "bought as {{ result.order }}"},
        {"match": {"tool": "market_data_api"}, "text": "no order"},
        {"tool_calls": [{"name": "market_data_api", "arguments": {"symbol": "ACME"}}]},
    ]
}


def read_map(made: Project) -> tuple[dict[str, list[str]], dict[tuple[str, int, str], str]]:
    """What each call feeds, by plane and number; and the state of each fault that is not open."""
    found = made.cli("map", "--json")
    assert found.code == 0, found.out + found.err
    feeds = {f"{one['plane']} {one['on_call']}": one["feeds"] for one in found.json["sites"]}
    modes = [(row, mode, one["state"]) for row in found.json["coverage"]["rows"] for mode, one in row["modes"].items()]
    return feeds, {(row["plane"], row["on_call"], mode): state for row, mode, state in modes if state != "open"}


def test_model_calls_and_tool_results_feed_and_are_covered(project: MakeProject) -> None:
    matrix: list[dict[str, Any]] = [
        CALM,
        {"name": "busy", "llm_faults": [{"mode": "rate_limit", "on_call": 2}]},
        {"name": "down", "tool_faults": [{"tool": "market_data_api", "mode": "error"}]},
        {"name": "late", "llm_faults": [{"mode": "slow_tokens", "ttft_ms": 1, "on_call": 1}]},
        {"name": "never", "tool_faults": [{"tool": "market_data_api", "mode": "empty", "match": {"symbol": "X"}}]},
    ]
    made = trading(project, *matrix, script=SCRIPT, rules=[rule("bought", value="ORD-40417")])
    source = (made.folder / "agent.py").read_text()
    (made.folder / "agent.py").write_text(source.replace('"price": 12.5', '"order": "ORD-40417"'))
    assert made.run("--no-preflight").code == 1
    feeds, states = read_map(made)
    assert feeds == {"llm 1": [], "tool_result 1": ["model call 2", "answer"], "llm 2": []}
    assert states == {
        ("llm", 2, "rate_limit"): "failed",
        ("tool_result", 1, "error"): "failed",
        ("llm", 1, "slow_tokens"): "held",
        ("tool_result", 1, "empty"): "not met",
    }


def test_mcp_calls_feed_and_are_covered(project: MakeProject) -> None:
    matrix = [CALM, {"name": "late", "tool_faults": [{"tool": "find", "mode": "slow", "delay_ms": 1}]}]
    made = shopping(project, *matrix, calls=[["find", {"q": "x"}], ["pay", {"q": "y"}]])
    shop = (made.folder / "shop.py").read_text()
    (made.folder / "shop.py").write_text(shop.replace('"rows": [1, 2, 3]', '"rows": ["ROW-40417"]'))
    assert made.run("--no-preflight").code == 0
    found = made.cli("map", "--json").json
    sites = {(one["plane"], one["target"]): one["feeds"] for one in found["sites"]}
    assert sites["mcp", "find"] == ["answer"]
    (row,) = (row for row in found["coverage"]["rows"] if row["target"] == "find")
    assert row["modes"]["slow"] == {"state": "held", "n": 1, "extra": False}


def test_latest_is_the_last_run_that_the_user_asked_for(project: MakeProject) -> None:
    made = trading(project, CALM, script=SCRIPT, rules=[rule("bought", value="ORD-40417")])
    assert made.cli("map", "--json").json["run"] == "0001"
    assert made.cli("show", "--json").json["run_id"] == "0001"  # there is no other run
    assert made.run("--no-preflight").code == 1
    assert made.cli("map", "--json").json["run"] == "0003"
    for words in (("show",), ("show", "last"), ("report", "latest")):
        assert made.cli(*words, "--json").json["run_id"] == "0002"
    assert made.cli("compare", "0002", "latest", "--json").json["after"] == "0002"
    assert [(run["id"], run["part"]) for run in made.cli("runs", "--json").json["runs"]] == [
        ("0003", "map"),
        ("0002", "contract"),
        ("0001", "map"),
    ]


def test_map_takes_no_option_that_it_ignores(project: MakeProject) -> None:
    assert project(contract([rule("source", value="source")])).cli("map", "--quiet").code == 4
