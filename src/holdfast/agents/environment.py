"""What a trial says of itself in the environment of this process: set before it, and removed after."""

from __future__ import annotations

import os

from holdfast.model.trial import Trial
from holdfast.processes.startable import TRIAL, variables

_set: dict[str, str] = {}
"""What the last trial set in this process."""
_last: tuple[object, ...] = ()
"""What of it was made from, beside its id."""


def set_environment(trial: Trial) -> None:
    """Sets the variables of this trial and removes what only the last one had; writes what changed alone."""
    os.environ[TRIAL] = _set[TRIAL] = trial.id
    if (trial.replica, trial.seed, trial.params) != _last:
        _set_others(trial)


def set_environment_here(trial: Trial) -> None:
    """The same for thousands of trials in one process: the id is in `os.environ`, not in what a child inherits.

    The C library keeps every value that a variable ever had, and searches them all at each change: 100,000 ids
    would take 5 µs each and never be given back.
    """
    if TRIAL not in _set:
        os.environ[TRIAL] = trial.id
        os.unsetenv(TRIAL)
    os.environ._data[b"HOLDFAST_TRIAL"] = trial.id.encode()  # type: ignore[attr-defined]  # what os.environ reads
    _set[TRIAL] = trial.id
    if (trial.replica, trial.seed, trial.params) != _last:
        _set_others(trial)


def _set_others(trial: Trial) -> None:
    global _last
    _last = (trial.replica, trial.seed, trial.params)
    wanted = variables(trial)
    if _set.keys() - wanted.keys():
        clear_environment(keep=wanted)
    for name, text in wanted.items():
        if _set.get(name) != text:
            os.environ[name] = _set[name] = text


def clear_environment(keep: dict[str, str] | None = None) -> None:
    """Removes what was set, but for the names to keep."""
    global _last
    if keep is None:
        _last = ()
    for name in _set.keys() - (keep or {}).keys():
        os.environ.pop(name, None)
        del _set[name]
