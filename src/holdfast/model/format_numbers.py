"""The numbers of what others keep and read. `docs/versioning.md` says what each promises, and when it goes up."""

from __future__ import annotations

from msgspec import Struct

RUN_DIRECTORY = 3
"""`format` in `run.json`: of all files of a run."""
JSON = 2
"""`format` in every document that `--json` prints, and in `report.json`."""
RECORDING = 1
"""`format` in every line that `--record` keeps."""
PROTOCOLS = 2
"""What a plug-in may name as its `protocol_version`."""


class Numbered(Struct, frozen=True):
    """What is read of a document before anything else, since one of another format may have other keys."""

    format: int = 1
    """What was written before there were numbers is of the first."""


def too_new(what: str, number: object, known: int) -> str:
    """What is said of a format that this version does not know."""
    return f"{what} has format {number}; this version of Holdfast reads {known}"
