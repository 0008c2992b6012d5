"""Secrets are masked by value before anything is stored, shown or sent."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from holdfast.errors import AgentUnavailable
from holdfast.model.codec import encode
from holdfast.model.observation import Observation

S = TypeVar("S", bound=msgspec.Struct)

MASK = "[masked]"
PIECE = 6
"""Characters of a secret that tell it: as few as a secret may have."""
_CUT = re.compile(r"\A|\s?…\s?|\Z")
"""Where a text may have been cut before it came here: at its ends, and where its middle was left out."""
_OURS = frozenset(
    {"trial", "invariant", "ending", "outcome", "effect", "plane", "mode", "event_type", "phase", "digest", "span_id",
     "parent_span_id"}
)  # fmt: skip
"""Fields that hold ids and words of ours: nothing an agent says gets there."""


class Masker:
    """Replaces every occurrence of the given values. With none it changes nothing and costs nothing."""

    def __init__(self, values: Iterable[str]) -> None:
        self._values = sorted({v for v in values if v}, key=len, reverse=True)  # the longest first
        self._pieces = [piece for v in self._values for piece in (v[:PIECE], v[-PIECE:])]
        self._encoded = [encode(piece)[1:-1] for piece in self._pieces]

    def __bool__(self) -> bool:
        return bool(self._values)

    def text(self, text: str) -> str:
        for value in self._values:
            text = text.replace(value, MASK)
        return self._beside_cuts(text) if any(piece in text for piece in self._pieces) else text

    def _beside_cuts(self, text: str) -> str:
        """Masks what a cut has left of a secret: its beginning before the cut, its end behind it."""
        parts: list[str] = []
        done = 0
        for cut in _CUT.finditer(text):
            before, behind = text[done : cut.start()], cut.end()
            parts += [before[: len(before) - self._begun(before)], MASK if self._begun(before) else "", cut.group()]
            done = behind + self._ended(text, behind)
            parts.append(MASK if done > behind else "")
        return "".join(parts) + text[done:]

    def _begun(self, text: str) -> int:
        """How many characters at the end of the text are the beginning of a secret."""
        sizes = (n for v in self._values for n in range(len(v) - 1, PIECE - 1, -1) if text.endswith(v[:n]))
        return max(sizes, default=0)

    def _ended(self, text: str, at: int) -> int:
        """How many characters at this place are the end of a secret."""
        sizes = (n for v in self._values for n in range(len(v) - 1, PIECE - 1, -1) if text.startswith(v[-n:], at))
        return max(sizes, default=0)

    def struct(self, value: S) -> S:
        """The value with every text in it masked; words of our own stay, or it could not be read again."""
        if not self._values:
            return value
        line = encode(value)
        if not any(secret in line for secret in self._encoded):
            return value
        masked: S = self._inside(value)
        return value if masked == value else masked

    def observation(self, seen: Observation) -> Observation:
        """The same, noting whether the agent itself had said a secret."""
        shown = self.struct(seen)
        if shown is seen:
            return seen
        said = any(a.text != b.text for a, b in zip(seen.turns, shown.turns, strict=True))
        return replace(shown, masked=said)

    def unavailable(self, gone: AgentUnavailable) -> AgentUnavailable:
        """The same failure; an agent's traceback or reply may quote a secret."""
        text = self.text
        return AgentUnavailable(text(str(gone)), hint=text(gone.hint), body=text(gone.body), config=gone.config)

    def _inside(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, msgspec.Struct):
            fields = [name for name in value.__struct_fields__ if name not in _OURS]
            return replace(value, **{name: self._inside(getattr(value, name)) for name in fields})
        if isinstance(value, dict):
            return {self._inside(k): self._inside(v) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(map(self._inside, value))
        return value
