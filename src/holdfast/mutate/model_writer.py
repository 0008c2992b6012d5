"""A writer that is a model, asked as judges are."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from holdfast.errors import UserError
from holdfast.execute.agent_section import resolved_model
from holdfast.judge.advice_cache import AdviceCache
from holdfast.judge.consult import Consultation, ModelRole
from holdfast.judge.judges import missing_key
from holdfast.model.spec import ModelSpec
from holdfast.mutate.replies import replies
from holdfast.mutate.usable import unusable
from holdfast.mutate.writer import Assignment

WRITER = ModelRole("the model of mutations")
_NAME = "mutations"
"""What the model is called while it is asked: `model:` has no name but the provider's."""


class ModelWriter:
    """Asks the file's model, several assignments at a time; replies are kept by content. No event loop may run."""

    def __init__(
        self, model: ModelSpec, environ: Mapping[str, str], root: Path, cache: Path, *, retries: int = 2
    ) -> None:
        """`model` has its references still; scripts lie under `root`; `cache` is the folder of kept replies."""
        self._models = {_NAME: resolved_model(model, environ)}
        self._environ, self._root, self._retries = environ, root, retries
        self._cache = AdviceCache(cache)
        variable = missing_key(self._models, _NAME, environ)
        if variable:
            hint = f"set {variable}, or write api_key: ${{VAR}} into model:"
            raise UserError(f"the model {self.shown} has no key: {variable} is not set", hint=hint, key="model")

    @property
    def shown(self) -> str:
        model = self._models[_NAME]
        return f"script {model.script}" if model.script else f"{model.provider}/{model.name}"

    def __call__(self, asked: Sequence[Assignment]) -> Sequence[str]:
        return asyncio.run(self._all(asked))

    async def _all(self, asked: Sequence[Assignment]) -> Sequence[str]:
        consultation = Consultation(
            self._models, self._environ, self._root, self._cache, retries=self._retries, role=WRITER
        )
        try:
            async with asyncio.TaskGroup() as group:
                waiting = [group.create_task(self._one(consultation, one)) for one in asked]
        except BaseExceptionGroup as failed:
            raise _first(failed) from None
        finally:
            await consultation.close()
        return [task.result() for task in waiting]

    async def _one(self, consultation: Consultation, one: Assignment) -> str:
        advice = await consultation(
            _NAME, one.system, one.prompt, temperature=None, vote=one.round, fits=lambda text: _of_use(one, text)
        )
        return advice.text


def _of_use(one: Assignment, reply: str) -> bool:
    """A reply without any mutation in it is not kept: it is asked for again."""
    return any(not unusable(text, one.text, one.kept, one.canary, one.taken) for text in replies(reply))


def _first(failed: BaseExceptionGroup[BaseException]) -> BaseException:
    inner = failed.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner
