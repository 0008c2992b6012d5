"""The invariant x scenario matrix as lines of text that fit a width."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from holdfast.model.run import Run
from holdfast.model.score import Cell
from holdfast.report.safe import Paint, count_columns, make_visible, pad, shorten
from holdfast.report.short_names import shorten_names
from holdfast.report.wording import (
    FLAGS,
    SIGNS,
    format_column,
    format_count,
    format_tally,
    is_to_come,
    list_flags,
)

MAX_ROWS = 40
"""More rows do not fit a screen: then only rows with failures or flags are shown."""
_MAX_BLOCKS = 3
_SEVERITY, _GAP, _NARROW, _WIDE, _DENSE = 8, 3, 6, 18, 3


class Face(NamedTuple):
    """The appearance of one cell."""

    outcome: str
    text: str

    @property
    def quiet(self) -> bool:
        return self.outcome in ("pass", "n/a", "") and len(self.text) == 1


_BLANK = Face("", " ")
_NONE: Mapping[str, Face] = {}
_LOOKS: dict[Face, Face] = {}
"""Every appearance in use (signs, counts and flags), stored once."""


class Grid(Struct):
    """Everything needed to draw the matrix."""

    rules: Mapping[str, str]
    """Severity by rule."""
    heads: Sequence[str]
    faces: dict[str, dict[str, Face]] = field(default_factory=dict)
    """By rule, then by head: of a million cells few look different, and each look is stored once."""
    widest: int = _NARROW
    """Width of the widest look: a count must not be cut."""

    def add(self, rule: str, head: str, face: Face) -> None:
        self.faces.setdefault(rule, {})[head] = _LOOKS.setdefault(face, face)
        self.widest = max(self.widest, min(count_columns(face.text), _WIDE))

    def get_face(self, rule: str, head: str) -> Face:
        return self.faces.get(rule, _NONE).get(head, _BLANK)

    def is_quiet(self, rules: Sequence[str], heads: Sequence[str]) -> bool:
        return all(self.get_face(r, h).quiet for r in rules for h in heads)


def build_face(cell: Cell) -> Face:
    """`✘ 1/2 ≈`: sign, count and flags of a decided cell."""
    parts = (SIGNS[cell.outcome], format_tally(cell), "".join(list_flags(cell)))
    return Face(cell.outcome, " ".join(filter(None, parts)))


def build_grid(run: Run) -> Grid:
    """Return the matrix of a finished run; rules and columns in the order of the spec."""
    severities = {r.id: "critical" if r.gate else r.severity for r in run.invariants}
    rules: dict[str, str] = {}
    heads: dict[str, str] = {}
    made = Grid(rules, ())
    for row in run.cells:
        cell = row.cell
        rules[cell.invariant] = severities.get(cell.invariant, cell.severity)
        head = format_column(cell)
        heads.setdefault(head, head)
        if not is_to_come(run, cell):
            made.add(cell.invariant, heads[head], build_face(cell))
    made.heads = list(heads)
    return made


def draw(grid: Grid, width: int, paint: Paint) -> list[str]:
    """Return the lines of the matrix, wrapped into blocks, with a note on omitted rows."""
    rules, heads = list(grid.rules), list(grid.heads)
    blocks = _split_blocks(heads, _compute_room(rules, width), grid.widest)
    # Three levels of detail: everything; without the rows and columns in which nothing failed; and if that is still too
    # wide, numbered columns of one sign each, with the names below.
    if len(rules) > MAX_ROWS or len(blocks) > _MAX_BLOCKS:
        rules = [r for r in rules if not grid.is_quiet([r], heads)]
        heads = [h for h in heads if not grid.is_quiet(rules, [h])] if rules else []
        blocks = _split_blocks(heads, _compute_room(rules, width), grid.widest)
    visible = rules[:MAX_ROWS]
    dense = len(blocks) > _MAX_BLOCKS
    lines = list(
        _draw_dense(grid, visible, heads, width, paint) if dense else _draw_roomy(grid, visible, blocks, width, paint)
    )
    flags = format_legend(grid)
    return [*lines, *_describe_left_out(grid, rules, heads, paint), *([paint(f"  {flags}", "dim")] if flags else [])]


def fits_screen(grid: Grid, width: int, height: int) -> bool:
    """Return whether the complete matrix fits this many lines; cheap enough to call before each redraw."""
    blocks = len(_split_blocks(grid.heads, _compute_room(list(grid.rules), width), grid.widest))
    whole = len(grid.rules) <= MAX_ROWS and blocks <= _MAX_BLOCKS
    return whole and blocks * (len(grid.rules) + 2) + 1 <= height


def format_legend(grid: Grid) -> str:
    """Format what the flags in the matrix mean, if there are any."""
    looks = {face for row in grid.faces.values() for face in row.values()}
    used = {flag for face in looks for flag in face.text[1:] if flag in FLAGS}
    return "   ".join(f"{flag} {word}" for flag, word in FLAGS.items() if flag in used)


def _compute_room(rules: Sequence[str], width: int) -> int:
    return width - 2 - _compute_name_width(rules, width) - 2 - _SEVERITY


def _compute_name_width(rules: Sequence[str], width: int) -> int:
    return max(8, min(max(map(count_columns, rules), default=8), 36, width // 3))


def _split_blocks(heads: Sequence[str], room: int, least: int) -> list[list[tuple[str, int]]]:
    """Split the heads, with their widths, into blocks: as many per block as fit, at least one."""
    blocks: list[list[tuple[str, int]]] = []
    left = 0
    for head in heads:
        size = max(least, min(count_columns(make_visible(head)), _WIDE))
        if not blocks or left < size + _GAP:
            blocks.append([])
            left = room
        blocks[-1].append((head, size))
        left -= size + _GAP
    return blocks


def _draw_roomy(
    grid: Grid, rules: Sequence[str], blocks: Sequence[Sequence[tuple[str, int]]], width: int, paint: Paint
) -> Iterator[str]:
    indent = " " * (2 + _compute_name_width(rules, width) + 2 + _SEVERITY)
    heads = shorten_names((head for block in blocks for head, _ in block), _WIDE)
    names = _pad_names(rules, width)
    for block in blocks:
        yield (indent + "".join(" " * _GAP + pad(heads[h], n, centre=True) for h, n in block)).rstrip()
        for rule in rules:
            yield _draw_row(grid, rule, names[rule], block, _GAP, paint)
        yield ""


def _draw_dense(grid: Grid, rules: Sequence[str], heads: Sequence[str], width: int, paint: Paint) -> Iterator[str]:
    """Draw numbered columns with signs only, and the names below."""
    names, starts = _compute_name_width(rules, width), _pad_names(rules, width)
    per_block = max(1, (width - 4 - names - _SEVERITY) // _DENSE)
    signs = Grid(grid.rules, grid.heads)
    for rule in rules:
        for head in heads:
            face = grid.get_face(rule, head)
            signs.add(rule, head, Face(face.outcome, face.text[:1]))
    for start in range(0, len(heads), per_block):
        block = heads[start : start + per_block]
        yield " " * (4 + names + _SEVERITY) + "".join(f"{start + i:>{_DENSE}}" for i in range(1, len(block) + 1))
        for rule in rules:
            yield _draw_row(signs, rule, starts[rule], [(h, 1) for h in block], _DENSE - 1, paint)
        yield ""
    yield from _number_heads(heads, width)


def _number_heads(heads: Sequence[str], width: int) -> Iterator[str]:
    line = " "
    names = shorten_names(heads, 30)
    for n, head in enumerate(heads, 1):
        entry = f" {n} {names[head]} "
        if len(line) > 1 and count_columns(line + entry) > width:
            yield line.rstrip()
            line = " "
        line += entry
    yield line.rstrip()


def _pad_names(rules: Sequence[str], width: int) -> dict[str, str]:
    """Return the names of the rules, padded to one width."""
    room = _compute_name_width(rules, width)
    return {rule: pad(name, room) for rule, name in shorten_names(rules, room).items()}


def _draw_row(grid: Grid, rule: str, name: str, cells: Sequence[tuple[str, int]], gap: int, paint: Paint) -> str:
    severity = grid.rules[rule]
    # Blanks stay outside the colour codes, so trailing ones can be removed.
    painted = [pad(severity, _SEVERITY).replace(severity, paint(severity, "dim"))]
    for head, size in cells:
        face = grid.get_face(rule, head)
        text = shorten(face.text, size)
        painted.append(" " * gap + pad(text, size, centre=True).replace(text, paint(text, face.outcome), 1))
    return f"  {name}  {''.join(painted)}".rstrip()


def _describe_left_out(grid: Grid, rules: Sequence[str], heads: Sequence[str], paint: Paint) -> Iterator[str]:
    quiet, columns_off, more = len(grid.rules) - len(rules), len(grid.heads) - len(heads), len(rules) - MAX_ROWS
    if quiet:
        yield paint(
            f"  {format_count(quiet, 'rule')} held everywhere and {'is' if quiet == 1 else 'are'} not shown", "dim"
        )
    if columns_off and rules:
        yield paint(f"  {format_count(columns_off, 'scenario')} without failures not shown", "dim")
    if more > 0:
        yield paint(f"  and {format_count(more, 'more rule')}, see the report", "dim")
