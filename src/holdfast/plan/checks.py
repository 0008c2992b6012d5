"""Invariants to checks: the plug-in of a rule, built from its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import ValidationError, convert

from holdfast import plugins
from holdfast.errors import PluginError
from holdfast.model.spec import Invariant
from holdfast.model.traits import CheckTraits
from holdfast.reading.fields import keys_of

if TYPE_CHECKING:
    from holdfast.protocols.check import Check


def make_check(invariant: Invariant) -> Check:
    """The check of a rule; raises PluginError if there is none or its settings do not fit.

    Values were validated when the spec was read. Lists become tuples and maps the types that a plug-in declares.
    """
    plugin = plugins.find("checks", invariant.check)
    if plugin is None:
        raise PluginError(f"there is no check called {invariant.check!r} (rule {invariant.id})")
    types = {field.key: field.hint.base for field in keys_of(plugin)}
    try:
        settings = {name: convert(value, types.get(name, Any)) for name, value in invariant.settings.items()}
        check: Check = plugin(**settings)
    except (TypeError, ValueError, ValidationError) as broken:
        raise PluginError(f"check {invariant.check!r} of rule {invariant.id}: {broken}") from broken
    return check


def is_usable(check: Check) -> bool:
    """Whether the check has nothing against its settings."""
    from holdfast.protocols.check import FastidiousPlugin

    return not (isinstance(check, FastidiousPlugin) and any(check.problems()))


def traits_of(invariant: Invariant) -> CheckTraits:
    """The traits of a rule's check with its settings; PluginError if there is none."""
    from holdfast.protocols.check import check_traits

    return check_traits(make_check(invariant))
