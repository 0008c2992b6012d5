"""The entry point: how far two texts say the same, by their words and optionally by word vectors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, NamedTuple

from holdfast.errors import HarnessError
from holdfast.likeness.align import (
    Conflict,
    Nearness,
    Side,
    Statement,
    TextPair,
    compute_covered_share,
    drop_polite,
    join_forms,
    join_meanings,
    measure_coverage,
    read_statements,
    set_weights,
)
from holdfast.likeness.blocks import Line, TextBlocks, TextTable, iter_data_lines, iter_row_lines, read_blocks
from holdfast.likeness.conflicts import RULES
from holdfast.likeness.tables import Language, detect_language
from holdfast.likeness.tokens import name_words

_NEEDED = ("numpy", "safetensors", "tokenizers", "wordllama")
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_NEAR = 0.55
"""Two words with this cosine mean the same; opposites reach up to 0.5."""
_TOKENS = "tokenizers/l2_supercat_tokenizer_config.json"


def find_missing_packages() -> str | None:
    """Return what must be installed to compare meanings, or None."""
    lacking = [name for name in _NEEDED if find_spec(name) is None]
    if not lacking:
        lacking = [name for name in (_WEIGHTS, _TOKENS) if not (_find_folder() / name).is_file()]
    return f"method semantic needs {', '.join(lacking)}: pip install {' '.join(_NEEDED)}" if lacking else None


def _find_folder() -> Path:
    spec = find_spec("wordllama")  # Searches without importing: the package's own loader needs the network.
    places = spec.submodule_search_locations if spec is not None else None
    return Path(next(iter(places or ()), ""))


@cache
def _load_model() -> tuple[Any, Any]:
    """Return the tokenizer and the table of vectors, one row per token."""
    if lacking := find_missing_packages():
        raise HarnessError(lacking, code="extra-missing")
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(_find_folder() / _TOKENS))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    (table,) = load_file(str(_find_folder() / _WEIGHTS)).values()
    return tokenizer, table


@lru_cache(maxsize=512)
def _compute_direction(text: str) -> Any:
    """Return the mean of the text's vectors, normalised."""
    import numpy

    tokenizer, table = _load_model()
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    if not ids:
        return numpy.zeros(table.shape[1], dtype=numpy.float32)
    mean = table[ids].astype(numpy.float32).mean(axis=0)
    return mean / (float(numpy.linalg.norm(mean)) or 1.0)


def compute_cosine(one: str, other: str) -> float:
    """Return how similar two texts are in meaning, -1 to 1, before any calibration."""
    return float(_compute_direction(one) @ _compute_direction(other))


def is_near(one: str, other: str) -> bool:
    """Return whether two words have about the same meaning."""
    return compute_cosine(one, other) >= _NEAR


Method = Literal["lexical", "semantic"]
_LONGEST = 1_000_000
"""Maximum number of characters that are compared; the rest must be identical."""
_STEEP = 0.55
"""How fast unmatched words lower the score."""


class Likeness(NamedTuple):
    """The similarity of two texts, 0 to 1, and their conflicts; 0 only with a named conflict."""

    score: float
    conflicts: tuple[Conflict, ...] = ()


@lru_cache(maxsize=64)
def compare(expected: str, actual: str, method: Method = "lexical") -> Likeness:
    """Return how far both texts say the same; additions count as much as omissions."""
    if expected.split() == actual.split():
        return Likeness(1.0)
    if expected[_LONGEST:] != actual[_LONGEST:]:
        return Likeness(0.0, (Conflict("text", "", f"the texts differ after {_LONGEST} characters"),))
    expected, actual = expected[:_LONGEST], actual[:_LONGEST]
    # Structure first: data as data, code as code, tables by cells. What is left is prose, which is split into
    # statements and aligned. A named conflict (a number, a negation, a name) always makes the score 0: two answers that
    # differ in one figure share nearly all their words.
    lang = detect_language(f"{expected}\n{actual}")
    one, other = read_blocks(expected), read_blocks(actual)
    plain = not any((*one[1:], *other[1:]))
    # Blocks that were compared as data, code or tables are removed there. What could not be paired, such as a table in
    # one text and prose in the other, is turned into lines and compared as statements.
    conflicts = list(_compare_blocks(one, other))
    ours, theirs = (read_statements(_iter_lines(blocks), lang) for blocks in (one, other))
    if plain and not ours and not theirs and _list_small_words(expected) != _list_small_words(actual):
        conflicts.append(Conflict("text", expected, actual))
    score, statement_conflicts = _compare_statements(ours, theirs, lang, is_near if method == "semantic" else None)
    conflicts += statement_conflicts
    return Likeness(0.0, tuple(dict.fromkeys(conflicts))) if conflicts else Likeness(score)


def _list_small_words(text: str) -> list[str]:
    """Return the words of an answer such as `Yes, it is.`, none of which carries much meaning."""
    return re.findall(r"\w+", text.casefold())


def _compare_blocks(one: TextBlocks, other: TextBlocks) -> Iterator[Conflict]:
    """Compare data, code and tables that both texts have, and remove them from the lines."""
    if len(one.data) == len(other.data):
        for ours, theirs in zip(one.data, other.data, strict=True):
            yield from compare_data(ours, theirs, _find_differences)
        one.data.clear()
        other.data.clear()
    if len(one.code) == len(other.code):
        for code, other_code in zip(one.code, other.code, strict=True):
            yield from compare_code(code, other_code)
        one.code.clear()
        other.code.clear()
    if len(one.tables) == len(other.tables):
        compared = [compare_tables(*tables, _find_differences) for tables in zip(one.tables, other.tables, strict=True)]
        if all(cells is not None for cells in compared):
            for cells in compared:
                yield from cells or ()
            one.tables.clear()
            other.tables.clear()


def _find_differences(expected: str, actual: str) -> Iterator[Conflict]:
    """Yield the conflicts of two short texts, with the same standard as for two answers."""
    likeness = compare(expected, actual)
    if likeness.conflicts:
        yield from likeness.conflicts
    elif likeness.score < 0.75:
        yield Conflict("text", expected, actual)


def _iter_lines(blocks: TextBlocks) -> Iterator[Line]:
    yield from blocks.lines
    for value in blocks.data:
        yield from iter_data_lines(value)
    for code in blocks.code:
        yield from (Line(line, "sentence") for line in code.splitlines() if line.strip())
    for number, table in enumerate(blocks.tables):
        yield from iter_row_lines(table, number)


def _compare_statements(
    ours: list[Statement], theirs: list[Statement], lang: Language, near: Nearness | None
) -> tuple[float, list[Conflict]]:
    if not ours and not theirs:
        return (1.0, [])
    if not ours or not theirs:
        content = [one for one in (*ours, *theirs) if not one.is_light]
        return (1.0, []) if not content else (0.0, [Conflict("missing" if ours else "added", content[0].line.text, "")])
    name_words([clause for one in (*ours, *theirs) for clause in one.clauses], lang)
    join_forms(ours, theirs)
    if near is not None:
        join_meanings(ours, theirs, near)
    set_weights(ours)
    set_weights(theirs)
    pair = _align(ours, theirs)
    if any([drop_polite(ours, pair.one_covered, lang), drop_polite(theirs, pair.other_covered, lang)]):
        pair = _align(ours, theirs)
    # A score says how much of the texts is the same, and a conflict that they contradict each other. The lower of the
    # two coverages counts, because leaving something out is as bad as adding something.
    conflicts = [conflict for rule in RULES for conflict in rule(pair)]
    share = min(compute_covered_share(ours, pair.one_covered), compute_covered_share(theirs, pair.other_covered))
    return max(0.01, 1 - _STEEP * (1 - share)), conflicts


def _align(ours: list[Statement], theirs: list[Statement]) -> TextPair:
    one, other = Side(ours), Side(theirs)
    return TextPair(one, other, [measure_coverage(s, other) for s in ours], [measure_coverage(s, one) for s in theirs])


TextComparison = Callable[[str, str], Iterator[Conflict]]
_CODE = re.compile(r"\w+|[^\w\s]")
_COMMENT = re.compile(r"^\s*(?:#|//|--).*$", re.MULTILINE)


def compare_data(expected: Any, actual: Any, texts: TextComparison, path: str = "") -> Iterator[Conflict]:
    """Compare data: keys in any order, values by type, lists in order; longer texts may be worded differently."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in [*expected, *(key for key in actual if key not in expected)]:
            at = f"{path}.{key}" if path else str(key)
            if key not in actual or key not in expected:
                yield Conflict("data", at if key in expected else "", at if key in actual else "")
            else:
                yield from compare_data(expected[key], actual[key], texts, at)
    elif isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            yield Conflict("data", f"{path}: {len(expected)} items", f"{len(actual)} items")
        for n, (ours, theirs) in enumerate(zip(expected, actual, strict=False)):
            yield from compare_data(ours, theirs, texts, f"{path}[{n}]")
    elif isinstance(expected, str) and isinstance(actual, str):
        if expected.split() != actual.split():
            yield from texts(expected, actual)
    elif isinstance(expected, bool) != isinstance(actual, bool) or expected != actual:
        yield Conflict("data", f"{path}: {expected!r}", f"{actual!r}")


def compare_code(expected: str, actual: str) -> Iterator[Conflict]:
    """Compare code; whitespace, comment lines and a final semicolon do not matter."""
    ours, theirs = (_CODE.findall(_COMMENT.sub("", text).strip().rstrip(";")) for text in (expected, actual))
    for at, (one, other) in enumerate(zip_longest(ours, theirs, fillvalue="")):
        if one != other:
            yield Conflict("code", " ".join(ours[max(0, at - 2) : at + 2]), " ".join(theirs[max(0, at - 2) : at + 2]))
            return


def compare_tables(expected: TextTable, actual: TextTable, texts: TextComparison) -> Iterator[Conflict] | None:
    """Compare tables by cells: rows by their first cell or in order, columns by header; None if the headers differ."""
    # Columns may be reordered, and rows, if the first cell identifies them. If the headers or these cells differ, the
    # comparison of cells would be arbitrary, and the tables are read as lines instead.
    columns = {_normalize_cell(head): n for n, head in enumerate(actual.header)}
    if {_normalize_cell(head) for head in expected.header} != columns.keys() or len(columns) != len(expected.header):
        return None
    order = [columns[_normalize_cell(head)] for head in expected.header]
    rows = {_normalize_cell(row[order[0]]): row for row in actual.rows if len(row) == len(order)}
    if len(rows) != len(expected.rows) or {_normalize_cell(row[0]) for row in expected.rows} != rows.keys():
        return None
    return _compare_cells(expected, rows, order, texts)


def _compare_cells(
    expected: TextTable, rows: dict[str, tuple[str, ...]], order: list[int], texts: TextComparison
) -> Iterator[Conflict]:
    for row in expected.rows:
        other = rows[_normalize_cell(row[0])]
        for head, cell, at in zip(expected.header, row, order, strict=False):
            if _normalize_cell(cell) != _normalize_cell(other[at]):
                for conflict in texts(cell, other[at]):
                    yield conflict._replace(expected=f"{row[0]}, {head}: {conflict.expected}")


def _normalize_cell(cell: str) -> str:
    return re.sub(r"[*_`]", "", cell).strip().casefold()
