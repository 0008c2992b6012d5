"""The world's sections with their references replaced by values, for each trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from holdfast.model.trial import Trial
from holdfast.model.world import WorldSpec
from holdfast.spec.references import interpolate, resolve
from holdfast.spec.shell_places import in_command


def filling(world: WorldSpec, environ: Mapping[str, str], secrets: Mapping[str, str]) -> Callable[[Trial], WorldSpec]:
    """The world of one trial: its references replaced by values."""
    plain = msgspec.to_builtins(world)

    def fill(trial: Trial) -> WorldSpec:
        def value(part: Any) -> Any:
            if isinstance(part, str):
                return resolve(part, environ, secrets=secrets, params=trial.params)
            if isinstance(part, dict):
                return {key: _part(key, inner) for key, inner in part.items()}
            return [value(inner) for inner in part] if isinstance(part, list | tuple) else part

        def _part(key: str, inner: Any) -> Any:
            if key in _NAMED and isinstance(inner, dict):  # their keys are the user's own words
                return {name: value(text) for name, text in inner.items()}
            fill_in = _AS_WRITTEN.get(key)
            return value(inner) if fill_in is None else as_written(inner, fill_in)

        def as_written(part: Any, fill_in: _FillIn) -> Any:
            if isinstance(part, str):
                return fill_in(part, trial.params)
            return [as_written(inner, fill_in) for inner in part] if isinstance(part, list | tuple) else part

        return msgspec.convert(value(plain), WorldSpec)

    return fill


_NAMED = ("env", "headers", "dns_overrides")
_FillIn = Callable[[str, Mapping[str, Any]], str]
_AS_WRITTEN: Mapping[str, _FillIn] = {
    "commands": in_command,
    "content": interpolate,
    "response": interpolate,
    "sql": interpolate,
    "wait_for": in_command,
}
"""A dollar there is the shell's, the database's or the mock's own; parameters are filled in, a shell's as one word."""
