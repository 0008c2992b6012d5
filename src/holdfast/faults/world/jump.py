"""jump: the clock jumps to just before a date boundary."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, ClassVar, Literal
from zoneinfo import ZoneInfo

from msgspec import Meta

from holdfast.errors import HarnessError
from holdfast.faults.world.clock import explain_unread_clock, format_time, require_clock, set_clock
from holdfast.protocols.fault import MET_CLOCK, FaultContext, FaultTraits
from holdfast.protocols.world import World

_HOUR = timedelta(hours=1)
_SOME_DAY = datetime(2026, 1, 1, tzinfo=UTC)
"""A zone with daylight saving has it in the years after this."""


@dataclass(frozen=True)
class Jump:
    """Sets the clock to just before midnight, the end of the month or a change of daylight saving."""

    to: Annotated[Literal["midnight", "month_end", "dst"], Meta(description="The date boundary.")] = "midnight"
    zone: Annotated[str, Meta(description="The time zone, such as Europe/Berlin.", min_length=1)] = "UTC"
    before_s: Annotated[float, Meta(description="Seconds before the boundary.", ge=0)] = 1.0

    traits: ClassVar[FaultTraits] = FaultTraits(disturbs="clock", met=MET_CLOCK)

    def problems(self) -> Iterable[tuple[str, str]]:
        zone = _find_zone(self.zone)
        if zone is None:
            yield "zone", f"no time zone is called {self.zone[:60]!r}"
        elif self.to == "dst" and _find_offset_change(_SOME_DAY, zone) is None:
            yield "zone", f"{self.zone} has no daylight saving: name a zone with daylight saving, such as Europe/Berlin"

    async def disturb(self, world: World, ctx: FaultContext) -> str:
        border = self.find_boundary(require_clock(world).time())
        await set_clock(world, ctx, border - self.before_s)
        return f"the clock jumps to {self.before_s:g} s before {format_time(border)}"

    unmet = staticmethod(explain_unread_clock)

    def find_boundary(self, now: float) -> float:
        """Return the next boundary after a moment, in seconds since 1970."""
        boundary, zone = None, _find_zone(self.zone)
        if zone is not None:
            start = datetime.fromtimestamp(now + self.before_s, zone)
            if self.to == "dst":
                boundary = _find_offset_change(start.astimezone(UTC), zone)
            else:
                next_month = (start.replace(day=28) + timedelta(days=4)).replace(day=1)
                day = next_month if self.to == "month_end" else start + timedelta(days=1)
                boundary = datetime(day.year, day.month, day.day, tzinfo=zone)
        if boundary is None:
            raise HarnessError(f"there is no {self.to} in {self.zone}", code="fault-impossible")
        return boundary.timestamp()


def _find_zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # an unknown or invalid name
        return None


def _find_offset_change(now: datetime, zone: ZoneInfo) -> datetime | None:
    """Return the next hour, within two years, at which the zone's UTC offset changes."""
    # The rules of a time zone cannot be asked for their next change, so its offset is compared hour by hour.
    at = now.replace(minute=0, second=0, microsecond=0)
    for _ in range(2 * 366 * 24):
        after = at + _HOUR
        if after.astimezone(zone).utcoffset() != at.astimezone(zone).utcoffset() and after > now:
            return after
        at = after
    return None
