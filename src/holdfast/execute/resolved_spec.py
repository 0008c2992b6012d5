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
from holdfast.model.spec import AgentSpec, Spec
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

    def resolve_mapping(mapping: Mapping[str, str]) -> dict[str, str]:
        return {key: resolve_text(text) for key, text in mapping.items()}

    changes: dict[str, Any] = {name: resolve_mapping(mapping) for name, mapping in _list_mappings(agent).items()}
    changes |= {name: resolve_text(text) for name, text in _list_texts(agent).items() if text is not None}
    changes["args"] = tuple(interpolate(text, params or {}) for text in agent.args)
    changes["dialogue"] = tuple(replace(step, type=resolve_text(step.type)) for step in agent.dialogue)
    if agent.command is not None:  # a dollar in it belongs to the shell
        changes["command"] = fill_command(agent.command, params or {})
    if isinstance(agent.mcp_config, dict):
        changes["mcp_config"] = _resolve_nested(agent.mcp_config, resolve_text)
    return replace(agent, **changes)


def _resolve_nested(part: Any, value: Callable[[str], str]) -> Any:
    """Resolve the references in every text of a nested value."""
    if isinstance(part, str):
        return value(part)
    if isinstance(part, Mapping):
        return {key: _resolve_nested(inner, value) for key, inner in part.items()}
    return [_resolve_nested(inner, value) for inner in part] if isinstance(part, list) else part


def has_param_references(agent: AgentSpec) -> bool:
    """Return whether the section contains a `{{ params.x }}`."""
    mapped = [text for mapping in _list_mappings(agent).values() for text in mapping.values()]
    texts = [*_list_texts(agent).values(), agent.command, *agent.args, *mapped, *[step.type for step in agent.dialogue]]
    return any(find_names(text).params for text in texts if text is not None)


def _list_texts(agent: AgentSpec) -> dict[str, str | None]:
    """Return the strings of the section that may hold references."""
    return {
        "endpoint": agent.endpoint,
        "request_template": agent.request_template,
        "response_path": agent.response_path,
        "reset_endpoint": agent.reset_endpoint,
        "binary": agent.binary,
        "ready": agent.ready,
        "answer_file": agent.answer_file,
    }


def _list_mappings(agent: AgentSpec) -> dict[str, dict[str, str]]:
    """Return the maps of the section whose values may hold references."""
    return {"headers": agent.headers, "query_params": agent.query_params, "env": agent.env}


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
        def fill_value(part: Any) -> Any:
            if isinstance(part, str):
                return resolve(part, environ, secrets=secrets, params=trial.params)
            if isinstance(part, dict):
                return {key: fill_part(key, inner) for key, inner in part.items()}
            return [fill_value(inner) for inner in part] if isinstance(part, list | tuple) else part

        def fill_part(key: str, inner: Any) -> Any:
            if key in _USER_KEYED and isinstance(inner, dict):  # their keys are the user's own words
                return {name: fill_value(text) for name, text in inner.items()}
            fill_in = _AS_WRITTEN.get(key)
            return fill_value(inner) if fill_in is None else fill_text(inner, fill_in)

        def fill_text(part: Any, fill_in: _FillIn) -> Any:
            if isinstance(part, str):
                return fill_in(part, trial.params)
            return [fill_text(inner, fill_in) for inner in part] if isinstance(part, list | tuple) else part

        return msgspec.convert(fill_value(plain), WorldSpec)

    return fill


_USER_KEYED = ("env", "headers", "dns_overrides")
_FillIn = Callable[[str, Mapping[str, Any]], str]
_AS_WRITTEN: Mapping[str, _FillIn] = {
    "commands": fill_command,
    "content": interpolate,
    "response": interpolate,
    "sql": interpolate,
    "wait_for": fill_command,
}
"""A dollar here belongs to the shell, the database or the mock; parameters are filled in, in a shell as one word."""
