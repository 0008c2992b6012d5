"""Invariants to checks: the plug-in of a rule, built from its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import ValidationError, convert

from holdfast import plugins
from holdfast.errors import PluginError
from holdfast.model.spec import Invariant
from holdfast.reading.fields import keys_of

if TYPE_CHECKING:
    from holdfast.protocols import Check


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


def urls_read(check: Check) -> tuple[str, ...]:
    """URL globs of the requests that the check reads in a trace: an optional power of a plug-in."""
    return tuple(check.urls_read()) if hasattr(check, "urls_read") else ()


def runs_inside(check: Check) -> bool:
    """Whether the check runs a program in the sandbox, which may leave traces there: an optional power of a plug-in."""
    return bool(getattr(check, "runs_inside", False))


def needs_control(check: Check) -> bool:
    """Whether the check compares with a calm run of the same task: an optional power of a plug-in."""
    return bool(getattr(check, "needs_control", False))


def reads_every_turn(check: Check) -> bool:
    """Whether the check is about each turn of a conversation, not about its last: an optional power of a plug-in."""
    return bool(getattr(check, "every_turn", False))


def asks_model(check: Check) -> bool:
    """Whether the check asks a model before it decides: an optional power of a plug-in."""
    # Asking for the method is quicker than isinstance with a protocol: this is done for every rule.
    return hasattr(check, "consult") or bool(getattr(check, "asks_model", False))


def is_usable(check: Check) -> bool:
    """Whether the check has nothing against its settings: `problems` is an optional power of a plug-in."""
    return not (hasattr(check, "problems") and any(check.problems()))


def reads_verbatim(check: Check) -> bool:
    """Whether the check reads the answer only as it is, sign by sign: an optional power of a plug-in."""
    return bool(getattr(check, "verbatim", False))


def judges_deeds(check: Check) -> bool:
    """Whether the check judges what the agent did, and not only what it said, spent or how it ended."""
    from holdfast.protocols import DeedsTrait

    return check.judges_deeds if isinstance(check, DeedsTrait) else check.reads in ("trace", "state")


_TEXTS_READ = {"text": ("answer",), "state": ("evidence",), "trace": ("target", "arguments")}


def texts_read(check: Check) -> tuple[str, ...]:
    """Which texts decide, where a mask would hide what was there: an optional power of a plug-in.

    `answer`, `evidence`, and of calls `target` and `arguments`; without the power, all of the kind that it reads.
    """
    found: tuple[str, ...] = getattr(check, "texts_read", _TEXTS_READ.get(check.reads, ()))
    return found
