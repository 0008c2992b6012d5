"""schema_drift: a field is renamed, missing or of another type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random
from types import SimpleNamespace
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.faults.texts import dump_json, rename_field
from holdfast.faults.values import (
    edit_value,
    is_record,
    is_rows,
    list_fields,
    list_parts,
    replace_field,
    replace_items,
    should_stop,
    to_plain,
)
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, Reply


@dataclass(frozen=True)
class SchemaDrift:
    """Renames, drops or retypes a field in every record. Default: renames one random field."""

    rename: Annotated[
        dict[str, str] | bool,
        Meta(
            description="New names by old name; `true` renames one random field.",
            examples=[{"price": "unit_price"}],
        ),
    ] = False
    drop: Annotated[tuple[str, ...], Meta(description="Fields to remove.")] = ()
    retype: Annotated[
        tuple[str, ...],
        Meta(description="Fields whose type changes: numbers to text, text to a number or a list, lists to one item."),
    ] = ()

    traits: ClassVar[FaultTraits] = FaultTraits(see=("tool_faults.malformed",))

    def problems(self) -> Iterable[tuple[str, str]]:
        """Report fields that are both dropped and changed, and empty names."""
        names = self.rename if isinstance(self.rename, dict) else {}
        for name in [*names, *self.retype]:
            if name in self.drop:
                yield "drop", f"{name!r} cannot be both dropped and changed"
        if any(not new for new in names.values()):
            yield "rename", "a field needs a name"

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        reply = await forward(call)
        ctx.idle = "no record in the reply has a field to change"
        return Reply(edit_value(reply.value, lambda data: self._drift(data, self._choose_names(data, ctx.rng), ())))

    def _choose_names(self, data: Any, rng: Random) -> Mapping[Any, str]:
        """Return the new name of each field to rename."""
        if isinstance(self.rename, dict):
            return self.rename
        if not self.rename and (self.drop or self.retype):
            return {}
        records = [part for _, part in list_parts(data) if is_record(part)]
        known = list(dict.fromkeys(key for record in records for key, _ in list_fields(record) if isinstance(key, str)))
        chosen = rng.choice(known) if known else None
        return {} if chosen is None else {chosen: rename_field(chosen, known)}

    def _drift(self, value: Any, names: Mapping[Any, str], above: tuple[Any, ...]) -> Any:
        before = [] if should_stop(value, above) else list_fields(value)
        if not before:
            return value
        # Nothing is changed in place, because the tool may keep the value. A part that did not change is passed on as
        # the same object, so that a reply without such a field stays the very object that the tool returned.
        after = [(key, self._drift(part, names, (*above, value))) for key, part in before]
        if is_rows(value):
            return replace_items(value, [part for _, part in after]) if _differ(before, after) else value
        after = [
            (names.get(key, key), _retype(part) if key in self.retype else part)
            for key, part in after
            if key not in self.drop
        ]
        return _rebuild(value, before, after) if _differ(before, after) else value


def _differ(before: list[tuple[Any, Any]], after: list[tuple[Any, Any]]) -> bool:
    return len(before) != len(after) or any(
        a[0] != b[0] or a[1] is not b[1] for a, b in zip(before, after, strict=True)
    )


def _rebuild(value: Any, before: list[tuple[Any, Any]], after: list[tuple[Any, Any]]) -> Any:
    if isinstance(value, Mapping):
        return dict(after)
    if [key for key, _ in before] != [key for key, _ in after]:
        # A class cannot lose a field and still compare or print itself, so the object becomes a plain namespace.
        return SimpleNamespace(**dict(after))
    for key, part in after:
        value = replace_field(value, key, part)
    return value


def _retype(part: Any) -> Any:
    """Return the content with another type."""
    if isinstance(part, bool) or part is None:
        return str(part).lower() if part is not None else ""
    if isinstance(part, str):
        return float(part) if part.replace(".", "", 1).isdecimal() else [part]
    if is_rows(part):
        return part[0] if part else None
    return dump_json(to_plain(part)) if is_record(part) else str(part)
