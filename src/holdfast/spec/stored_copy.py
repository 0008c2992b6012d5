"""The copy of a file that a run keeps: values that are secrets stand in it as digests. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from holdfast.model.codec import digest
from holdfast.reading.node import Node
from holdfast.reading.tree import parse
from holdfast.secrets.spelling import KEY_NAME, KEY_SHAPED
from holdfast.spec.references import names
from holdfast.spec.secrecy import KEY_HEADER, RESOLVED, scalars

_MASKED = r"masked-[0-9a-f]{16}"
_STATIC = "static://"
_BOM = "\ufeff"
_HINT = re.compile(r"(?i)static:|authorization|api[-_]?key|token|cookie|\\")
"""What a file has in which a secret stands: its place by name, or an escape that may hide it."""
_PROPERTIES = r"\A(?:[&!]\S*\s+|#[^\n]*\n\s*)*"
"""The anchor and the tag before a value. Patterns of what few files hold are texts: re compiles them when needed."""
_BLOCK_HEAD = r"\A[|>][^\n]*"
_COMMENT = r"#[^\r\n]*"
_STATIC_COMMENT = rf"{_STATIC}([^'\"]+)"
_HEADER_COMMENT = rf"(?i)(\b{KEY_NAME}['\"]?\s*:\s+)(?P<value>\S.*)"
_PEM_COMMENT = r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[^\n]*\n[ \t]*#)*?[^\n]*?-----END [A-Z ]*PRIVATE KEY-----"


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
    for start, end in sorted(set(_spans(root))):
        body = re.sub(_PROPERTIES, "", source[start:end], count=1)
        parts += [_between(source[at : end - len(body)]), _written(body, changed.get((start, end)))]
        at = end
    return "".join([*parts, _between(source[at:])])


def _spans(node: Node) -> Iterator[tuple[int, int]]:
    """Where the scalars are, keys included: the rest is form and comments."""
    for inner in node.items:
        yield from _spans(inner)
    for key, value in node.pairs.values():
        yield from (*_spans(key), *_spans(value))
    if node.span[0] < node.span[1]:
        yield node.span


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
    return value if re.fullmatch(_MASKED, value) else f"masked-{digest(value.encode(), 8)}"


def _written(body: str, value: str | None) -> str:
    """The value, if it is another, in place of one that was written so; what follows stays on its line."""
    if value is None:
        return re.sub(_BLOCK_HEAD, lambda found: _between(found[0]), body, count=1)
    import yaml

    quoted: str = yaml.safe_dump(value, default_style='"', width=float("inf")).strip()
    return quoted + "\n" * body.count("\n")


def _between(text: str) -> str:
    """What stands between values: keys in comments, and names of anchors that are shaped like one."""
    text = re.sub(_PEM_COMMENT, lambda found: _mask(found[0]) + "\n#" * found[0].count("\n"), text)
    text = KEY_SHAPED.sub(lambda found: _mask(found[0]), text)
    return re.sub(_COMMENT, lambda found: _comment(found[0]), text)


def _comment(text: str) -> str:
    """A line that was commented out had its secrets where the lines of the file have theirs."""
    text = re.sub(_STATIC_COMMENT, lambda found: _STATIC + _mask(found[1]), text)
    return re.sub(
        _HEADER_COMMENT, lambda found: found[0] if names(found[0]).any else found[1] + _mask(found["value"]), text
    )
