"""A recording of model calls, answered from by `--replay`. JSON, one reply a line."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import msgspec
from msgspec import Struct

from holdfast.errors import UserError
from holdfast.model.codec import encodable
from holdfast.model.format_numbers import RECORDING, Numbered, too_new
from holdfast.model.shorten import shorten
from holdfast.planes.llm.codecs.codec import Headers
from holdfast.planes.llm.sources.recording import Mask, bytes_of, key_of
from holdfast.planes.llm.sources.source import PassedReply, Query, StoredReply, UpstreamDown

TRIALS_KEPT = 10_000
"""Trials whose requests are counted, should nobody say that they are over."""


class NotRecorded(UpstreamDown):
    """The recording has no reply to this request."""


class RecordedReply(Struct, frozen=True):
    """One line of a recording."""

    key: str
    """Of the request: its provider, path and body, without what changes from run to run."""
    provider: str
    model: str
    prompt: str
    trial: str
    n: int
    """Which request with this key it was in its trial, from 1."""
    status: int
    headers: Headers
    chunks: tuple[str, ...]
    """Texts; base64 if `binary`."""
    binary: bool = False
    ms: float = 0.0
    format: int = 1
    """A line that was kept before it was numbered is of the first."""


class Occurrences:
    """How often each trial has sent each request."""

    def __init__(self) -> None:
        self._trials: OrderedDict[str, dict[str, int]] = OrderedDict()

    def next(self, trial: str, key: str) -> int:
        counts = self._trials.setdefault(trial, {})
        counts[key] = n = counts.get(key, 0) + 1
        if len(self._trials) > TRIALS_KEPT:
            self._trials.popitem(last=False)
        return n

    def forget(self, trial: str) -> None:
        self._trials.pop(trial, None)


class Cassette:
    """Answers from a recording: the same request of the same trial, else of any, gets the reply that was kept.

    Only an index is held in memory; a reply is read when it is asked for.
    """

    def __init__(self, path: Path, mask: Mask) -> None:
        self._path = path
        self._mask = mask
        self._origin = f"recording {path.name}"
        self._seen = Occurrences()
        self.forget = self._seen.forget
        self._places: dict[tuple[str, str, int], int] = {}
        self._by_key: dict[str, dict[int, int]] = {}
        self._prompts: dict[str, None] = {}
        self._read_index()

    async def answer(self, query: Query) -> PassedReply:
        """The recorded reply, chunk by chunk; NotRecorded if there is none."""
        key = key_of(query, self._mask)
        n = self._seen.next(query.trial, key)
        of_key = self._by_key.get(key)
        if of_key is None:
            raise NotRecorded(self._unknown(query))
        place = self._places.get((key, query.trial, n), of_key.get(n))
        taken = self._at(of_key[max(of_key)] if place is None else place)
        return PassedReply(
            StoredReply(taken.status, taken.headers, bytes_of(taken.chunks, taken.binary)), self._origin, billed=False
        )

    def _read_index(self) -> None:
        try:
            with self._path.open("rb") as file:
                place = 0
                for number, line in enumerate(file, 1):
                    if line.endswith(b"\n") and line.strip():  # a torn last line is no reply
                        self._index(line, number, place)
                    place += len(line)
        except OSError as broken:
            raise UserError(f"{self._path}: the recording cannot be read: {broken.strerror}") from broken
        if not self._by_key:
            raise UserError(f"{self._path}: the recording is empty", hint="make one with --record FILE")

    def _index(self, line: bytes, number: int, place: int) -> None:
        try:
            if (format := _numbers.decode(line).format) != RECORDING:
                said = too_new(f"{self._path}:{number}", format, RECORDING)
                raise UserError(said, hint="replay it with the version that recorded it, or record it anew")
            taken = _decoder.decode(line)
            bytes_of(taken.chunks, taken.binary)
        except (msgspec.MsgspecError, ValueError, RecursionError) as broken:
            raise UserError(f"{self._path}:{number}: not a line of a recording: {broken}") from broken
        which, of_key = (taken.key, taken.trial, taken.n), self._by_key.setdefault(taken.key, {})
        if of_key.get(taken.n) in (None, self._places.get(which)):
            of_key[taken.n] = place
        self._places[which] = place  # recorded again: the newer reply holds
        self._prompts[taken.prompt] = None

    def _at(self, place: int) -> RecordedReply:
        with self._path.open("rb") as file:
            file.seek(place)
            return _decoder.decode(file.readline())

    def _unknown(self, query: Query) -> str:
        from rapidfuzz import process

        prompt = self._mask(prompt_of(query))
        nearest = process.extractOne(prompt, list(self._prompts))
        known = f"; the nearest recorded prompt is {nearest[0]!r}" if nearest and nearest[0] else ""
        what = f"{query.model or query.path.partition('?')[0]} with the prompt {prompt!r}"
        return f"{self._origin} has no reply to this request of {what}{known}"


_decoder = msgspec.json.Decoder(RecordedReply)
_numbers = msgspec.json.Decoder(Numbered)


def prompt_of(query: Query) -> str:
    """What a person knows the request by, shortened."""
    return encodable(shorten(query.asked.prompt)) if query.asked is not None else ""
