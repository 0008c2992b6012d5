"""Creates the checks of rules from settings with `{{ params.x }}` filled in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import ValidationError
from msgspec.structs import replace

from holdfast import plugins
from holdfast.errors import PluginError
from holdfast.model.spec import Invariant
from holdfast.model.traits import CheckTraits
from holdfast.protocols.check import ValidatingPlugin, check_traits
from holdfast.reading.fields import convert_settings
from holdfast.spec.references import find_names, interpolate
from holdfast.spec.shell_places import fill_command

if TYPE_CHECKING:
    from holdfast.protocols.check import Check


def has_params(invariant: Invariant) -> bool:
    """Return whether a setting of the rule contains a parameter."""
    return _has_params(invariant.settings)


def fill_params(invariant: Invariant, params: Mapping[str, Any]) -> Invariant:
    """Return the rule for these parameters."""
    settings = {key: _fill_value(value, params) for key, value in invariant.settings.items()}
    check = plugins.find("checks", invariant.check)
    if check is not None and (
        key := check.traits.shell_setting
    ):  # a value is quoted as one word there, whatever it contains
        settings[key] = fill_command(str(invariant.settings[key]), params)
    return replace(invariant, settings=settings)


def _has_params(value: Any) -> bool:
    if isinstance(value, str):
        return bool(find_names(value).params)
    if isinstance(value, Mapping):
        return any(_has_params(item) for item in value.values())
    return isinstance(value, list | tuple) and any(_has_params(item) for item in value)


def _fill_value(value: Any, params: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        return interpolate(value, params)
    if isinstance(value, Mapping):
        return {key: _fill_value(item, params) for key, item in value.items()}
    return [_fill_value(item, params) for item in value] if isinstance(value, list | tuple) else value


def make_check(invariant: Invariant) -> Check:
    """Return the check of a rule; raises PluginError if there is none or its settings do not fit.

    Values were validated when the spec was read. Lists become tuples, and maps the types that a plug-in declares.
    """
    plugin = plugins.find("checks", invariant.check)
    if plugin is None:
        raise PluginError(f"there is no check called {invariant.check!r} (rule {invariant.id})", code="plugin-broken")
    written = {**dict(plugin.traits.when_negated), **invariant.settings} if invariant.negate else invariant.settings
    try:
        check: Check = plugin(**convert_settings(plugin, written))
    except (TypeError, ValueError, ValidationError) as broken:
        raise PluginError(
            f"check {invariant.check!r} of rule {invariant.id}: {broken}", code="plugin-broken"
        ) from broken
    return check


def is_usable(check: Check) -> bool:
    """Return whether the check accepts its settings."""
    return not (isinstance(check, ValidatingPlugin) and any(check.problems()))


def get_traits(invariant: Invariant) -> CheckTraits:
    """Return the traits of a rule's check with its settings; raise PluginError if there is none."""
    return check_traits(make_check(invariant))
