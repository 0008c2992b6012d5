"""The format numbers of stored files and documents. `docs/versioning.md` says what each promises and when it rises."""

from __future__ import annotations

from msgspec import Struct

RUN_DIRECTORY = 3
"""`format` in `run.json`: for all files of a run."""
JSON = 2
"""`format` in every document that `--json` prints, and in `report.json`."""
RECORDING = 1
"""`format` in every line that `--record` writes."""
PROTOCOLS = 2
"""The values that a plug-in may declare as its `protocol_version`."""


class FormatNumber(Struct, frozen=True):
    """The part of a document that is read first, because another format may have other keys."""

    format: int = 1
    """Documents written before there were numbers have format 1."""


def format_too_new(what: str, number: object, known: int) -> str:
    """Return the message for a format that this version does not support."""
    return f"{what} has format {number}; this version of Holdfast reads {known}"
