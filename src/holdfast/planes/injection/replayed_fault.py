"""Applies a fault that has fired to another reply, with the same random state, number and memory."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

from holdfast.model.delivery import AS_IT_IS
from holdfast.model.scenario import Injection
from holdfast.protocols.fault import Call, Failed, FaultContext, Fits, Forward, Reply


class ReplayedFault:
    """Create it before the fault acts. Applying it does not affect the call, and takes no time."""

    def __init__(
        self,
        injection: Injection,
        fault: Any,
        dice: Callable[[], Random],
        n: int,
        memory: dict[str, Any],
        fits: Fits | None,
    ) -> None:
        self._injection = injection
        self._fault = fault
        self._dice = dice
        self._n = n
        self._memory = _copy_memory(memory)
        self._fits = fits

    async def apply(self, call: Call, onward: Forward) -> Reply:
        """Apply the fault to the reply of `onward`. Raises what the fault raises."""
        delivery = AS_IT_IS

        async def forward(passed: Call) -> Reply:
            nonlocal delivery
            reply = await onward(passed)
            delivery = reply.delivery
            return reply

        ctx = FaultContext(self._dice(), _skip_wait, self._n, _copy_memory(self._memory))
        if self._fits is not None:
            ctx.fits = self._fits
        try:
            reply = await self._fault.apply(call, forward, ctx)
        except Failed as failed:
            failed.injection = failed.injection or self._injection
            raise
        return Reply(reply.value, delivery) if reply.delivery is AS_IT_IS else reply


def _copy_memory(memory: dict[str, Any]) -> dict[str, Any]:
    try:
        return deepcopy(memory)
    except Exception:  # it may hold any value that a tool returned
        return dict(memory)


async def _skip_wait(ms: float) -> None:
    """Do nothing: the caller already waited when the fault fired."""
