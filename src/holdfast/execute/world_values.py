"""The world's sections with their references replaced by values, for each trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from holdfast.model.trial import Trial
from holdfast.model.world import WorldSpec
from holdfast.spec.references import interpolate, resolve


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
            return as_written(inner) if key in _AS_WRITTEN else value(inner)

        def as_written(part: Any) -> Any:
            if isinstance(part, str):
                return interpolate(part, trial.params)
            return [as_written(inner) for inner in part] if isinstance(part, list | tuple) else part

        return msgspec.convert(value(plain), WorldSpec)

    return fill


_NAMED = ("env", "headers", "dns_overrides")
_AS_WRITTEN = ("commands", "content", "response", "sql", "wait_for")
"""A dollar there is the shell's, the database's or the mock's own; parameters are filled in."""
