"""Large values in their own files, named by their content; the record holds a reference."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from holdfast.model.codec import create_decoder, encode, to_builtins
from holdfast.model.observation import Observation

LIMIT = 16_000
"""Longer texts become blobs."""
HEAD = 200
LOST = "a large value of this trial is missing from the run's blobs"


class BlobLost(Exception):
    """A blob that is missing, or does not match its name."""


class TrialName(msgspec.Struct):
    """The part of an observation that identifies its trial."""

    trial: str


_observations = create_decoder(Observation)
_named = create_decoder(TrialName)
_MARK = b'{"blob":'


def pack(observation: Observation, folder: Path) -> bytes:
    """Return the observation as one line; its large texts are written to blobs first."""
    line = encode(observation)
    if len(line) <= LIMIT:
        return line  # then every text in it is short, too
    return encode(_move_to_blob(to_builtins(observation), folder))


def unpack(line: bytes, folder: Path) -> Observation:
    """Return the observation of a line, with its blobs."""
    if _MARK not in line:
        return _observations.decode(line)
    try:
        return msgspec.convert(_fetch(msgspec.json.decode(line), folder), Observation)
    except BlobLost:  # an incomplete observation must not be judged
        return Observation(_named.decode(line).trial, error=LOST)


def _move_to_blob(value: Any, folder: Path) -> Any:
    if isinstance(value, str) and len(value) > LIMIT:
        data = value.encode()
        name = sha256(data).hexdigest()
        folder.mkdir(exist_ok=True)
        path = folder / name
        if not path.exists():
            temporary = folder / f"{name}.new"
            temporary.write_bytes(data)
            temporary.replace(path)
        return {"blob": name, "bytes": len(data), "head": value[:HEAD]}
    if isinstance(value, dict):
        return {key: _move_to_blob(inner, folder) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_move_to_blob(inner, folder) for inner in value]
    return value


def _fetch(value: Any, folder: Path) -> Any:
    if isinstance(value, dict):
        name = value.get("blob")
        if isinstance(name, str) and set(value) == {"blob", "bytes", "head"}:
            return _read(folder / Path(name).name)  # a name cannot leave the folder
        return {key: _fetch(inner, folder) for key, inner in value.items()}
    if isinstance(value, list):
        return [_fetch(inner, folder) for inner in value]
    return value


def _read(path: Path) -> str:
    r"""Return the original text: in text mode it would lose its \r and depend on the locale."""
    try:
        data = path.read_bytes() if path.is_file() else b""
    except OSError as broken:
        raise BlobLost from broken
    if sha256(data).hexdigest() != path.name:
        raise BlobLost
    return data.decode()
