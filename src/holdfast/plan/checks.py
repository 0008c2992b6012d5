"""Invariants to checks: the plug-in of a rule, built from its settings."""

from __future__ import annotations

from holdfast import plugins
from holdfast.errors import PluginError
from holdfast.model.spec import Invariant
from holdfast.protocols import Check


def make_check(invariant: Invariant) -> Check:
    """The check of a rule; raises PluginError if there is none or its settings do not fit.

    Values were validated when the spec was read. Lists become tuples, as settings are frozen.
    """
    plugin = plugins.find("checks", invariant.check)
    if plugin is None:
        raise PluginError(f"there is no check called {invariant.check!r} (rule {invariant.id})")
    settings = {name: tuple(v) if isinstance(v, list) else v for name, v in invariant.settings.items()}
    try:
        check: Check = plugin(**settings)
    except (TypeError, ValueError) as broken:
        raise PluginError(f"check {invariant.check!r} of rule {invariant.id}: {broken}") from broken
    return check


def urls_read(check: Check) -> tuple[str, ...]:
    """URL globs of the requests that the check reads in a trace: an optional power of a plug-in."""
    return tuple(check.urls_read()) if hasattr(check, "urls_read") else ()


def needs_control(check: Check) -> bool:
    """Whether the check compares with a calm run of the same task: an optional power of a plug-in."""
    return bool(getattr(check, "needs_control", False))
