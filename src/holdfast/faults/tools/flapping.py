"""flapping: calls fail and succeed alternately."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.faults.failures import build_failure
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, Reply

_WORDS = {"f": "fail", "fail": "fail", "o": "ok", "ok": "ok"}


@dataclass(frozen=True)
class Flapping:
    """Makes calls fail and succeed in a repeating pattern."""

    pattern: Annotated[
        str | tuple[str, ...],
        Meta(
            description="The repeating pattern: a list of `fail` and `ok`, or letters such as `FFO`.",
            examples=["FFO"],
        ),
    ] = ("fail", "ok")
    error_code: Annotated[int, Meta(description="The status code of the failures.", ge=100, le=599)] = 503
    message: Annotated[str, Meta(description="The error message; default: the standard text of the status.")] = ""

    traits: ClassVar[FaultTraits] = FaultTraits(
        reached="never", see=("invariants.retries_within", "invariants.recovers_within_ms", "invariants.latency")
    )

    def problems(self) -> Iterable[tuple[str, str]]:
        """Report a pattern that is invalid or never fails."""
        words = _split_pattern(self.pattern)
        strange = [word for word in words if word not in _WORDS]
        if strange:
            yield "pattern", f"found {strange[0]!r}; a pattern consists of fail and ok, or of the letters F and O"
        elif "fail" not in {_WORDS[word] for word in words}:
            yield "pattern", "this pattern never fails"

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        words = _split_pattern(self.pattern)
        if _WORDS[words[(ctx.n - 1) % len(words)]] == "fail":
            raise build_failure(self.error_code, self.message)
        return await forward(call)


def _split_pattern(pattern: str | Iterable[str]) -> list[str]:
    if not isinstance(pattern, str):
        return [word.strip().lower() for word in pattern]
    words = [word for word in re.split(r"[\s,]+", pattern.lower()) if word]
    letters = [letter for word in words for letter in word]
    return letters if set(letters) <= {"f", "o"} else words
