"""`side_effect_once`: the same write is not done twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec.structs import replace

from holdfast.checks.trace import calls
from holdfast.checks.trace.call_content import parse_arguments
from holdfast.checks.wording import shorten
from holdfast.model.codec import encode_canonical
from holdfast.model.observation import Exhibit
from holdfast.model.trace import TraceEvent
from holdfast.model.traits import CheckTraits
from holdfast.model.verdict import Finding
from holdfast.reading.fields import about
from holdfast.reading.words import format_plural


@dataclass(frozen=True)
class SideEffectOnce:
    """No write was done twice with the same tool and arguments, or method, URL and body.

    A call that a fault answered was not done; one whose reply was lost was. A repeat with the same idempotency key is
    not a second write.
    """

    tool: Annotated[
        calls.Glob | None,
        about(
            "Count only this tool: a name, a glob or a URL. Default: every tool counts as a write.",
            examples=["send_mail"],
        ),
    ] = None
    key: Annotated[
        str,
        about(
            "The argument or body field with the idempotency key; an Idempotency-Key header always counts.",
            min_length=1,
        ),
    ] = "idempotency_key"

    traits: ClassVar[CheckTraits] = CheckTraits(
        polarity="negative", reads="trace", see=("tool_faults.lost_reply", "service_faults.killed_mid_transaction")
    )
    codes: ClassVar[Mapping[str, str]] = {
        "done-once": "No write was done twice.",
        "done-twice": "A write was done more than once.",
        "maybe-done-twice": "A write may have been done more than once.",
    }

    def configured(self) -> CheckTraits:
        traits = calls.add_call_traits(self.traits, tool=self.tool)
        return traits if traits.tools else replace(traits, urls=calls.ANY_URL)

    def decide(self, exhibit: Exhibit) -> Finding:
        groups: dict[str, list[tuple[TraceEvent, str]]] = {}
        for event in calls.find_calls(exhibit.observation.trace):
            if event.write and calls.is_match(event, self.tool):
                identity, key = self._get_identity(event)
                groups.setdefault(identity, []).append((event, key))
        doubtful: Finding | None = None
        for group in groups.values():
            certain, possible = _count_done(group)
            name = calls.get_call_name(group[0][0])
            what = f"{name} {shorten(group[0][0].input, 60)}".rstrip()
            if certain > 1:
                listed = [f"{e.ts:.3f} s {calls.get_call_name(e)} {e.fault}".rstrip() for e, _ in group[: calls.LISTED]]
                why = f"done {format_plural(certain, 'time')}: {what}"
                return Finding(False, why, "done-twice", (name,), details={"calls": listed})
            if possible > 1:
                why = "a call failed without saying whether it was done"
                if any(e.phase == "declared" for e, _ in group):
                    why = "the model requested a call that never ran"
                text = f"may have been done {format_plural(possible, 'time')}, {why}: {what}"
                doubtful = Finding(None, text, "maybe-done-twice")
        return doubtful or Finding(True, f"{format_plural(len(groups), 'write')}, none done twice", "done-once")

    def _get_identity(self, event: TraceEvent) -> tuple[str, str]:
        """Return what identifies a write, and its idempotency key, which is not part of its identity."""
        fields = parse_arguments(event.input)
        own = next((name for name in fields or () if _normalize_name(name) == _normalize_name(self.key)), None)
        if fields is None or own is None:
            return event.identity, event.idempotency
        value = fields.pop(own)
        return f"{event.tool}:{encode_canonical(fields).decode()}", event.idempotency or str(value or "")

    def lint(self) -> Iterable[tuple[str, str, str]]:
        if self.tool is None:
            message = "every tool counts as a write: name the tool that changes something, or repeated reads fail"
            yield "lint-every-tool-writes", "", message


def _count_done(group: Iterable[tuple[TraceEvent, str]]) -> tuple[int, int]:
    """Return how often a write was certainly done, and at most. Calls with the same key count once."""
    # A call whose reply was lost has been carried out, and one that a fault answered has not. Where nobody knows, the
    # call counts as possible only, and two possible ones leave the rule unproven.
    certain: set[str] = set()
    possible: set[str] = set()
    for at, (event, key) in enumerate(group):
        was_done = calls.is_carried_out(event)
        one = f"key {key}" if key else f"call {at}"
        if was_done:
            certain.add(one)
        if was_done is not False:
            possible.add(one)
    return len(certain), len(possible)


def _normalize_name(name: str) -> str:
    return name.lower().replace("-", "_")
