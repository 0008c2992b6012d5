"""Keeps a recording of model calls for `--record`.

What is kept is the upstream's own reply, before any fault. No header of a request is kept and no key; every text passes
the mask first. Failures of a provider and replies that broke off are not kept.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from time import perf_counter

from msgspec.structs import replace

from holdfast.errors import UserError
from holdfast.model.codec import carried, encode
from holdfast.model.format_numbers import RECORDING
from holdfast.planes.llm.sources.cassette import Occurrences, RecordedReply, prompt_of
from holdfast.planes.llm.sources.recording import Mask, kept, key_of, written
from holdfast.planes.llm.sources.source import (
    READ_LIMIT,
    Answered,
    ModelSource,
    Query,
    RawReply,
    WrittenReply,
    is_provider_failure,
)

_HEADERS = ("content-type", "retry-after", "openai-version", "openai-processing-ms")


class Recorder:
    """Writes replies to a file, each when it has come whole."""

    def __init__(self, path: Path, mask: Mask, note: Callable[[str], None]) -> None:
        self._mask = mask
        self._note = note
        self._seen = Occurrences()
        self.forget = self._seen.forget
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as broken:
            raise UserError(f"{path}: nothing can be recorded there: {broken.strerror}") from broken

    def of(self, source: ModelSource) -> ModelSource:
        """The same source, recorded."""
        return _Recorded(source, self)

    def take(self, query: Query, wire: RawReply, chunks: list[bytes], started: float) -> None:
        """Keeps a reply."""
        texts = kept(query, wire, chunks, self._mask)
        if texts is None:
            self._note("a reply that holds a secret in a form that cannot be masked was not recorded")
            return
        key = key_of(query, self._mask)
        taken = RecordedReply(
            key=key,
            provider=query.provider,
            model=self._mask(query.model),
            prompt=self._mask(prompt_of(query)),
            trial=query.trial,
            n=self._seen.next(query.trial, key),
            status=wire.status,
            headers=tuple([(name, self._mask(value)) for name in _HEADERS if (value := wire.get(name))]),
            chunks=texts.chunks,
            binary=texts.binary,
            ms=round((perf_counter() - started) * 1000, 1),
            format=RECORDING,
        )
        os.write(self._file, encode(carried(taken)) + b"\n")

    def too_long(self) -> None:
        self._note(f"a reply of over {READ_LIMIT // 1_000_000} MB was not recorded")

    def close(self) -> None:
        os.close(self._file)


class _Recorded:
    def __init__(self, source: ModelSource, recorder: Recorder) -> None:
        self._source = source
        self._recorder = recorder

    async def answer(self, query: Query) -> Answered:
        started = perf_counter()
        answered = await self._source.answer(query)
        if isinstance(answered, WrittenReply):
            wire = written(query, answered.completion)
            self._recorder.take(query, wire, [chunk async for chunk in wire.chunks()], started)
            return answered
        if is_provider_failure(answered.wire.status, query, billed=answered.billed):
            return answered
        return replace(answered, wire=_Tape(answered.wire, query, self._recorder, started))


class _Tape:
    """A reply that is kept as it passes."""

    def __init__(self, wire: RawReply, query: Query, recorder: Recorder, started: float) -> None:
        self._wire = wire
        self._query = query
        self._recorder = recorder
        self._started = started
        self.status = wire.status
        self.reason = wire.reason
        self.headers = wire.headers
        self.length = wire.length

    def get(self, name: str) -> str | None:
        return self._wire.get(name)

    def arrived(self) -> bytes | None:
        body = self._wire.arrived()
        if body is not None:
            self._recorder.take(self._query, self._wire, [body], self._started)
        return body

    async def chunks(self) -> AsyncIterator[bytes]:
        passed: list[bytes] = []
        size = 0
        try:
            async for chunk in self._wire.chunks():
                size += len(chunk)
                if size <= READ_LIMIT:
                    passed.append(chunk)
                yield chunk
        finally:
            self._wire.abort()  # nothing, if all of it has come
        if size > READ_LIMIT:
            self._recorder.too_long()
        else:
            self._recorder.take(self._query, self._wire, passed, self._started)

    async def read(self, limit: int = READ_LIMIT) -> bytes:
        body = await self._wire.read(limit)
        self._recorder.take(self._query, self._wire, [body], self._started)
        return body

    def abort(self) -> None:
        self._wire.abort()
