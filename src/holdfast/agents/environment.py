"""What every agent may read about the trial it is in, in its environment."""

from __future__ import annotations

import os

from holdfast.model.codec import encode
from holdfast.model.trial import Trial

_set: dict[str, str] = {}
"""What the last trial set in this process."""


_ALONE = {"HOLDFAST_TRIAL", "HOLDFAST_REPLICA", "HOLDFAST_SEED"}


def set_environment(trial: Trial) -> None:
    """Sets the variables of this trial and removes what only the last one had; writes what changed alone."""
    if not trial.params and _set.keys() == _ALONE and _set["HOLDFAST_SEED"] == str(trial.seed):
        os.environ["HOLDFAST_TRIAL"] = _set["HOLDFAST_TRIAL"] = trial.id
        if _set["HOLDFAST_REPLICA"] != (replica := str(trial.replica)):
            os.environ["HOLDFAST_REPLICA"] = _set["HOLDFAST_REPLICA"] = replica
        return  # the usual case, thousands of times in a row inline
    wanted = {"HOLDFAST_TRIAL": trial.id, "HOLDFAST_REPLICA": str(trial.replica), "HOLDFAST_SEED": str(trial.seed)}
    for name, value in trial.params.items():
        wanted[f"PARAM_{name.upper()}"] = value if isinstance(value, str) else encode(value).decode()
    if _set.keys() - wanted.keys():
        clear_environment(keep=wanted)
    for name, text in wanted.items():
        if _set.get(name) != text:
            os.environ[name] = _set[name] = text


def clear_environment(keep: dict[str, str] | None = None) -> None:
    """Removes what was set, but for the names to keep."""
    for name in _set.keys() - (keep or {}).keys():
        os.environ.pop(name, None)
        del _set[name]
