"""Which worlds stay for a look: those of trials in which something failed or broke."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.model.observation import Observation
from holdfast.model.verdict import Verdict


class KeptWorlds:
    """Worlds are left by every trial while a run goes on; one in which all went well is removed once it is judged."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self.trials: list[str] = []
        """Whose worlds stay."""

    def judged(self, seen: Observation, verdicts: Iterable[Verdict] = ()) -> None:
        """What became of a trial is known."""
        if not self._wanted:
            return
        from holdfast.world.keeping import KEPT, forget

        if went_wrong(seen, verdicts):
            self.trials.append(seen.trial)
        else:
            forget(KEPT / seen.trial)

    @property
    def notes(self) -> tuple[str, ...]:
        """Where they are."""
        if not self.trials:
            return ()
        more = f" and {len(self.trials) - 1} more" if len(self.trials) > 1 else ""
        return (
            f"kept for a look in .holdfast/kept: the world of {self.trials[0]}{more}; holdfast shell TRIAL opens it",
        )


def went_wrong(seen: Observation, verdicts: Iterable[Verdict]) -> bool:
    """Whether a rule failed or broke, or something forbidden was done."""
    broken = any(verdict.outcome in ("fail", "error") for verdict in verdicts)
    return bool(seen.error) or broken or any(one.violated or one.error for one in seen.forbidden)
