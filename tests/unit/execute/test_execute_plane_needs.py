"""Which planes a replayed session opens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.execute.plane_needs import (
    build_plane_settings,
    has_recordings,
    list_recorded_urls,
    needs_planes,
    needs_web_plane,
    warn_unmet_recordings,
)
from holdfast.execute.resolved_spec import ASKED
from holdfast.model.spec import AgentSpec, Spec
from holdfast.model.task import Task
from holdfast.planes.urls import is_url
from planes_kit import answer, replay

NAMED, AT_URL = answer("search", 1), answer("https://api.test/*", 1)


def spec_of(*tasks: Task, **agent: Any) -> Spec:
    section = {"type": "python", "endpoint": "agent:ask", **agent}
    return Spec("spec.yaml", AgentSpec(**section), tasks=tasks)


def settings_of(spec: Spec) -> Any:
    return build_plane_settings(spec, spec.agent, Path(), {}, ASKED, web=needs_web_plane(spec))


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
