"""wrong_value: a wrong reply that fits the schema."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from itertools import combinations, pairwise
from random import Random
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from holdfast.faults.values import (
    Path,
    edit_value,
    is_record,
    is_rows,
    list_fields,
    list_parts,
    replace_items,
    replace_part,
)
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, HuntUse, Reply, Rung


@dataclass(frozen=True)
class WrongValue:
    """Returns a reply that fits the schema but is wrong: swapped digits or fields, mixed or missing rows."""

    kinds: Annotated[
        tuple[Literal["digits", "swap", "other_entity", "drop_rows"], ...],
        Meta(
            description="The kinds of error, chosen at random. Default: all. "
            "`digits` swaps two digits of a number. `swap` swaps two fields of a record. "
            "`other_entity` copies a value from another record. `drop_rows` removes records.",
            examples=[["digits"]],
        ),
    ] = ()

    traits: ClassVar[FaultTraits] = FaultTraits(
        hunted=(HuntUse(rung=Rung.WRONG_VALUE, common=True),),
        see=("invariants.claim_matches_state", "invariants.contains_any", "tool_faults.stale"),
    )

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        reply = await forward(call)

        def change(data: Any) -> Any:
            kinds = list(self.kinds or CHANGES)
            ctx.rng.shuffle(kinds)
            changed = (CHANGES[kind](data, ctx.rng) for kind in kinds)
            return next((other for other in changed if other is not data), data)

        ctx.idle = "no value in the reply can be replaced with a wrong one of the same form"
        return Reply(edit_value(reply.value, change))


# -- changes: each takes data and a random generator, and returns the same object if it finds nothing to change -------
# Not part of a date, a time, a version or an identifier: those would no longer match their format.
_NUMBER = re.compile(r"(?<![\w.:/-])\d+(?:,\d{3})*(?:\.\d+)?(?![\w:/-]|[.,]\d)")


def change_digits(data: Any, rng: Random) -> Any:
    """Swap two digits of one number; in text, of a number in it."""
    all_parts = list_parts(data)
    numbers = [(path, part) for path, part in all_parts if _is_number(part)]
    texts = [(path, part) for path, part in all_parts if isinstance(part, str) and _NUMBER.search(part)]
    if not numbers and not texts:
        return data
    # Numbers of the data come before numbers inside text: a wrong price is what an agent should notice, a changed digit
    # in a sentence is not.
    path, part = rng.choice(numbers or texts)
    return replace_part(
        data, path, _change_number_in_text(part, rng) if isinstance(part, str) else _change_number(part, rng)
    )


def _is_number(part: Any) -> bool:
    return isinstance(part, int | float | Decimal) and not isinstance(part, bool | Enum) and math.isfinite(part)


def _change_number(number: Any, rng: Random) -> Any:
    changed = type(number)(transpose_digits(str(number), rng))
    # At the ends of a float's range a digit changes nothing, or too much.
    return number / 2 if changed == number or not math.isfinite(changed) else changed


def _change_number_in_text(text: str, rng: Random) -> str:
    match = rng.choice(list(_NUMBER.finditer(text)))
    return text[: match.start()] + transpose_digits(match[0], rng) + text[match.end() :]


def transpose_digits(number: str, rng: Random) -> str:
    """Return the number with two neighbouring digits swapped or, if that changes nothing, with another digit."""
    mantissa, exponent = re.split(r"(?=[eE]|$)", number, maxsplit=1)
    # Beyond 15 digits a float may not represent the change.
    places = [at for at, sign in enumerate(mantissa) if sign.isdecimal()][:15]
    pairs = [(a, b) for a, b in pairwise(places) if mantissa[a] != mantissa[b]]
    # A leading zero would look wrong, and a number would lose it.
    pairs = [(a, b) for a, b in pairs if a != places[0] or mantissa[b] != "0"]
    signs = list(mantissa)
    if pairs:
        a, b = rng.choice(pairs)
        signs[a], signs[b] = signs[b], signs[a]
    else:
        at = max(place for place in places if place < len(mantissa.partition(".")[0]))  # before the point
        signs[at] = rng.choice([digit for digit in "123456789" if digit != signs[at]])
    return "".join(signs) + exponent


def swap_fields(data: Any, rng: Random) -> Any:
    """Swap the values of two fields of one record that have the same type."""
    pairs = [
        ((*path, a[0]), a[1], (*path, b[0]), b[1])
        for path, part in list_parts(data)
        if is_record(part)
        for a, b in combinations(list_fields(part), 2)
        if _can_swap(a[1], b[1])
    ]
    return _swap_pair(data, pairs, rng)


def swap_between_records(data: Any, rng: Random) -> Any:
    """Swap one field between two neighbouring records."""
    pairs = [
        ((*path, at, key), one, (*path, at + 1, key), other)
        for path, part in list_parts(data)
        if is_rows(part)
        for at, (first, second) in enumerate(pairwise(part))
        for key, one, other in _iterate_shared_fields(first, second)
        if _can_swap(one, other)
    ]
    return _swap_pair(data, pairs, rng)


def _iterate_shared_fields(first: Any, second: Any) -> Iterator[tuple[Any, Any, Any]]:
    if is_record(first) and is_record(second):
        others = dict(list_fields(second))
        yield from ((key, part, others[key]) for key, part in list_fields(first) if key in others)


def _can_swap(one: Any, other: Any) -> bool:
    return type(one) is type(other) and isinstance(one, str | int | float | Decimal) and one != other


def _swap_pair(data: Any, pairs: list[tuple[Path, Any, Path, Any]], rng: Random) -> Any:
    if not pairs:
        return data
    # Two numbers, if there are any: swapped names or texts often look wrong at first sight.
    numbers = [pair for pair in pairs if _is_number(pair[1])]
    path, one, other_path, other = rng.choice(numbers or pairs)
    return replace_part(replace_part(data, path, other), other_path, one)


def drop_rows(data: Any, rng: Random) -> Any:
    """Remove up to half of the rows of one list, at least one."""
    lists = [(path, part) for path, part in list_parts(data) if is_rows(part) and len(part) > 1 and _are_records(part)]
    if not lists:
        return data
    path, rows = rng.choice(lists)
    gone = set(rng.sample(range(len(rows)), rng.randint(1, len(rows) // 2)))
    return replace_part(data, path, replace_items(rows, [row for at, row in enumerate(rows) if at not in gone]))


def _are_records(rows: Any) -> bool:
    # Adjacent numbers may be a point or a range, whose length is part of the schema.
    return all(isinstance(row, str) or is_record(row) for row in rows)


CHANGES: Mapping[str, Callable[[Any, Random], Any]] = {
    "digits": change_digits,
    "swap": swap_fields,
    "other_entity": swap_between_records,
    "drop_rows": drop_rows,
}
