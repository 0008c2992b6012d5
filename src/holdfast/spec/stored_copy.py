"""The copy of a file that a run keeps: values that are secrets stand in it as digests. Pure."""

from __future__ import annotations

import re
from typing import Any

from holdfast.model.codec import digest
from holdfast.reading.tree import parse
from holdfast.spec.references import names
from holdfast.spec.secrecy import KEY_HEADER, KEY_SHAPED, RESOLVED, scalars

_MASKED = re.compile(r"masked-[0-9a-f]{16}")
_STATIC = "static://"
_BOM = "\ufeff"
_HINT = re.compile(r"(?i)static:|authorization|api[-_]?key|token|cookie|\\")
"""What a file has in which a secret stands: its place by name, or an escape that may hide it."""
_PROPERTIES = re.compile(r"\A(?:[&!]\S*\s+|#[^\n]*\n\s*)*")
"""The anchor and the tag before a value."""


def masked_copy(source: str) -> str:
    """The text without its literal secrets, which load as others do; the same text if it has none."""
    if not _HINT.search(source) and not KEY_SHAPED.search(source):
        return source  # nothing in it can be one: most files are not read a second time
    if source.startswith(_BOM):
        return _BOM + masked_copy(source.removeprefix(_BOM))  # the parser does not count it
    root, _ = parse(source)
    if root is None:
        return source
    changed = {
        node.span: value for node, path in scalars(root) if (value := without_keys(node.text, path)) != node.text
    }
    parts, at = [], 0
    for (start, end), value in sorted(changed.items()):
        parts += [source[at:start], _written(source[start:end], value)]
        at = end
    return "".join([*parts, source[at:]])


def without_keys(part: Any, path: str) -> Any:
    """A value of the file as the copy has it: so the ids of trials are the same, whichever is read."""
    if isinstance(part, dict):
        return {key: without_keys(inner, f"{path}.{key}") for key, inner in part.items()}
    if isinstance(part, list):
        return [without_keys(inner, f"{path}[{index}]") for index, inner in enumerate(part)]
    if part is None or isinstance(part, bool):
        return part
    masked = _text(str(part), path)
    return masked if masked != str(part) else part


def _text(text: str, path: str) -> str:
    """Masked in the sections where the file's lint looks for secrets."""
    if re.fullmatch(r"secrets\[\d+\]\.from", path) and text.startswith(_STATIC):
        return _STATIC + _mask(text.removeprefix(_STATIC))
    if re.split(r"[.\[]", path, maxsplit=1)[0] not in RESOLVED:
        return text
    if "PRIVATE KEY-----" in text or (re.fullmatch(KEY_HEADER, path) and text and not names(text).any):
        return _mask(text)
    return KEY_SHAPED.sub(lambda found: _mask(found[0]), text)


def _mask(value: str) -> str:
    return value if _MASKED.fullmatch(value) else f"masked-{digest(value.encode(), 8)}"


def _written(before: str, value: str) -> str:
    """The value in place of one that was written so; what follows stays on its line."""
    import yaml

    body = _PROPERTIES.sub("", before, count=1)
    quoted = yaml.safe_dump(value, default_style='"', width=float("inf")).strip()
    return before.removesuffix(body) + quoted + "\n" * body.count("\n")
