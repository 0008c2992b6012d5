"""Which source answers a model call: what `models:` says, else the provider; or a recording for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from holdfast.errors import UsageError
from holdfast.http1.client import Upstreams
from holdfast.model.spec import ModelSpec
from holdfast.planes.egress_policy import Policy
from holdfast.planes.llm.sources.assigned import Assigned
from holdfast.planes.llm.sources.cassette import Cassette
from holdfast.planes.llm.sources.model_name import entry_for, is_glob
from holdfast.planes.llm.sources.provider import Provider
from holdfast.planes.llm.sources.recorder import Recorder
from holdfast.planes.llm.sources.recording import Mask
from holdfast.planes.llm.sources.script import Script
from holdfast.planes.llm.sources.script_file import load
from holdfast.planes.llm.sources.source import ModelSource

NAMES_KEPT = 1_000
"""Names of models whose source is remembered: an agent that makes up names does not fill our memory."""


class Router:
    """Finds the source by provider and model name. Scripts and recordings are read when it is made.

    `models` have their references resolved; scripts lie under `root`; `mask` takes secrets out of what is recorded;
    `note` is told of what could not be; `policy` decides about hosts that the agent names.
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
        mask: Mask = str,
        note: Callable[[str], None] = lambda _: None,
        policy: Policy | None = None,
    ) -> None:
        if record is not None and replay is not None:
            raise UsageError("--record and --replay exclude each other")
        self._models = models
        self._environ = environ
        self.upstreams = upstreams
        self._policy = policy
        self._cassette = Cassette(replay, mask) if replay is not None else None
        self._scripts = {} if self._cassette else _scripts(models, root)
        self._recorder = Recorder(record, mask, note) if record is not None else None
        self._sources: dict[tuple[str, str], ModelSource] = {}
        self._by_model: dict[tuple[str, str], ModelSource] = {}

    def source(self, provider: str, model: str) -> ModelSource:
        """What answers for a model: the recording if there is one; else by the exact name, by the first glob that fits,
        by the provider."""
        if self._cassette is not None:
            return self._cassette
        found = self._by_model.get((provider, model))
        if found is None:
            found = self._found(provider, model)
            if len(self._by_model) < NAMES_KEPT:
                self._by_model[provider, model] = found
        return found

    def _found(self, provider: str, model: str) -> ModelSource:
        name = entry_for(self._models, model) or (None if model else self._any(provider))
        place = ("entry", name) if name is not None else ("provider", provider)
        found = self._sources.get(place)
        if found is None:
            found = self._sources[place] = self._made(provider, name)
        return found

    def forget(self, trial: str) -> None:
        """The trial is over: what was counted for it is dropped."""
        for keeper in (*self._scripts.values(), self._cassette, self._recorder):
            if keeper is not None:
                keeper.forget(trial)

    def close(self) -> None:
        if self._recorder is not None:
            self._recorder.close()

    def _any(self, provider: str) -> str | None:
        """A list of models names none of them: the first entry that could answer does."""
        fits = (name for name, spec in self._models.items() if spec.script is not None or spec.provider == provider)
        return next(fits, None)

    def _made(self, provider: str, name: str | None) -> ModelSource:
        source: ModelSource
        if name is None:
            source = Provider(provider, self.upstreams, self._environ, self._policy)
        elif (script := self._models[name].script) is not None:
            source = self._scripts[script]
        else:
            source = Assigned(self._models[name], self.upstreams, self._environ)
        return self._recorder.of(source) if self._recorder is not None else source


def _scripts(models: Mapping[str, ModelSpec], root: Path) -> dict[str, Script]:
    """Every script, by its path as the spec writes it; one file is one script, whatever names lead to it."""
    named: dict[str, list[str]] = {}
    for name, spec in models.items():
        if spec.script is not None:
            named.setdefault(spec.script, []).extend([] if is_glob(name) else [name])
    return {script: load(root / script, shown=script, names=tuple(names)) for script, names in named.items()}
