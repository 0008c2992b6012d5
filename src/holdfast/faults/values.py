"""Reads and changes parts of reply values of any Python type.

The tool may keep a value, so nothing is changed in place.
"""

from __future__ import annotations

import copy
import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import FunctionType, MethodType, ModuleType
from typing import Any, TypeAlias, TypeGuard

import msgspec

from holdfast.faults.texts import dump_like, parse_json
from holdfast.protocols.fault import FaultContext

Path: TypeAlias = tuple[Any, ...]
"""Keys, indexes and field names from the top of a value down to a part of it."""

_PLAIN = (str, bytes, bytearray, int, float, complex, type, ModuleType, FunctionType, MethodType, BaseException)
_DEPTH = 12  # deep enough for any reply
_PARTS = 5_000  # a reply of a million rows must not make a fault slow


def is_rows(value: Any) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    """Return whether it is a list, or a tuple without field names."""
    return isinstance(value, list) or (isinstance(value, tuple) and not hasattr(value, "_fields"))


def list_field_names(value: Any) -> Sequence[str]:
    """List the names of an object's public fields, in the order of its class; empty for anything else."""
    if value is None or isinstance(value, _PLAIN) or is_rows(value) or isinstance(value, Mapping):
        return ()
    return [name for name in _list_declared_names(value) if not name.startswith("_") and hasattr(value, name)]


def _list_declared_names(value: Any) -> Sequence[str]:
    kind: Any = type(value)
    if isinstance(value, tuple):
        return tuple(kind._fields)
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind)]
    if isinstance(value, msgspec.Struct):
        return value.__struct_fields__
    if _is_model(kind):
        return [*kind.model_fields, *(value.model_extra or ())]
    return [name for name in getattr(value, "__dict__", ()) if isinstance(name, str)]


def _is_model(kind: type) -> bool:
    return hasattr(kind, "model_fields") and hasattr(kind, "model_copy")


def is_record(value: Any) -> bool:
    """Return whether it is a mapping, or an object with fields."""
    return isinstance(value, dict | Mapping) or bool(list_field_names(value))


def list_fields(value: Any) -> list[tuple[Any, Any]]:
    """Return the parts of a value with their keys, in a stable order; a scalar has none."""
    if value is None or isinstance(value, _PLAIN):  # first, because most parts are scalars
        return []
    if isinstance(value, dict | Mapping):
        return list(value.items())
    if is_rows(value):
        return list(enumerate(value))
    return [(name, getattr(value, name)) for name in list_field_names(value)]


def replace_items(value: list[Any] | tuple[Any, ...], items: list[Any]) -> Any:
    """Return a sequence of the same type with other items."""
    if isinstance(value, tuple):
        return tuple(items)
    if type(value) is list:
        return items
    changed = copy.copy(value)
    changed[:] = items
    return changed


def replace_field(value: Any, key: Any, new: Any) -> Any:
    """Return a copy of the value with one part changed."""
    if isinstance(value, Mapping):
        changed = copy.copy(value) if isinstance(value, dict) else dict(value)
        changed[key] = new
        return changed
    if is_rows(value):
        items = list(value)
        items[key] = new
        return replace_items(value, items)
    return _replace_attribute(value, key, new)


def _replace_attribute(value: Any, name: str, new: Any) -> Any:
    # Each kind of class has its own way to make a changed copy; plain assignment would change what the tool may keep.
    if isinstance(value, tuple):
        return value._replace(**{name: new})  # type: ignore[attr-defined]  # a named tuple: it has fields
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(value, **{name: new})
    if _is_model(type(value)):
        return value.model_copy(update={name: new})
    changed = copy.copy(value)
    object.__setattr__(changed, name, new)  # frozen dataclasses too
    return changed


def get_part(value: Any, path: Path) -> Any:
    """Return the part at a path that exists."""
    for key in path:
        value = value[key] if isinstance(value, Mapping) or is_rows(value) else getattr(value, key)
    return value


def replace_part(value: Any, path: Path, new: Any) -> Any:
    """Return a copy of the value with the part at `path` changed; everything outside the path is shared."""
    if not path:
        return new
    return replace_field(value, path[0], replace_part(get_part(value, path[:1]), path[1:], new))


def list_parts(value: Any) -> list[tuple[Path, Any]]:
    """Return the value and all its parts with their paths, from the top down; long values are cut."""
    return list(islice(_walk(value, (), ()), _PARTS))


def _walk(value: Any, path: Path, above: tuple[Any, ...]) -> Iterator[tuple[Path, Any]]:
    yield path, value
    if not should_stop(value, above):
        for key, part in list_fields(value):
            yield from _walk(part, (*path, key), (*above, value))


def should_stop(value: Any, above: tuple[Any, ...]) -> bool:
    """Return whether to stop: the value contains itself, or is too deep."""
    return len(above) >= _DEPTH or any(value is container for container in above)


def edit_value(value: Any, edit: Callable[[Any], Any]) -> Any:
    """Return the value after `edit`, which returns its argument unchanged if there is nothing to change.

    Text and bytes that hold a JSON object or array are parsed for `edit` and written back in their original style.
    Other text, also as bytes, is passed as text; bytes that are not UTF-8 are passed unchanged.
    """
    if isinstance(value, bytes | bytearray):
        text = decode_text(value)
        if text is None:
            return edit(value)
        changed = edit_value(text, edit)
        return value if changed is text else type(value)(changed.encode(errors="replace"))
    data = parse_json(value) if isinstance(value, str) else None
    if data is None:
        return edit(value)
    changed = edit(data)
    return value if changed is data else dump_like(changed, value)


def decode_text(data: bytes | bytearray) -> str | None:
    """Return bytes as text, or None if they are not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def to_plain(value: Any, above: tuple[Any, ...] = ()) -> Any:
    """Return the value in JSON types: dicts, lists, text, numbers."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes | bytearray):
        return value.decode(errors="replace")
    if should_stop(value, above):
        return f"<{type(value).__name__}>"
    if is_rows(value):
        return [to_plain(item, (*above, value)) for item in value]
    if is_record(value):
        return {str(key): to_plain(part, (*above, value)) for key, part in list_fields(value)}
    text = str(value)
    return f"<{type(value).__name__}>" if " at 0x" in text else text  # an address in memory differs between runs


def copy_value(value: Any) -> Any:
    """Return a deep copy that later changes of the original do not affect; the value itself if it cannot be copied."""
    try:
        return copy.deepcopy(value)
    except (TypeError, ValueError, AttributeError, RecursionError, copy.Error):
        return value


def are_equal(one: Any, other: Any) -> bool:
    """Return whether two values are equal; a comparison that raises counts as unequal."""
    try:
        return one is other or bool(one == other)
    except (TypeError, ValueError, AttributeError):
        return False


TRIES = 64
"""Maximum number of changes to validate: each reads the complete value, and a reply may have thousands."""
NO_PLACE = "the tool declares a schema for its results, and no value that fits it can be put there"
_GAVE_UP = (
    f"the tool declares a schema for its results, and no value that fits it can be put in the first {TRIES} places"
)


def choose_fitting(value: Any, changed: Iterable[Any], ctx: FaultContext) -> Any:
    """Return the first change that the client accepts; the unchanged value if it accepts none."""
    others = (other for other in changed if other is not value)
    tried = False
    for other in islice(others, TRIES):
        if ctx.fits(other):
            return other
        tried = True
    if tried:
        ctx.idle = NO_PLACE if next(others, None) is None else _GAVE_UP
    return value


def change_each_text(value: Any, change: Callable[[str], str]) -> Iterator[Any]:
    """Yield the value with one of its texts changed: each in turn, longest first.

    Every field gets one turn before any gets a second. The rows of a list count as one field: a schema that rejects a
    text in one row rejects it in all.
    """
    # The first change that the client accepts is used, and each try validates the complete value. Long texts come
    # first, because names and ids are short; then one text of every field, because the rows of a list accept the same
    # texts.
    texts = [(path, part) for path, part in list_parts(value) if isinstance(part, str) and path]
    texts.sort(key=lambda at: -len(at[1]))
    counts: Counter[Path] = Counter()
    turns = []
    for path, text in texts:
        place = tuple(None if isinstance(key, int) else key for key in path)
        turns.append((counts[place], path, text))
        counts[place] += 1
    for _, path, text in sorted(turns, key=lambda turn: turn[0]):
        yield replace_part(value, path, change(text))
