"""An Inspect log that is an archive (`.eval`): its samples one after the other, within limits; nothing goes to disk."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from holdfast.errors import UserError
from holdfast.replay.foreign_trace import LeftOutTrace

SIGNATURE = b"PK\x03\x04"
LARGEST_SAMPLE = 64 << 20
LARGEST = 1 << 30
"""Bytes of one sample and of all, unpacked."""
MOST_SAMPLES = 100_000
_SAMPLE = re.compile(r"samples/.+\.json", re.DOTALL)
"""Named by the sample's id, which may have a slash in it; no file is written by that name."""
_HEADERS = ("header.json", "_journal/start.json")
"""Of a log that is whole, and of one whose run was ended."""
_ZSTD = 93
_LOCAL = 30
"""Bytes of a local header before its two names."""
_BROKEN = (zipfile.BadZipFile, EOFError, OSError, ValueError, RuntimeError)


def archived(path: Path) -> Iterator[tuple[str, Any] | LeftOutTrace]:
    """Each sample as a log with that sample alone, and its name; UserError if it is no such archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield from _samples(path, archive)
    except zipfile.BadZipFile as broken:
        raise UserError(f"{path}: not readable as an archive: {broken}") from broken


def _samples(path: Path, archive: zipfile.ZipFile) -> Iterator[tuple[str, Any] | LeftOutTrace]:
    known = archive.NameToInfo  # of two entries of one name the last counts, as for every reader of archives
    header = next((known[name] for name in _HEADERS if name in known), None)
    if header is None:
        raise UserError(f"{path} is an archive, and no Inspect log: it has no header.json")
    found = [info for name, info in known.items() if _SAMPLE.fullmatch(name)]
    if not found:
        raise UserError(f"{path}: the log has no samples", hint="log them: inspect eval --log-samples")
    if len(found) > MOST_SAMPLES:
        raise UserError(f"{path} has {len(found)} samples: more than {MOST_SAMPLES}")
    told = sum(info.file_size for info in found)
    if told > LARGEST:
        raise UserError(f"{path} unpacks to {told >> 20} MB: more than {LARGEST >> 20} MB", hint="log fewer samples")
    head = _decoded(path, archive, header)
    if not isinstance(head, dict):
        raise UserError(f"{path}: {header.filename} is no JSON object")
    for info in found:
        if ".." in info.filename.split("/"):
            yield LeftOutTrace(info.filename, "a name that climbs out of its folder")
            continue
        try:
            sample = _decoded(path, archive, info)
        except UserError as broken:
            if broken.hint:  # nothing of this file can be read
                raise
            yield LeftOutTrace(info.filename, str(broken))
            continue
        name = f"{path.name}:{info.filename.removeprefix('samples/').removesuffix('.json')}"
        yield name, {**head, "samples": [sample]}


def _decoded(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Any:
    try:
        data = _zstd(path, info) if info.compress_type == _ZSTD else _plain(archive, info)
    except (*_BROKEN, NotImplementedError) as broken:
        raise UserError(f"{info.filename} cannot be unpacked: {broken}") from broken
    if len(data) > LARGEST_SAMPLE:
        raise UserError(f"{info.filename} unpacks to more than {LARGEST_SAMPLE >> 20} MB")
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as broken:
        raise UserError(f"{info.filename} is not readable as JSON: {broken}") from broken


def _plain(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    with archive.open(info) as file:
        return file.read(LARGEST_SAMPLE + 1)


def _zstd(path: Path, info: zipfile.ZipInfo) -> bytes:
    """What newer versions of Inspect pack with; Python's reader of archives knows it from 3.14 on only."""
    with open(path, "rb") as file:
        file.seek(info.header_offset)
        local = file.read(_LOCAL)
        if len(local) < _LOCAL or not local.startswith(SIGNATURE):
            raise zipfile.BadZipFile("no entry is where the list says")
        file.seek(int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little"), 1)
        packed = file.read(min(info.compress_size, LARGEST_SAMPLE))
    return _unpacked(path, packed)


def _unpacked(path: Path, packed: bytes) -> bytes:
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]  # Python 3.14
    except ImportError:
        pass
    else:
        data: bytes = zstd.ZstdDecompressor().decompress(packed, max_length=LARGEST_SAMPLE + 1)
        return data
    try:
        import zstandard
    except ImportError as missing:
        hint = "pip install zstandard, or have Inspect write it as JSON: inspect log dump FILE > log.json"
        raise UserError(f"{path} is packed with zstd, which this Python cannot read", hint=hint) from missing
    import io

    try:
        return zstandard.ZstdDecompressor().stream_reader(io.BytesIO(packed)).read(LARGEST_SAMPLE + 1)
    except zstandard.ZstdError as broken:
        raise ValueError(str(broken)) from broken
