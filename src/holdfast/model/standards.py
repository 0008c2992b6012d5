"""Entries of public lists of risks and attacks that a fault, a check or a mutation stands for."""

from __future__ import annotations

from msgspec import Struct


class StandardId(Struct, frozen=True):
    """One entry of one list."""

    list: str
    """The list and its version, in words."""
    id: str
    title: str
    url: str
