"""Hearing models for a run that is stored: what was said is used again, what was not is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeAlias

from msgspec.structs import replace

from holdfast.model.observation import Observation
from holdfast.model.spec import Invariant
from holdfast.model.trial import Trial
from holdfast.runner.consultations import WAITING, Consultations
from holdfast.store.consulted import StoredAdvice

Pair: TypeAlias = tuple[Invariant, Trial, Observation]
Compared: TypeAlias = Callable[[Trial], Observation | None]
"""The control that a trial is compared with."""
Hearing: TypeAlias = Callable[[Iterable[Pair], Compared], Iterator[Pair]]
"""Passes every rule and trial on, its observation with what a model said for that rule."""


def hearing(consultations: Consultations, known: StoredAdvice | None) -> Hearing:
    """`known` is what the run itself was told, where its rules are the same."""

    def hear(pairs: Iterable[Pair], compared: Compared) -> Iterator[Pair]:
        if not consultations:
            yield from pairs
            return
        feed = iter(pairs)
        with asyncio.Runner() as loop:
            try:
                while batch := tuple(islice(feed, WAITING)):
                    yield from loop.run(_all(consultations, known, batch, compared))
            finally:
                loop.run(consultations.close())

    return hear


async def _all(
    consultations: Consultations, known: StoredAdvice | None, batch: Iterable[Pair], compared: Compared
) -> list[Pair]:
    return await asyncio.gather(*(_one(consultations, known, pair, compared(pair[1])) for pair in batch))


async def _one(
    consultations: Consultations, known: StoredAdvice | None, pair: Pair, control: Observation | None
) -> Pair:
    rule, trial, seen = pair
    wanted = consultations.wanted((rule,), seen)
    if not wanted:
        return rule, trial, seen
    before = known.get(trial.id, rule.id) if known is not None else None
    said = {rule.id: before} if before is not None else await consultations.hear(wanted, trial, seen, control)
    return rule, trial, replace(seen, evidence={**seen.evidence, **said})
