"""Finds the model that answers for each name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from holdfast.errors import HarnessError
from holdfast.http1.client import Upstreams
from holdfast.model.codec import digest
from holdfast.model.model_spec import ModelSpec
from holdfast.planes.llm.sources.assigned import AssignedServer
from holdfast.planes.llm.sources.provider import Provider
from holdfast.planes.llm.sources.provider_hosts import (
    HOSTS,
    ResolvedModel,
    describe_unknown_model,
    find_named_base,
    find_own_key,
    resolve_model,
)
from holdfast.planes.llm.sources.script_file import load_script
from holdfast.planes.llm.sources.source import ModelSource

if TYPE_CHECKING:
    from ssl import SSLContext


def find_missing_key(models: Mapping[str, ModelSpec], model: str, environ: Mapping[str, str]) -> str:
    """Return the variable that should hold a provider's key and does not; empty if the model can be asked."""
    meant = resolve_model(models, model)
    if meant is None or meant.provider == "ollama":
        return ""
    entry = meant.entry
    if entry is not None and (entry.script or entry.api_key or entry.base_url):
        return ""
    if find_own_key(meant.provider, environ) is not None or find_named_base(meant.provider, environ) is not None:
        return ""
    return HOSTS[meant.provider].key_variables[0][0]


class JudgeClient(Struct, frozen=True):
    """The model client for one name."""

    source: ModelSource
    meaning: ResolvedModel
    shown: str
    identity: str
    """What its replies depend on, besides the question."""

    @property
    def is_script(self) -> bool:
        return self.meaning.entry is not None and self.meaning.entry.is_script


class Judges:
    """Model clients by name, created when first used."""

    def __init__(self, models: Mapping[str, ModelSpec], environ: Mapping[str, str], root: Path) -> None:
        """`models` have their references resolved; scripts are below `root`."""
        self._models = models
        self._environ = environ
        self._root = root
        self._upstreams = Upstreams(self._load_trusted_roots)
        self._known: dict[str, JudgeClient] = {}

    def find(self, model: str) -> JudgeClient:
        """Return the client for the name; raise HarnessError if there is none."""
        if model not in self._known:
            meant = resolve_model(self._models, model)
            if meant is None:
                raise HarnessError(describe_unknown_model(model), code="model-missing")
            self._known[model] = self._create(meant)
        return self._known[model]

    async def close(self) -> None:
        await self._upstreams.close()

    def _create(self, meant: ResolvedModel) -> JudgeClient:
        entry = meant.entry
        if entry is not None and entry.script is not None:
            return self._create_scripted(meant, entry.script)
        full_name = f"{meant.provider}/{meant.name}"
        base_url = find_named_base(meant.provider, self._environ) or ""
        if entry is None:
            source: ModelSource = Provider(meant.provider, self._upstreams, self._environ)
            return JudgeClient(source, meant, full_name, f"{full_name} at {base_url}")
        source = AssignedServer(entry, self._upstreams, self._environ)
        return JudgeClient(source, meant, full_name, f"{full_name} at {entry.base_url or base_url}")

    def _create_scripted(self, meant: ResolvedModel, script: str) -> JudgeClient:
        path = self._root / script
        source = load_script(path, label=script)
        return JudgeClient(source, meant, f"script {script}", f"script {digest(path.read_bytes(), 16)}")

    def _load_trusted_roots(self) -> SSLContext:
        from holdfast.planes.http.trust import create_trusted_context

        return create_trusted_context(self._environ)
