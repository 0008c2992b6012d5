"""Warnings and notes of a run: what the user should know whatever the verdict is."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec import Struct
from msgspec.structs import replace

STATEFUL = "stateful"
"""The one warning whose wording a document prescribes."""


class RunWarning(Struct, frozen=True, omit_defaults=True):
    """A warning: a stable code, and its sentence."""

    code: str
    text: str
    ignored: bool = False
    """`warnings.ignore` of the spec lists its code: reports count it and show it only with `-v`."""

    def __str__(self) -> str:
        return self.text


def mark_ignored(warnings: Iterable[RunWarning], ignored: Collection[str]) -> tuple[RunWarning, ...]:
    """Return the warnings, with those that have one of these codes marked as ignored."""
    return tuple(replace(one, ignored=one.code in ignored) for one in warnings)


class RunNote(Struct, frozen=True, omit_defaults=True):
    """A note for every report of the run: a stable code, and its sentence."""

    code: str
    text: str
    about: tuple[str, ...] = ()
    """What it names, as values: for `sandbox`, the features that are not enforced."""

    def __str__(self) -> str:
        return self.text
