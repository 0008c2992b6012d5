"""Which planes a replayed session opens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import SpecError
from holdfast.execute.plane_needs import (
    build_plane_settings,
    check_tools_offered,
    has_recordings,
    list_recorded_urls,
    list_rule_urls,
    needs_planes,
    needs_web_plane,
    warn_unmet_recordings,
    warn_unused_proxy,
)
from holdfast.execute.resolved_spec import LIVE_MODELS, ModelOptions
from holdfast.model.model_spec import ModelSpec
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.spec import AgentSpec, Invariant, Spec
from holdfast.model.task import Task
from holdfast.model.trace import TraceEvent
from holdfast.planes.urls import is_url
from planes_kit import answer, replay

NAMED, AT_URL = answer("search", 1), answer("https://api.test/*", 1)


def spec_of(*tasks: Task, **agent: Any) -> Spec:
    section = {"type": "python", "endpoint": "agent:ask", **agent}
    return Spec("spec.yaml", AgentSpec(**section), tasks=tasks)


def settings_of(spec: Spec) -> Any:
    return build_plane_settings(spec, spec.agent, Path(), {}, LIVE_MODELS, web=needs_web_plane(spec))


def test_a_python_agent_without_a_recording_needs_none() -> None:
    spec = spec_of(Task(("hello",)))
    assert (has_recordings(spec), needs_planes(spec), needs_web_plane(spec), list_recorded_urls(spec)) == (
        False,
        False,
        False,
        (),
    )
    assert not settings_of(spec).tool_results


def test_a_recording_needs_all_of_them_since_unknown_calls_are_refused_there() -> None:
    spec = spec_of(Task(("hello",)), replay(NAMED, AT_URL, AT_URL))
    assert (has_recordings(spec), needs_planes(spec), needs_web_plane(spec)) == (True, True, True)
    settings = settings_of(spec)
    assert settings.urls == ("https://api.test/*", "*")
    assert settings.tool_results


def test_a_live_one_leaves_http_alone_unless_it_names_a_url() -> None:
    named, at_url = spec_of(replay(NAMED, live=True)), spec_of(replay(AT_URL, live=True))
    assert (needs_planes(named), needs_web_plane(named)) == (True, False)
    assert (needs_planes(at_url), needs_web_plane(at_url), list_recorded_urls(at_url)) == (
        True,
        True,
        ("https://api.test/*",),
    )


@pytest.mark.parametrize(
    ("agent", "warned"),
    [
        ({"type": "http", "endpoint": "http://127.0.0.1:8000"}, True),
        ({"isolation": "inline"}, True),
        ({}, False),
        ({"type": "http", "endpoint": "http://127.0.0.1:{port}", "command": "serve"}, False),
        ({"type": "http", "endpoint": "http://127.0.0.1:8000", "gateway": True}, False),
    ],
)
def test_an_agent_whose_calls_cannot_be_answered_is_warned_of(agent: dict[str, Any], warned: bool) -> None:
    found = warn_unmet_recordings(spec_of(replay(NAMED), **agent))
    assert (found is not None and found.code == "recordings-unmet") is warned
    assert warn_unmet_recordings(spec_of(Task(("hello",)), **agent)) is None


def test_a_tool_is_a_url_if_it_can_be_no_name_and_no_server_and_tool() -> None:
    for tool, at_url in [
        ("search", False),
        ("search.web", False),
        ("shop/price", False),
        ("https://api.test/v1", True),
        ("*://api.test/*", True),
        ("api.test/v1/*", True),
        ("*.test", True),
        ("localhost/x", True),
        ("localhost:80/x", True),
        ("*", False),
    ]:
        assert is_url(tool) is at_url, (tool, at_url)


# The HTTP plane stands, and looks into TLS, where a rule about calls reads HTTP.


PYTHON = AgentSpec(type="python", endpoint="agent:ask")


def spec(check: str, settings: dict[str, Any], agent: AgentSpec = PYTHON) -> Spec:
    return Spec("c.yaml", agent, invariants=(Invariant("r", check, settings),))


def test_a_rule_that_reads_http_puts_the_plane_in_place() -> None:
    for check, settings, urls in [
        ("tool_not_called", {"tool": "POST https://example.com/transfer"}, ("https://example.com/transfer",)),
        ("tool_called", {"tool": "https://example.com/*"}, ("https://example.com/*",)),
        ("tool_order", {"tools": ["look", "https://a.com/x"]}, ("https://a.com/x",)),
        ("side_effect_once", {}, ("*",)),
        ("side_effect_once", {"tool": "https://a.com/*"}, ("https://a.com/*",)),
        ("max_calls", {"max": 3}, ("*",)),
        ("max_calls", {"max": 3, "plane": "http"}, ("*",)),
        ("retries_within", {"max": 1, "tool": "https://a.com/*"}, ("https://a.com/*",)),
        ("recovers_within_ms", {"max_ms": 1, "tool": "https://a.com/*"}, ("https://a.com/*",)),
        ("tool_not_called", {"tool": "https://{{ params.host }}/*"}, ("*",)),
    ]:
        made = spec(check, settings)
        assert list_rule_urls(made) == urls, (check, settings, urls)
        assert needs_web_plane(made), (check, settings, urls)
        assert needs_planes(made), (check, settings, urls)


@pytest.mark.parametrize(
    ("check", "settings"),
    [
        ("tool_not_called", {"tool": "pay"}),
        ("side_effect_once", {"tool": "pay"}),
        ("max_calls", {"max": 3, "plane": "tool"}),
        ("max_calls", {"max": 3, "tool": "pay"}),
        ("retries_within", {"max": 1}),
        ("contains", {"value": "https://example.com"}),
    ],
)
def test_a_rule_about_tools_or_text_does_not(check: str, settings: dict[str, Any]) -> None:
    made = spec(check, settings)
    assert list_rule_urls(made) == ()
    assert not needs_web_plane(made)
    assert not needs_planes(made)


# A proxy of the user's own, which what the agent asks for does not go through.


SET = {"HTTPS_PROXY": "http://user:secret@proxy:3128"}
COMMAND = AgentSpec(type="command", command="agent")
ON_MODEL = (Scenario("s", (Injection("llm", "*", "timeout"),)),)
SCRIPTED = {"*": ModelSpec("script", script="model.yaml")}


def test_it_is_named_and_its_password_is_not() -> None:
    said = warn_unused_proxy(Spec("c.yaml", COMMAND), SET)
    assert said is not None
    assert (said.code, "HTTPS_PROXY" in said.text, "secret" in said.text) == ("proxy-unused", True, False)
    other = {"http_proxy": "http://p", "HTTPS_PROXY": ""}
    named = str(warn_unused_proxy(Spec("c.yaml", COMMAND), other))
    assert ("HTTP_PROXY" in named, "HTTPS_PROXY" in named) == (True, False)


@pytest.mark.parametrize(
    ("spec", "models", "said"),
    [
        (Spec("c.yaml", COMMAND), ModelOptions(), True),
        (Spec("c.yaml", COMMAND, models=SCRIPTED), ModelOptions(), True),  # its other requests go out
        (Spec("c.yaml", PYTHON, scenarios=ON_MODEL), ModelOptions(), True),
        (Spec("c.yaml", PYTHON, scenarios=ON_MODEL, models=SCRIPTED), ModelOptions(), False),
        (Spec("c.yaml", PYTHON, scenarios=ON_MODEL), ModelOptions(replay=Path("tape")), False),
        (Spec("c.yaml", PYTHON), ModelOptions(), False),
        (Spec("c.yaml", AgentSpec(endpoint="http://127.0.0.1:9/")), ModelOptions(), False),
    ],
)
def test_it_is_said_where_something_goes_out(spec: Spec, models: ModelOptions, said: bool) -> None:
    assert bool(warn_unused_proxy(spec, SET, models)) is said
    assert warn_unused_proxy(spec, {}, models) is None


# Tool faults after a calm trial that showed no tools: refused, with what was seen.


PLACE = "chatgpt.com speaks ChatGPT's own API"


@pytest.mark.parametrize("calls", [(), ("llm:gpt", "unread"), ("llm:gpt", f"unread:{PLACE}")])
def test_a_model_that_is_asked_in_an_unknown_format_is_named(calls: tuple[str, ...]) -> None:
    spec = Spec("spec.yaml", AgentSpec(), scenarios=(Scenario("down", (Injection("tool", "pay", "error"),)),))
    with pytest.raises(SpecError) as refused:
        check_tools_offered(spec, [TraceEvent(1.0, "llm_call", "gpt")], calls)
    (problem,) = refused.value.problems
    assert problem.code == "no-tools-seen"
    assert (PLACE in problem.message) == (f"unread:{PLACE}" in calls)
