"""The copy of a file that a run keeps: values that are secrets stand in it as digests. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from holdfast.model.codec import digest
from holdfast.model.spec import AgentSpec
from holdfast.reading.tree import parse
from holdfast.spec.references import names
from holdfast.spec.secrecy import KEY_HEADER, KEY_SHAPED, RESOLVED, scalars

_MASKED = re.compile(r"masked-[0-9a-f]{16}")
_STATIC = "static://"
_HINT = re.compile(r"(?i)static:|authorization|api[-_]?key|token|cookie|\\")
"""What a file has in which a secret stands: its place by name, or an escape that may hide it."""


def masked_copy(source: str) -> str:
    """The text without its literal secrets, which load as others do; the same text if it has none."""
    if not _HINT.search(source) and not KEY_SHAPED.search(source):
        return source  # nothing in it can be one: most files are not read a second time
    found = sorted(set(_secrets(source)), key=len, reverse=True)
    text = source
    for value in found:
        text = text.replace(value, _mask(value))
    if any(value in written for value in found for written in _texts(text)):
        return _written_anew(source, found)  # it stands there with escapes, or folded
    return text


def without_keys(agent: AgentSpec) -> AgentSpec:
    """The section as the copy has it: so the ids of trials are the same, whichever is read."""
    headers = {name: _header(name, value) for name, value in agent.headers.items()}
    return replace(agent, headers=headers) if headers != agent.headers else agent


def without_shapes(text: str) -> str:
    """A text whose parts that are shaped like a key are digests."""
    return KEY_SHAPED.sub(lambda found: _mask(found[0]), text)


def _header(name: str, value: str) -> str:
    return _mask(value) if _is_key_header(f"agent.headers.{name}", value) else value


def _is_key_header(path: str, text: str) -> bool:
    literal = not names(text).any and not _MASKED.fullmatch(text)
    return literal and bool(text) and re.fullmatch(KEY_HEADER, path) is not None


def _mask(value: str) -> str:
    return f"masked-{digest(value.encode(), 8)}"


def _secrets(source: str) -> Iterator[str]:
    """Every value that must not be kept, in the sections where the file's lint looks for them."""
    root, _ = parse(source)
    for node, path in scalars(root) if root is not None else ():
        text = node.text
        if re.fullmatch(r"secrets\[\d+\]\.from", path) and text.startswith(_STATIC):
            value = text.removeprefix(_STATIC)
            yield from () if _MASKED.fullmatch(value) else (value,)
        elif re.split(r"[.\[]", path, maxsplit=1)[0] in RESOLVED:
            yield from _keys(text, path)


def _keys(text: str, path: str) -> Iterator[str]:
    if _is_key_header(path, text) or "PRIVATE KEY-----" in text:
        yield text
    else:
        yield from (found[0] for found in KEY_SHAPED.finditer(text))


def _texts(source: str) -> Iterator[str]:
    root, _ = parse(source)
    return (node.text for node, _ in scalars(root)) if root is not None else iter(())


def _written_anew(source: str, found: list[str]) -> str:
    import yaml

    return str(yaml.safe_dump(_without(yaml.safe_load(source), found), sort_keys=False, allow_unicode=True))


def _without(part: Any, found: list[str]) -> Any:
    if isinstance(part, str):
        for value in found:
            part = part.replace(value, _mask(value))
        return part
    if isinstance(part, dict):
        return {key: _without(inner, found) for key, inner in part.items()}
    return [_without(inner, found) for inner in part] if isinstance(part, list) else part
