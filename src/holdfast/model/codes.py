"""The codes that scripts may rely on: those of warnings and notes, and the tables of `codes.toml`.

Only documentation, tests and `warnings.ignore` read the file, so a run does not load it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace


class CodeTable(msgspec.Struct, frozen=True):
    """One kind of code: what `docs/codes.md` says about it, and each code with its meaning."""

    intro: str
    codes: dict[str, str] = {}


@cache
def load_codes() -> dict[str, CodeTable]:
    """Return all tables by their names, in the order of the page."""
    return msgspec.toml.decode(Path(__file__).with_name("codes.toml").read_bytes(), type=dict[str, CodeTable])


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
    return tuple(replace(warning, ignored=warning.code in ignored) for warning in warnings)


class RunNote(Struct, frozen=True, omit_defaults=True):
    """A note for every report of the run: a stable code, and its sentence."""

    code: str
    text: str
    about: tuple[str, ...] = ()
    """What it names, as values: for `sandbox`, the features that are not enforced."""

    def __str__(self) -> str:
        return self.text
