"""Reads files of JSON, of JSON lines, or archives of them, within limits: a damaged line is left out and reported."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from holdfast.errors import UserError
from holdfast.replay.foreign_trace import LeftOutTrace, TraceUnreadable

LARGEST = 256 << 20
"""Bytes of a JSON document, or of one line: traces are small, and anything larger is something else."""


class ForeignDocument(Struct, frozen=True):
    """One JSON value of a file."""

    name: str
    """`file.jsonl:3` for a line, otherwise the file's name."""
    value: Any


def read_documents(path: Path) -> Iterator[ForeignDocument | LeftOutTrace]:
    """Yield the values of a file, one at a time: a file of lines may be larger than memory."""
    try:
        with open(path, "rb") as file:
            packed = file.read(len(SIGNATURE)) == SIGNATURE
            file.seek(0)
            head = file.readline(LARGEST + 1)
            while head and not head.strip():
                head = file.readline(LARGEST + 1)
            rest = file.read(1) if head.endswith(b"\n") else b""
    except OSError as refused:
        raise UserError(f"cannot read {path}: {refused.strerror}", code="file-unusable") from refused
    if packed:
        yield from read_archive(path)
        return
    if not head.strip():
        raise TraceUnreadable(f"{path} is empty", hint="name a file of traces")
    is_document = isinstance(_decode("", head), ForeignDocument)
    by_line = bool(rest) and (path.suffix in (".jsonl", ".ndjson") or is_document)
    yield from _read_lines(path) if by_line else [_read_whole(path)]


def _decode(name: str, data: bytes) -> ForeignDocument | LeftOutTrace:
    """Return the value of a JSON document, or why it cannot be read."""
    try:
        return ForeignDocument(name, msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf")))
    except RecursionError:
        return LeftOutTrace(name, "the JSON is nested too deeply to be read")
    except (msgspec.DecodeError, ValueError) as broken:
        return LeftOutTrace(name, f"not readable as JSON: {broken}")


def _read_whole(path: Path) -> ForeignDocument:
    size = path.stat().st_size
    if size > LARGEST:
        hint = "export fewer traces, or one JSON object a line (.jsonl)"
        raise TraceUnreadable(
            f"{path} is {size >> 20} MB, as one JSON document, and the limit is {LARGEST >> 20} MB", hint=hint
        )
    document = _decode(path.name, path.read_bytes())
    if isinstance(document, LeftOutTrace):
        hint = "traces are JSON or JSON lines; a session of Holdfast may be YAML, and needs no import"
        raise TraceUnreadable(f"{path}: {document.why}", hint=hint)
    return document


def _read_lines(path: Path) -> Iterator[ForeignDocument | LeftOutTrace]:
    with open(path, "rb") as file:
        number = 0
        while line := file.readline(LARGEST + 1):
            number += 1
            name = f"{path.name}:{number}"
            if len(line) > LARGEST:
                while line and not line.endswith(b"\n"):
                    line = file.readline(LARGEST)
                yield LeftOutTrace(name, f"the line is longer than {LARGEST >> 20} MB")
            elif line.strip():
                yield _decode(name, line)


SIGNATURE = b"PK\x03\x04"
LARGEST_SAMPLE = 64 << 20
LARGEST_ARCHIVE = 1 << 30
"""Bytes of one sample and of all, uncompressed."""
MOST_SAMPLES = 100_000
_SAMPLE = re.compile(r"samples/.+\.json", re.DOTALL)
"""Named by the sample's id, which may contain a slash; no file is written under that name."""
_HEADERS = ("header.json", "_journal/start.json")
"""The headers of a complete log, and of one whose run was interrupted."""
_ZSTD = 93
_LOCAL = 30
"""Bytes of a local header before its two names."""
_BROKEN = (zipfile.BadZipFile, EOFError, OSError, ValueError, RuntimeError)


def read_archive(path: Path) -> Iterator[ForeignDocument | LeftOutTrace]:
    """Yield each sample as a log with only that sample; raise UserError if it is not such an archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield from _read_samples(path, archive)
    except zipfile.BadZipFile as broken:
        raise TraceUnreadable(f"{path}: not readable as an archive: {broken}") from broken


def _read_samples(path: Path, archive: zipfile.ZipFile) -> Iterator[ForeignDocument | LeftOutTrace]:
    known = archive.NameToInfo  # of two entries with one name the last counts, as for every reader of archives
    header = next((known[name] for name in _HEADERS if name in known), None)
    if header is None:
        raise TraceUnreadable(f"{path} is an archive without header.json, so it is not an Inspect log")
    match = [info for name, info in known.items() if _SAMPLE.fullmatch(name)]
    if not match:
        raise TraceUnreadable(f"{path}: the log has no samples", hint="log them: inspect eval --log-samples")
    if len(match) > MOST_SAMPLES:
        raise TraceUnreadable(f"{path} has {len(match)} samples: more than {MOST_SAMPLES}")
    size = sum(info.file_size for info in match)
    if size > LARGEST_ARCHIVE:
        raise TraceUnreadable(
            f"{path} unpacks to {size >> 20} MB: more than {LARGEST_ARCHIVE >> 20} MB", hint="log fewer samples"
        )
    head = _read_entry(path, archive, header)
    if isinstance(head, LeftOutTrace):
        raise TraceUnreadable(f"{path}: {header.filename}: {head.why}")
    if not isinstance(head.value, dict):
        raise TraceUnreadable(f"{path}: {header.filename} is not a JSON object")
    for info in match:
        if ".." in info.filename.split("/"):
            yield LeftOutTrace(info.filename, "its name points outside its folder")
            continue
        sample = _read_entry(path, archive, info)
        if isinstance(sample, ForeignDocument):
            name = f"{path.name}:{info.filename.removeprefix('samples/').removesuffix('.json')}"
            sample = ForeignDocument(name, {**head.value, "samples": [sample.value]})
        yield sample


def _read_entry(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> ForeignDocument | LeftOutTrace:
    try:
        if info.compress_type == _ZSTD:
            data = _read_zstd(path, info)
        else:
            with archive.open(info) as file:
                data = file.read(LARGEST_SAMPLE + 1)
    except (*_BROKEN, NotImplementedError) as broken:
        return LeftOutTrace(info.filename, f"cannot be unpacked: {broken}")
    if len(data) > LARGEST_SAMPLE:
        return LeftOutTrace(info.filename, f"unpacks to more than {LARGEST_SAMPLE >> 20} MB")
    return _decode(info.filename, data)


def _read_zstd(path: Path, info: zipfile.ZipInfo) -> bytes:
    """Decompress zstd, which newer versions of Inspect use; Python's zipfile supports it only from 3.14 on."""
    with open(path, "rb") as file:
        file.seek(info.header_offset)
        local = file.read(_LOCAL)
        if len(local) < _LOCAL or not local.startswith(SIGNATURE):
            raise zipfile.BadZipFile("the archive's index points to a missing entry")
        # The local header has its own lengths of the name and of an extra field, which may differ from those in the
        # archive's list: the data begins after both.
        file.seek(int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little"), 1)
        packed = file.read(min(info.compress_size, LARGEST_SAMPLE))
    return _decompress(path, packed)


def _decompress(path: Path, packed: bytes) -> bytes:
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
        raise UserError(
            f"{path} is packed with zstd, which this Python cannot read", hint=hint, code="file-unusable"
        ) from missing
    try:
        return zstandard.ZstdDecompressor().stream_reader(io.BytesIO(packed)).read(LARGEST_SAMPLE + 1)
    except zstandard.ZstdError as broken:
        raise ValueError(str(broken)) from broken
