"""A proxy of the user's own, which what the agent asks for does not go through."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.execute.plane_needs import warn_unused_proxy
from holdfast.execute.resolved_spec import ModelOptions
from holdfast.model.model_spec import ModelSpec
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.spec import AgentSpec, Spec

SET = {"HTTPS_PROXY": "http://user:secret@proxy:3128"}
COMMAND = AgentSpec(type="command", command="agent")
PYTHON = AgentSpec(type="python", endpoint="agent:ask")
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
