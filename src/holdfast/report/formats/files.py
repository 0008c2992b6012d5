"""Selects the reporter for a file name or a format, and writes its files, JSON in pieces."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast import plugins
from holdfast.errors import PluginError, UsageError, UserError
from holdfast.model.codes import RunWarning
from holdfast.model.run import Run
from holdfast.report.page.values import encode_json

if TYPE_CHECKING:
    from holdfast.protocols.reporter import Reporter

_FAMILY = "reporters"


def find_reporter(path: Path) -> Reporter:
    """Return the reporter for that path; raise UsageError if there is none, so call this before a long run."""
    suffix = path.suffix.lower()
    for name in _list_names():
        if suffix and get_suffix(name) == suffix:
            return get_reporter(name)
    example = f"write -o report{get_suffix(str(path))}" if str(path) in _list_names() else ""
    raise UsageError(
        f"cannot tell the format of {path}: its name ends in {suffix or 'no suffix'}",
        hint=example or f"end it in one of {', '.join(list_suffixes())}",
        code="format-unknown",
    )


def warn_shadowed(path: Path) -> RunWarning | None:
    """Return a warning if a plug-in's reporter has the same suffix and the built-in one is used."""
    rivals = [name for name in _list_names() if _has_suffix(name, path.suffix.lower())]
    if len(rivals) < 2:
        return None
    first, *others = rivals
    what = f"{path} is written as {first}: {' and '.join(others)} (plug-in) has the same suffix, {path.suffix}"
    return RunWarning("reporter-shadowed", f"{what} (output.format: {others[0]} in the spec chooses it)")


def _has_suffix(name: str, suffix: str) -> bool:
    try:
        return get_suffix(name) == suffix
    except PluginError:
        return False  # reported when the reporter is requested


def get_reporter(name: str) -> Reporter:
    """Return the reporter of that name."""
    plugin = plugins.find(_FAMILY, name)
    if plugin is None:
        raise UsageError(
            f"there is no format {name!r}",
            hint=f"formats: {', '.join(plugins.list_names(_FAMILY))}",
            code="format-unknown",
        )
    made: Reporter = plugin()
    return made


def get_suffix(name: str) -> str:
    """Return the suffix of that reporter's files."""
    if name in plugins.SUFFIXES:
        return plugins.SUFFIXES[name]
    suffix = getattr(plugins.find(_FAMILY, name), "suffix", None)  # a third-party class may raise anything
    if not isinstance(suffix, str) or not suffix.startswith(".") or suffix != suffix.lower():
        raise PluginError(
            f"reporter {name!r} has no suffix: a class variable such as suffix = '.{name}', in lower case",
            code="plugin-broken",
        )
    return suffix


def list_suffixes() -> list[str]:
    """Return every suffix that a report's name can have."""
    return list(dict.fromkeys(map(get_suffix, _list_names())))


def _list_names() -> Iterator[str]:
    """Yield names, built-in reporters first: broken plug-ins, or those with the same suffix, do not replace them."""
    own = plugins.BUILT_IN[_FAMILY]
    yield from own
    yield from (name for name in plugins.list_names(_FAMILY) if name not in own)


def write(run: Run, path: Path, by: Reporter | None = None) -> None:
    """Render the run to `path` completely or not at all; create missing folders. Extra files go next to it.

    Without a reporter, the suffix selects one.
    """
    rendered = (by or find_reporter(path)).render(run)
    try:
        make_folder(path.parent)
        for n, (name, pieces) in enumerate(rendered.items()):
            write_atomically(path if n == 0 else path.with_name(Path(name).name), _check_pieces(pieces))
    except OSError as refused:
        raise UsageError(f"cannot write {path}: {refused.strerror}", code="file-unusable") from refused


def make_folder(folder: Path) -> None:
    """Create the folder unless it exists. If a file is in its place, writing there fails with a clear error."""
    with suppress(FileExistsError):
        folder.mkdir(parents=True)


def write_atomically(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a temporary file and rename it, so a reader never sees half a file."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.writelines(pieces)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _check_pieces(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Separate errors of making pieces from errors of writing the file: both happen in one loop."""
    try:
        for piece in pieces:
            if not isinstance(piece, bytes):
                raise PluginError(f"a reporter returned {type(piece).__name__}, expected bytes", code="plugin-broken")
            yield piece
    except OSError as broken:
        raise UserError(f"cannot read {broken.filename}: {broken.strerror}", code="file-unusable") from broken


_STEP = b"  "


def encode_pieces(value: Any, indent: bytes = b"") -> Iterator[bytes]:
    """Yield the value as indented JSON, with the same bytes as in one piece; an iterator is written as a list, item by
    item.

    Maps are walked, so an iterator may be at any depth of them; every other value is one piece.
    """
    if isinstance(value, Iterator):
        yield from _encode_list(value, indent)
    elif isinstance(value, Mapping) and value:
        yield from _encode_map(value, indent)
    else:
        yield _encode_whole(value).replace(b"\n", b"\n" + indent)


def _encode_map(value: Mapping[str, Any], indent: bytes) -> Iterator[bytes]:
    inner, opening = indent + _STEP, b"{\n"
    for key, item in value.items():
        yield opening + inner + _encode_whole(key) + b": "
        yield from encode_pieces(item, inner)
        opening = b",\n"
    yield b"\n" + indent + b"}"


def _encode_list(items: Iterator[Any], indent: bytes) -> Iterator[bytes]:
    inner, opening = indent + _STEP, b"[\n"
    for item in items:
        # JSON strings contain no raw line breaks: whatever follows one is indentation.
        yield opening + inner + _encode_whole(item).replace(b"\n", b"\n" + inner)
        opening = b",\n"
    yield b"[]" if opening == b"[\n" else b"\n" + indent + b"]"


def _encode_whole(value: Any) -> bytes:
    return msgspec.json.format(encode_json(value), indent=len(_STEP))
