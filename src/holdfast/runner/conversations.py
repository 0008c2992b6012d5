"""The simulated users of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import UNSET

from holdfast.errors import UserError
from holdfast.folders import USER_CACHE
from holdfast.model.spec import Spec
from holdfast.model.task import SimulatedUser, Task
from holdfast.store.rundir import RunDir

if TYPE_CHECKING:
    from holdfast.execute.simulated_users import SimulatedUsers
    from holdfast.judge.consult import Consultation


class Conversations:
    """Opens the simulated users of a spec."""

    def __init__(self, spec: Spec, environ: Mapping[str, str], run: RunDir) -> None:
        self._spec = spec
        self._environ = environ
        self._cache = run.own_folder / USER_CACHE
        self._consultation: Consultation | None = None

    def open(self, mask: Callable[[str], str]) -> SimulatedUsers:
        """Open the users of the run. Cache entries that others write from here on are not trusted."""
        from holdfast.execute.simulated_users import SimulatedUsers

        root = Path(self._spec.path).resolve().parent
        if any(user.model for user in _list_users(self._spec.tasks)):
            from holdfast.execute.resolved_spec import resolve_models
            from holdfast.judge.consult import PLAYER, AdviceCache, Consultation

            models = resolve_models(self._spec, self._environ)
            cache = AdviceCache(self._cache)
            self._consultation = Consultation(
                models, self._environ, root, cache, retries=self._spec.retries, role=PLAYER
            )
        return SimulatedUsers(root, self._consultation, mask)

    async def close(self) -> None:
        if self._consultation is not None:
            await self._consultation.close()
            self._consultation = None


def check_users(spec: Spec, environ: Mapping[str, str]) -> None:
    """Raise UserError if a model that plays a user has no key, before the agent is asked."""
    named = dict.fromkeys(user.model for user in _list_users(spec.tasks) if user.model)
    if not named:
        return
    from holdfast.execute.resolved_spec import resolve_models
    from holdfast.judge.judges import find_missing_key

    models = resolve_models(spec, environ)
    for model in named:
        variable = find_missing_key(models, model, environ)
        if variable:
            what = f"the model {model} that plays the user has no key: {variable} is not set"
            raise UserError(what, code="model-missing", hint=f"set {variable}, or describe it in models:", key="models")


def count_user_calls(task: Task) -> int:
    """Return the most model calls that one conversation can make without cached replies."""
    return 0 if task.user is UNSET or not task.user.model else task.max_turns - len(task.turns)


def _list_users(tasks: tuple[Task, ...]) -> Iterator[SimulatedUser]:
    return (task.user for task in tasks if task.user is not UNSET)
