"""How a reply is sent, apart from its content. Network faults change only this."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

DeliveryPart: TypeAlias = Literal["rate", "slices", "limit", "close_ms", "lags"]
"""A field of Delivery that a fault can set."""


class Slices(Struct, frozen=True):
    """Sends the bytes in pieces of about this size, with a wait after each."""

    average: int
    variation: int = 0
    delay_ms: float = 0.0
    seed: int = 0
    """Random seed for the sizes."""


class Lag(Struct, frozen=True):
    """Delays every piece by this time, with jitter."""

    delay_ms: float
    jitter_ms: float = 0.0
    seed: int = 0
    """Random seed for the jitter."""


class Delivery(Struct, frozen=True, omit_defaults=True):
    """How the bytes of a reply are sent. Planes that write bytes obey it; by default everything is sent immediately."""

    size: int | None = None
    """Bytes in the body of the original reply; None if the plane has no bytes."""
    rate: float | None = None
    """Bytes per second."""
    slices: Slices | None = None
    limit: int | None = None
    """Bytes of the body after which the connection closes."""
    close_ms: float = 0.0
    """Milliseconds between the last byte and the end of the reply."""
    lags: tuple[Lag, ...] = ()
    """Delays of everything that comes back on a connection; they add up."""

    @property
    def parts(self) -> frozenset[DeliveryPart]:
        """The fields that faults have set."""
        is_set: dict[DeliveryPart, bool] = {
            "rate": self.rate is not None,
            "slices": self.slices is not None,
            "limit": self.limit is not None,
            "close_ms": self.close_ms > 0,
            "lags": bool(self.lags),
        }
        return frozenset(part for part, here in is_set.items() if here)

    def __str__(self) -> str:
        """What the receiver observes, in a few words."""
        effects = [
            f"{self.rate / 1000:g} kB a second" if self.rate is not None else "",
            f"pieces of about {self.slices.average} bytes" if self.slices is not None else "",
            f"cut off after {self.limit} bytes" if self.limit is not None else "",
            f"ended {self.close_ms:g} ms late" if self.close_ms else "",
            f"delayed by {sum(lag.delay_ms for lag in self.lags):g} ms" if self.lags else "",
        ]
        return "the reply: " + (", ".join(part for part in effects if part) or "unchanged")


AS_IT_IS = Delivery()
