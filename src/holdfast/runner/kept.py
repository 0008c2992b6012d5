"""Selects the worlds to keep for inspection: those of trials in which something failed or broke."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from shlex import quote
from typing import TYPE_CHECKING

from holdfast.folders import KEPT, format_path, get_local_runs_folder, get_own_folder_of
from holdfast.model.observation import Observation
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.store.rundir import RunDir

if TYPE_CHECKING:
    from holdfast.world.kept_world import WorldKeeper


class KeptWorlds:
    """Keeps the worlds of trials that may have failed; the world of a passing trial is removed once it is judged."""

    def __init__(self, wanted: bool, run: RunDir, hidden: Collection[str] = ()) -> None:
        """`hidden` are the secret values that must not appear in kept worlds."""
        self.wanted = wanted
        self._run = run.path
        self._folder = run.own_folder / KEPT
        self._hidden = hidden
        self.trials: list[str] = []
        """The trials whose worlds are kept."""

    def open_keeper(
        self, mask: Callable[[str], str], wants: Callable[[Trial, Observation], bool]
    ) -> WorldKeeper | None:
        """Open the keeper of worlds; None if worlds are not kept."""
        if not self.wanted:
            return None
        from holdfast.world.kept_world import WorldKeeper

        return WorldKeeper(self._folder, mask, self._run, wants, self._hidden)

    def decide(self, observation: Observation, verdicts: Iterable[Verdict] = ()) -> None:
        """Decide whether to keep the world of a judged trial."""
        if not self.wanted:
            return
        from holdfast.world.sandbox.workspace import remove

        world = self._folder / observation.trial
        if not has_failed(observation, verdicts):
            remove(world)
        elif world.is_dir():  # a preflight has none
            self.trials.append(observation.trial)

    @property
    def notes(self) -> tuple[str, ...]:
        """Say where the kept worlds are."""
        if not self.trials:
            return ()
        more = f" and {len(self.trials) - 1} more" if len(self.trials) > 1 else ""
        folder = format_path(self._folder)
        here = self._folder.parent == get_own_folder_of(get_local_runs_folder()).absolute()
        trial = "TRIAL" if here else f"{quote(folder)}/TRIAL"
        return (f"kept in {folder}: the world of {self.trials[0]}{more}; holdfast shell {trial} opens it",)


def has_failed(observation: Observation, verdicts: Iterable[Verdict]) -> bool:
    """Return whether a rule failed or broke, or the agent did something forbidden."""
    broken = any(verdict.outcome in ("fail", "error") for verdict in verdicts)
    return bool(observation.error) or broken or any(one.violated or one.error for one in observation.forbidden)
