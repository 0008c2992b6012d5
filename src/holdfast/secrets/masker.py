"""Masks secrets by value before anything is stored, shown or sent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec
from msgspec.structs import astuple, replace

from holdfast.errors import AgentUnavailable
from holdfast.model.codec import encode
from holdfast.model.observation import MASK, Observation
from holdfast.secrets.spelling import SHORTEST_SECRET, list_plain_spellings, list_spellings

S = TypeVar("S", bound=msgspec.Struct)

PIECE = SHORTEST_SECRET
"""Characters of a secret that identify it: the minimum length of a secret."""
_LEFT_OUT = "…"
"""Marks the place where the middle of a text was left out earlier. It may have been cut at its ends, too."""
_OURS = frozenset(
    {"trial", "invariant", "ending", "outcome", "effect", "plane", "mode", "event_type", "phase", "digest", "span_id",
     "parent_span_id", "type", "rule", "feature", "audited_digest", "events_digest"}
)  # fmt: skip
"""Fields that hold Holdfast's own ids and words: an agent's text never gets there."""

_PLAIN = frozenset((int, float, bool))


class Masker:
    """Replaces every occurrence of the given values in any encoding. Without values it changes nothing."""

    def __init__(self, values: Iterable[str]) -> None:
        secrets = sorted({v for v in values if v}, key=len, reverse=True)  # the longest first
        self._forms = [form for secret in secrets for form in list_spellings(secret)]
        self._cores = [form.core.encode() for form in self._forms]
        self._pieces: dict[str, list[tuple[str, int, int]]] = {}
        """Every piece of every secret: its encoding, the position in it, and how much of it identifies the secret."""
        for secret in secrets:
            for whole in list_plain_spellings(secret):
                # An encoding is longer than the secret, so more of its characters are needed to identify the secret.
                least = PIECE * len(whole) // len(secret)
                for at in range(len(whole) - PIECE + 1):
                    self._pieces.setdefault(whole[at : at + PIECE], []).append((whole, at, least))

    def __bool__(self) -> bool:
        return bool(self._forms)

    def mask_text(self, text: str) -> str:
        for form in self._forms:
            # A substring test first: it is much faster than the pattern, and nearly always false.
            if form.core in text:
                text = form.pattern.sub(MASK, text)
        return self._mask_at_cuts(text) if self._is_cut(text) else text

    def _is_cut(self, text: str) -> bool:
        """Return whether a piece of a secret lies where the text may have been cut."""
        pieces = self._pieces
        # A text that was cut to fit may begin or end in the middle of a secret. One look-up of its first and last
        # characters shows that for all secrets and encodings, whatever their number.
        if text[:PIECE] in pieces or text[-PIECE:] in pieces:
            return True
        return _LEFT_OUT in text and self._mask_at_cuts(text) != text

    def _mask_at_cuts(self, text: str) -> str:
        """Mask the rest of a secret at a cut: its end at the start of a part, its beginning at the end of a part."""
        return _LEFT_OUT.join(map(self._mask_ends, text.split(_LEFT_OUT)))

    def _mask_ends(self, part: str) -> str:
        """Mask both ends of a part of a text between two cuts; a space may separate it from the cut."""
        if len(part) < PIECE:
            return part
        # A cut leaves the end of a secret at the start of the next part and its beginning at the end of the previous
        # one.
        for start in (0, 1) if part[:1].isspace() else (0,):
            if size := self._measure_ending(part, start):
                part = part[:start] + MASK + part[start + size :]
                break
        for end in (len(part), len(part) - 1) if part[-1:].isspace() else (len(part),):
            if size := self._measure_beginning(part, end):
                return part[: end - size] + MASK + part[end:]
        return part

    def _measure_beginning(self, text: str, end: int) -> int:
        """Return how many characters before this position are the beginning of a secret."""
        pieces = self._pieces.get(text[max(0, end - PIECE) : end], ())
        sizes = [
            at + PIECE
            for whole, at, least in pieces
            if at + PIECE >= least and text.endswith(whole[: at + PIECE], 0, end)
        ]
        return max(sizes, default=0)

    def _measure_ending(self, text: str, start: int) -> int:
        """Return how many characters from this position on are the end of a secret."""
        pieces = self._pieces.get(text[start : start + PIECE], ())
        sizes = [
            len(whole) - at
            for whole, at, least in pieces
            if len(whole) - at >= least and text.startswith(whole[at:], start)
        ]
        return max(sizes, default=0)

    def mask_struct(self, value: S) -> S:
        """Mask every text in the value except Holdfast's own words, without which it could not be read again."""
        if not self._forms:
            return value
        # One search in the encoded value replaces a walk through all its texts: a core has no characters that encoding
        # could change.
        if not any(map(encode(value).__contains__, self._cores)) and not self._has_cut_secret(value):
            return value
        masked: S = self._mask_inside(value)
        return value if masked == value else masked

    def mask_observation(self, observation: Observation) -> Observation:
        """Mask an observation, and record whether the agent itself output a secret."""
        masked = self.mask_struct(observation)
        if masked is observation:
            return observation
        agent_leaked = any(a.text != b.text for a, b in zip(observation.turns, masked.turns, strict=True))
        return replace(masked, masked=agent_leaked)

    def mask_error(self, gone: AgentUnavailable) -> AgentUnavailable:
        """Mask an error: an agent's traceback or reply may quote a secret."""
        text = self.mask_text
        return AgentUnavailable(
            text(str(gone)),
            code=gone.code,
            hint=text(gone.hint),
            body=text(gone.body),
            config=gone.config,
            key=gone.key,
        )

    def _has_cut_secret(self, value: Any) -> bool:
        """Return whether a text in the value is cut within a secret; it runs for every event, so it must be fast."""
        kind = type(value)
        if kind is str:
            return self._is_cut(value)
        if kind is dict:
            return self._has_cut_secret((*value, *value.values()))
        if isinstance(value, msgspec.Struct):
            value = astuple(value)
        elif kind is not tuple and kind is not list:
            return False
        for one in value:  # noqa: SIM110  # a generator takes half as long again
            if one and type(one) not in _PLAIN and self._has_cut_secret(one):
                return True
        return False

    def _mask_inside(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.mask_text(value)
        if isinstance(value, msgspec.Struct):
            fields = [name for name in value.__struct_fields__ if name not in _OURS]
            return replace(value, **{name: self._mask_inside(getattr(value, name)) for name in fields})
        if isinstance(value, dict):
            return {self._mask_inside(k): self._mask_inside(v) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(map(self._mask_inside, value))
        return value
