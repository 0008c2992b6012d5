"""Splits a text into blocks: data, code, tables, and lines of prose with their place in a list."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Any, NamedTuple

import yaml

from holdfast.likeness.tables import fold, load_months

_FENCE = re.compile(r"^\s*(```+|~~~+)\s*([\w+-]*)\s*$")
_STEP = re.compile(r"^\s*(?:[*_]*step\s+)?[（(]?(\d{1,2})[.):）](?=\s|[^\d\s])\s*", re.IGNORECASE)
_BULLET = re.compile(r"^\s*(?:[-*•–+])\s+(?=\S)")
_HEADING = re.compile(r"^\s*#{1,6}\s+")
_BOLD_LINE = re.compile(r"^\s*(\*\*|__)[^*_]+(\*\*|__):?\s*$")
_RULE_ROW = re.compile(r"^\s*\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)*\|?\s*$")
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"')*_]*\s+(?=[\"'(*_`¿¡]*[^\W_])|(?<=[。！？!?])")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|approx|no|nr|n|z\.b|ca|bzw|dr|mr|mrs|ms|st|sr|sra|p\.ej|a\.m|p\.m))\.$", re.I
)
_DAY = re.compile(r"\b\d{1,2}\.$")
_LONGEST = 1000
"""Maximum length of a sentence in characters."""
_FRACTIONS = {"½": "5", "¼": "25", "¾": "75"}


class Line(NamedTuple):
    """A sentence, a list item or a row of a table."""

    text: str
    kind: str
    """sentence, heading, lead (introduces a list), step, item or row."""
    of: int = 0
    """For a step or row: the number of its list or table."""


class TextTable(NamedTuple):
    """A table: its header and its rows, cell by cell."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class TextBlocks(NamedTuple):
    """The parts of a text."""

    lines: list[Line]
    data: list[Any]
    code: list[str]
    tables: list[TextTable]


def read_blocks(text: str) -> TextBlocks:
    """Return the blocks of a text; JSON and YAML are parsed, other code stays text."""
    blocks = TextBlocks([], [], [], [])
    whole = _parse_json(text)
    if whole is not None:
        blocks.data.append(whole)
        return blocks
    lines, prose = _normalize_signs(text).split("\n"), list[str]()
    at = 0
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        size = 1
        if fence:
            end = next((n for n in range(at + 1, len(lines)) if lines[n].strip().startswith(fence[1])), len(lines))
            _add_code("\n".join(lines[at + 1 : end]), fence[2].lower(), blocks)
            size = end + 1 - at
            prose.append("")
        elif at + 1 < len(lines) and "|" in lines[at] and _RULE_ROW.match(lines[at + 1]) and "|" in lines[at + 1]:
            size = 2
            while at + size < len(lines) and "|" in lines[at + size]:
                size += 1
            blocks.tables.append(_parse_table(lines[at : at + size]))
            prose.append("")
        else:
            prose.append(lines[at])
        at += size
    blocks.lines.extend(_iter_prose_lines(prose))
    return blocks


def _normalize_signs(text: str) -> str:
    """Normalise quotes, dashes, fractions and full-width letters; line ends stay."""
    text = re.sub(r"(\d?)([½¼¾])", lambda m: f"{m[1] or '0'}.{_FRACTIONS[m[2]]}", text)
    text = re.sub(r"(?<=\d)\s?[–—]\s?(?=[$€£]?\d)", "-", unicodedata.normalize("NFKC", text))
    return text.translate(str.maketrans("’‘“”„«»\u00a0\u202f−", '\'\'"""""  -')).replace("\r\n", "\n")


def _parse_json(text: str) -> Any:
    """Return the text as an object or a list, or None; numbers lose trailing zeros, because 79.90 equals 79.9."""
    text = text.strip()
    if not text.startswith(("{", "[")):
        return None
    try:
        return json.loads(text, object_pairs_hook=_build_object)
    except (ValueError, RecursionError):
        return None


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    built = dict(pairs)
    if len(built) < len(pairs):
        raise ValueError("a duplicate key: readers differ about which value counts")
    return built


def _add_code(code: str, name: str, blocks: TextBlocks) -> None:
    value = _parse_json(code)
    if value is None and name in ("yaml", "yml"):
        value = _parse_yaml(code)
    if isinstance(value, dict | list):
        blocks.data.append(value)
    else:
        blocks.code.append(code)


class _PlainLoader(yaml.SafeLoader):
    """Rejects duplicate keys, and aliases: a few lines of them stand for gigabytes of data, or for endless data."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        built = super().construct_mapping(node, deep)
        if len(built) < len(node.value):
            raise yaml.YAMLError("a duplicate key")
        return built


def _parse_yaml(code: str) -> Any:
    try:
        return yaml.load(code, _PlainLoader)  # noqa: S506  # a SafeLoader
    except (yaml.YAMLError, ValueError, RecursionError):  # ValueError: a date such as 2024-13-45, a number too long
        return None


def _parse_table(lines: Sequence[str]) -> TextTable:
    rows = [tuple(cell.strip() for cell in line.strip().strip("|").split("|")) for line in lines]
    return TextTable(rows[0], tuple(rows[2:]))


def iter_row_lines(table: TextTable, number: int) -> Iterator[Line]:
    """Yield each row as a line: the first cell, then each other cell with its header."""
    for row in table.rows:
        cells = [f"{head.lower()} {cell}" for head, cell in zip(table.header[1:], row[1:], strict=False)]
        yield Line(f"{row[0]}: {'; '.join(cells)}", "row", number)


def iter_data_lines(value: Any, path: str = "") -> Iterator[Line]:
    """Yield data as lines, to compare it with a text that says the same in prose."""
    if isinstance(value, dict):
        flat = [f"{key} {item}" for key, item in value.items() if not isinstance(item, dict | list)]
        if flat:
            yield Line("; ".join(flat), "item")
        for key, item in value.items():
            if isinstance(item, dict | list):
                yield from iter_data_lines(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from iter_data_lines(item, path)
    else:
        yield Line(f"{path} {value}", "item")


def _iter_prose_lines(lines: Sequence[str]) -> Iterator[Line]:
    """Yield sentences and list items; a line that continues a sentence is joined to it."""
    number, in_list = 0, False
    joined = list(_join_wrapped(lines))
    for at, line in enumerate(joined):
        step = _STEP.match(line)
        if step:
            number += not in_list
            in_list = True
            yield Line(line[step.end() :], "step", number)
            continue
        if not line.strip():
            continue
        bullet = _BULLET.match(line)
        in_list = in_list and (line.startswith(" ") or bool(bullet))
        if bullet:
            yield from (Line(part, "item") for part in split_sentences(line[bullet.end() :]))
        elif _HEADING.match(line) or _BOLD_LINE.match(line):
            # A heading with nothing below it counts as a statement.
            last = not any(after.strip() for after in joined[at + 1 :])
            yield Line(_HEADING.sub("", line), "sentence" if last else "heading")
        else:
            parts = split_sentences(line)
            listed = any(_BULLET.match(after) or _STEP.match(after) for after in joined[at + 1 : at + 3])
            for n, part in enumerate(parts):
                lead = n == len(parts) - 1 and (
                    part.rstrip(" *_").endswith((":", "：")) or (listed and not part.rstrip().endswith("."))
                )
                yield Line(part, "lead" if lead else "sentence")


def _join_wrapped(lines: Sequence[str]) -> Iterator[str]:
    """Join lines that only wrap a sentence."""
    pending = ""
    for line in lines:
        starts = not line.strip() or _BULLET.match(line) or _STEP.match(line) or _HEADING.match(line)
        # A line that ends without punctuation before one that begins with a small letter was only wrapped. Anything
        # else may be an entry of its own, and two joined entries would be compared as one sentence.
        goes_on = (
            pending.strip() and not starts and not pending.rstrip(" *_").endswith((".", "!", "?", ":", "。", "："))
        )
        if goes_on and not _BOLD_LINE.match(pending) and line[:1].strip() and line.lstrip()[:1].islower():
            pending = f"{pending} {line.strip()}"
            continue
        if pending:
            yield pending
        pending = line
        if not line.strip():
            yield ""
            pending = ""
    if pending:
        yield pending


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a line; one that does not end is cut at the maximum length."""
    parts: list[str] = []
    # A full stop after an abbreviation or an ordinal ("am 5. Mai") does not end a sentence, which only the text on
    # both of its sides can show.
    for part in _SENTENCE_END.split(text):
        if (
            parts
            and part
            and (_ABBREVIATION.search(parts[-1]) or (_DAY.search(parts[-1]) and _is_date_continued(part)))
        ):
            parts[-1] = f"{parts[-1]} {part}"
        elif part and part.strip():
            parts.append(part.strip())
    return [piece for part in parts for piece in (wrap(part, _LONGEST) if len(part) > _LONGEST else [part])]


def _is_date_continued(part: str) -> bool:
    """Return whether the text after `the 5.` belongs to it: `5. Mai`, `12. bis 15. Mai`."""
    first = part.split(maxsplit=1)[0] if part.strip() else ""
    return first[:1].islower() or fold(first.strip(".,")) in load_months()
