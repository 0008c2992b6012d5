"""What a site is opened with: the run's options, and the sections of the spec with their references resolved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import AgentUnavailable
from holdfast.model.model_spec import ModelSpec
from holdfast.model.spec import AgentSpec, Spec, map_texts
from holdfast.model.trial import Trial
from holdfast.model.world import WorldSpec
from holdfast.plugins import DEFAULT_BACKEND
from holdfast.spec.explain import find_key_position
from holdfast.spec.references import find_names, interpolate, resolve
from holdfast.spec.shell_places import fill_command

if TYPE_CHECKING:
    from holdfast.world.kept_world import WorldKeeper


class ModelOptions(Struct, frozen=True):
    """The recordings of model calls to write or replay, as set on the command line."""

    record: Path | None = None
    replay: Path | None = None
    mask: Callable[[str], str] = str
    """Removes secrets from recordings."""


LIVE_MODELS = ModelOptions()
"""Model calls go where the spec sends them, and are not recorded."""


class WorldOptions(Struct, frozen=True):
    """Options that the command line and the run add to a spec's world."""

    backend: str = DEFAULT_BACKEND
    secrets: Mapping[str, str] = {}
    strict: bool = False
    """Reject a backend that lacks a feature."""
    keep: WorldKeeper | None = None
    """Where the worlds of failed trials are kept for inspection."""
    on_message: Callable[[Trial, str], None] = lambda trial, text: None
    """Receives messages that matter only while a trial runs."""


DEFAULT_WORLD = WorldOptions()


def resolve_agent(
    agent: AgentSpec,
    environ: Mapping[str, str],
    params: Mapping[str, Any] | None = None,
    secrets: Mapping[str, str] | None = None,
) -> AgentSpec:
    """Return the agent section with every reference replaced by its value; `secrets` are the world's, by name."""

    def resolve_text(text: str) -> str:
        return resolve(text, environ, params=params, secrets=secrets)

    # A dollar in a command belongs to the shell. `mcp_config` is the name of a file, unless it is its content.
    names = (*_REFERRING, "mcp_config") if isinstance(agent.mcp_config, dict) else _REFERRING
    resolved = agent.map_texts(resolve_text, *names)
    return replace(
        resolved.map_texts(lambda text: interpolate(text, params or {}), "args"),
        dialogue=tuple(replace(step, type=resolve_text(step.type)) for step in agent.dialogue),
        command=None if agent.command is None else fill_command(agent.command, params or {}),
    )


_REFERRING = (
    *("endpoint", "request_template", "response_path", "reset_endpoint", "binary", "ready", "answer_file"),
    *("headers", "query_params", "env"),
)
"""The fields whose texts may hold references to variables, secrets and parameters."""


def has_param_references(agent: AgentSpec) -> bool:
    """Return whether the section contains a `{{ params.x }}`."""
    return bool(find_names(msgspec.json.encode(agent).decode()).params)


def resolve_models(spec: Spec, environ: Mapping[str, str]) -> dict[str, ModelSpec]:
    """Return the entries of `models:` with references resolved."""
    return {name: resolve_model(model, environ) for name, model in spec.models.items()}


def resolve_model(model: ModelSpec, environ: Mapping[str, str]) -> ModelSpec:
    """Return one entry with its references resolved."""
    texts = {"name": model.name, "api_key": model.api_key, "base_url": model.base_url, "script": model.script}
    return replace(model, **{key: resolve(text, environ) for key, text in texts.items() if text})


def add_position(spec: Spec, error: AgentUnavailable) -> AgentUnavailable:
    """Return the same error, with the position in the file of the key that is the cause."""
    at = find_key_position(spec, error.key) if error.key else None
    if at is None:
        return error
    return AgentUnavailable(
        f"{spec.path}:{at.line}: {error}", code=error.code, hint=error.hint, body=error.body, config=error.config
    )


def make_fill(world: WorldSpec, environ: Mapping[str, str], secrets: Mapping[str, str]) -> Callable[[Trial], WorldSpec]:
    """Return the world of one trial with its references resolved."""
    # References are replaced in plain values, which are then converted: so a filled-in value is checked like a written
    # one.
    plain = msgspec.to_builtins(world)

    def fill(trial: Trial) -> WorldSpec:
        def fill_text(text: str) -> str:
            return resolve(text, environ, secrets=secrets, params=trial.params)

        def fill_part(key: str, part: Any) -> Any:
            if key in _AS_WRITTEN:
                return map_texts(part, lambda text: _AS_WRITTEN[key](text, trial.params))
            if key in _USER_KEYED:  # their keys are the user's own words
                return map_texts(part, fill_text)
            if isinstance(part, dict):
                return {name: fill_part(name, inner) for name, inner in part.items()}
            if isinstance(part, list | tuple):
                return [fill_part("", inner) for inner in part]
            return fill_text(part) if isinstance(part, str) else part

        return msgspec.convert(fill_part("", plain), WorldSpec)

    return fill


_USER_KEYED = ("env", "headers", "dns_overrides")
_AS_WRITTEN: Mapping[str, Callable[[str, Mapping[str, Any]], str]] = {
    "commands": fill_command,
    "content": interpolate,
    "response": interpolate,
    "sql": interpolate,
    "wait_for": fill_command,
}
"""A dollar here belongs to the shell, the database or the mock; parameters are filled in, in a shell as one word."""
