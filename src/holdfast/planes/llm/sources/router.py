"""Chooses the source of a model call: the entry in `models:`, otherwise the provider; or a recording for all."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from time import perf_counter

from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import UsageError
from holdfast.http1.client import Upstreams
from holdfast.model.codec import encode, make_storable
from holdfast.model.model_spec import ModelSpec
from holdfast.planes.egress_policy import Policy
from holdfast.planes.llm.sources.assigned import AssignedServer
from holdfast.planes.llm.sources.cassette import (
    Cassette,
    Mask,
    PrefixSource,
    RecordedReply,
    RecordingUnusable,
    compute_key,
    describe_prompt,
    mask_chunks,
    write_reply,
)
from holdfast.planes.llm.sources.provider import Provider
from holdfast.planes.llm.sources.provider_hosts import find_entry, is_glob
from holdfast.planes.llm.sources.script import Script
from holdfast.planes.llm.sources.script_file import load_script
from holdfast.planes.llm.sources.source import (
    READ_LIMIT,
    ModelSource,
    Occurrences,
    Query,
    RawReply,
    SourceReply,
    WrittenReply,
    is_provider_failure,
)

_HEADERS = ("content-type", "retry-after", "openai-version", "openai-processing-ms")


class Router:
    """Finds the source by provider and model name. Scripts and recordings are read at construction.

    `models` have their references resolved; scripts are below `root`; `mask` removes secrets from recordings; `note`
    reports what could not be recorded; `policy` decides about hosts that the agent names. With `prefix` a
    recording answers a trial only as far as its requests are the recorded ones.
    """

    def __init__(
        self,
        models: Mapping[str, ModelSpec],
        environ: Mapping[str, str],
        root: Path,
        upstreams: Upstreams,
        *,
        record: Path | None = None,
        replay: Path | None = None,
        prefix: bool = False,
        mask: Mask = str,
        note: Callable[[str], None] = lambda _: None,
        policy: Policy | None = None,
    ) -> None:
        if record is not None and replay is not None:
            raise UsageError("--record and --replay cannot be combined", code="usage")
        self._models = models
        self._environ = environ
        self.upstreams = upstreams
        self._policy = policy
        self._cassette = Cassette(replay, mask) if replay is not None else None
        self._prefix = prefix
        self._missing: dict[str, str] = {}
        """With `prefix`, by trial that has left the recording: the request that it does not have."""
        self._scripts = {} if self._cassette and not prefix else _load_scripts(models, root)
        self._recorder = Recorder(record, mask, note) if record is not None else None
        self._sources: dict[tuple[str, str], ModelSource] = {}

    def get_source(self, provider: str, model: str) -> ModelSource:
        """Return the source for a model: the recording if there is one; otherwise by exact name, first matching glob
        or provider."""
        if self._cassette is not None and not self._prefix:
            return self._cassette
        name = find_entry(self._models, model) or (None if model else self._find_any_entry(provider))
        place = ("entry", name) if name is not None else ("provider", provider)
        source = self._sources.get(place)
        if source is None:
            source = self._sources[place] = self._create_source(provider, name)
        return source if self._cassette is None else PrefixSource(self._cassette, source, self._missing)

    def forget(self, trial: str) -> None:
        """Drop the counts of a trial that is over."""
        self._missing.pop(trial, None)
        for keeper in (*self._scripts.values(), self._cassette, self._recorder):
            if keeper is not None:
                keeper.forget(trial)

    def close(self) -> None:
        if self._recorder is not None:
            self._recorder.close()

    def _find_any_entry(self, provider: str) -> str | None:
        """Return the first entry that could answer, because a request for a list of models names none of them."""
        candidates = (
            name for name, spec in self._models.items() if spec.script is not None or spec.provider == provider
        )
        return next(candidates, None)

    def _create_source(self, provider: str, name: str | None) -> ModelSource:
        source: ModelSource
        if name is None:
            source = Provider(provider, self.upstreams, self._environ, self._policy)
        elif (script := self._models[name].script) is not None:
            source = self._scripts[script]
        else:
            source = AssignedServer(self._models[name], self.upstreams, self._environ)
        return RecordedSource(source, self._recorder) if self._recorder is not None else source


def _load_scripts(models: Mapping[str, ModelSpec], root: Path) -> dict[str, Script]:
    """Return every script, by its path as written in the spec; one file is one script, under any number of names."""
    names_by_script: dict[str, list[str]] = {}
    for name, spec in models.items():
        if spec.script is not None:
            names_by_script.setdefault(spec.script, []).extend([] if is_glob(name) else [name])
    return {
        script: load_script(root / script, label=script, names=tuple(names))
        for script, names in names_by_script.items()
    }


# Keeps a recording of model calls for `--record`. It stores the upstream's own reply, before any fault. Request headers
# and keys are not stored; every text is masked first. Provider failures and incomplete replies are not stored.
class Recorder:
    """Writes each reply to a file when it is complete."""

    def __init__(self, path: Path, mask: Mask, note: Callable[[str], None]) -> None:
        self._mask = mask
        self.note = note
        self._requests = Occurrences()
        self.forget = self._requests.forget
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as broken:
            raise RecordingUnusable(f"{path}: the recording cannot be written: {broken.strerror}") from broken

    def store_reply(self, query: Query, wire: RawReply, chunks: list[bytes], started: float) -> None:
        """Store a reply."""
        stored = mask_chunks(query, wire, chunks, self._mask)
        if stored is None:
            self.note("a reply was not recorded, because it contains a secret that cannot be masked")
            return
        texts, binary = stored
        key = compute_key(query, self._mask)
        recorded = RecordedReply(
            key=key,
            provider=query.provider,
            model=self._mask(query.model),
            prompt=self._mask(describe_prompt(query)),
            trial=query.trial,
            n=self._requests.count_next(query.trial, key),
            status=wire.status,
            headers=tuple([(name, self._mask(value)) for name in _HEADERS if (value := wire.get(name))]),
            chunks=texts,
            binary=binary,
            ms=round((perf_counter() - started) * 1000, 1),
        )
        os.write(self._file, encode(make_storable(recorded)) + b"\n")

    def close(self) -> None:
        os.close(self._file)


class RecordedSource(Struct, frozen=True):
    """A source whose replies are recorded."""

    source: ModelSource
    recorder: Recorder

    async def answer(self, query: Query) -> SourceReply:
        started = perf_counter()
        answered = await self.source.answer(query)
        if isinstance(answered, WrittenReply):
            wire = write_reply(query, answered.completion)
            self.recorder.store_reply(query, wire, [chunk async for chunk in wire.stream_body()], started)
            return answered
        if is_provider_failure(answered.wire.status, query, billed=answered.billed):
            return answered
        return replace(answered, wire=_Tape(answered.wire, query, self.recorder, started))


class _Tape(RawReply):
    """A reply that is stored as it passes."""

    def __init__(self, wire: RawReply, query: Query, recorder: Recorder, started: float) -> None:
        super().__init__(wire.status, wire.reason, wire.headers)
        self._wire = wire
        self._query = query
        self._recorder = recorder
        self._started = started

    async def stream_body(self) -> AsyncIterator[bytes]:
        passed: list[bytes] = []
        size = 0
        try:
            async for chunk in self._wire.stream_body():
                size += len(chunk)
                if size <= READ_LIMIT:
                    passed.append(chunk)
                yield chunk
        finally:
            self._wire.abort()  # nothing, if all of it has arrived
        if size > READ_LIMIT:
            self._recorder.note(f"a reply of over {READ_LIMIT // 1_000_000} MB was not recorded")
        else:
            self._recorder.store_reply(self._query, self._wire, passed, self._started)

    def abort(self) -> None:
        self._wire.abort()
