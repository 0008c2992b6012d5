"""Delivery: how a reply is put on the wire, beside what it says. Network faults change this and nothing else."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

DeliveryPart: TypeAlias = Literal["rate", "slices", "limit", "close_ms", "lags"]
"""A field of Delivery that a fault can set."""


class Slices(Struct, frozen=True):
    """The bytes go out in pieces of about this size, with a wait after each."""

    average: int
    variation: int = 0
    delay_ms: float = 0.0
    seed: int = 0
    """Of the dice for the sizes."""


class Lag(Struct, frozen=True):
    """Every piece comes so much later, a little more or less."""

    delay_ms: float
    jitter_ms: float = 0.0
    seed: int = 0
    """Of the dice for the jitter."""


class Delivery(Struct, frozen=True, omit_defaults=True):
    """How the bytes of a reply are sent. A plane that writes bytes obeys it; the default is: at once and whole."""

    size: int | None = None
    """Bytes of the reply's body as it came; None where the plane has no bytes."""
    rate: float | None = None
    """Bytes a second."""
    slices: Slices | None = None
    limit: int | None = None
    """Bytes of the body after which the connection closes."""
    close_ms: float = 0.0
    """How late the end of the reply comes, after all its bytes."""
    lags: tuple[Lag, ...] = ()
    """What comes back on a connection is late by the sum of them."""

    @property
    def parts(self) -> frozenset[DeliveryPart]:
        """The fields that faults have set."""
        held: dict[DeliveryPart, bool] = {
            "rate": self.rate is not None,
            "slices": self.slices is not None,
            "limit": self.limit is not None,
            "close_ms": self.close_ms > 0,
            "lags": bool(self.lags),
        }
        return frozenset(part for part, here in held.items() if here)

    def __str__(self) -> str:
        """What the receiver meets, in a few words."""
        told = [
            f"{self.rate / 1000:g} kB a second" if self.rate is not None else "",
            f"pieces of about {self.slices.average} bytes" if self.slices is not None else "",
            f"cut off after {self.limit} bytes" if self.limit is not None else "",
            f"its end {self.close_ms:g} ms late" if self.close_ms else "",
            f"{sum(lag.delay_ms for lag in self.lags):g} ms late" if self.lags else "",
        ]
        return "the reply: " + (", ".join(part for part in told if part) or "as it came")


AS_IT_IS = Delivery()
