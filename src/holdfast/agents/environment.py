"""What every agent may read about the trial it is in, in its environment."""

from __future__ import annotations

import os

from holdfast.model.codec import encode
from holdfast.model.trial import Trial

_ID = "HOLDFAST_TRIAL"

_set: dict[str, str] = {}
"""What the last trial set in this process."""


def variables(trial: Trial) -> dict[str, str]:
    """What an agent's environment says of the trial."""
    wanted = {_ID: trial.id, "HOLDFAST_REPLICA": str(trial.replica), "HOLDFAST_SEED": str(trial.seed)}
    for name, value in trial.params.items():
        wanted[f"PARAM_{name.upper()}"] = value if isinstance(value, str) else encode(value).decode()
    return wanted


def set_environment(trial: Trial) -> None:
    """Sets the variables of this trial and removes what only the last one had; writes what changed alone."""
    os.environ[_ID] = _set[_ID] = trial.id
    _set_others(trial)


def set_environment_here(trial: Trial) -> None:
    """The same for thousands of trials in one process: the id is in `os.environ`, not in what a child inherits.

    The C library keeps every value that a variable ever had, and searches them all at each change: 100,000 ids
    would take 5 µs each and never be given back.
    """
    if _ID not in _set:
        os.environ[_ID] = trial.id
        os.unsetenv(_ID)
    os.environ._data[b"HOLDFAST_TRIAL"] = trial.id.encode()  # type: ignore[attr-defined]  # what os.environ reads
    _set[_ID] = trial.id
    _set_others(trial)


def _set_others(trial: Trial) -> None:
    wanted = variables(trial)
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
