"""The codes that scripts may rely on, from findings to the lines of the doctor: the tables of `codes.toml`.

Only documentation, tests and `warnings.ignore` read them, so a run does not load the file.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec


class CodeTable(msgspec.Struct, frozen=True):
    """One kind of code: what `docs/codes.md` says about it, and each code with its meaning."""

    intro: str
    codes: dict[str, str] = {}


@cache
def load_codes() -> dict[str, CodeTable]:
    """Return all tables by their names, in the order of the page."""
    return msgspec.toml.decode(Path(__file__).with_name("codes.toml").read_bytes(), type=dict[str, CodeTable])
