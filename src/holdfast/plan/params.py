"""Rules whose settings hold `{{ params.x }}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from holdfast import plugins
from holdfast.model.spec import Invariant
from holdfast.spec.references import interpolate, names


def refers_to_params(invariant: Invariant) -> bool:
    """Whether a setting of the rule has a parameter in it."""
    return _refers(invariant.settings)


def with_params(invariant: Invariant, params: Mapping[str, Any]) -> Invariant:
    """The rule as it is for these parameters."""
    settings = {key: _filled(value, params) for key, value in invariant.settings.items()}
    check = plugins.find("checks", invariant.check)
    if check is not None and (key := check.traits.shell_setting):  # a value is one word there, whatever is in it
        from holdfast.spec.shell_places import in_command

        settings[key] = in_command(str(invariant.settings[key]), params)
    return replace(invariant, settings=settings)


def _refers(value: Any) -> bool:
    if isinstance(value, str):
        return bool(names(value).params)
    if isinstance(value, Mapping):
        return any(_refers(item) for item in value.values())
    return isinstance(value, list | tuple) and any(_refers(item) for item in value)


def _filled(value: Any, params: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        return interpolate(value, params)
    if isinstance(value, Mapping):
        return {key: _filled(item, params) for key, item in value.items()}
    return [_filled(item, params) for item in value] if isinstance(value, list | tuple) else value
