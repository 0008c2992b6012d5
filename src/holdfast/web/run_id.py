"""The ids of runs and trials in an address, which cannot leave the folder of runs."""

from __future__ import annotations

import re
from typing import get_args

from holdfast.model.spec import Part

_PARTS = "|".join(get_args(Part))
_RUN = re.compile(rf"[0-9]{{1,12}}(?:/(?:{_PARTS}))?")
_TRIAL = re.compile(r"[0-9a-f]{1,64}")


def is_run_id(text: str) -> bool:
    """Whether it is a run id: `0007`, or `0007/contract` for a part."""
    return _RUN.fullmatch(text) is not None


def is_trial_id(text: str) -> bool:
    return _TRIAL.fullmatch(text) is not None


def split_id(words: list[str]) -> tuple[str, list[str]]:
    """Return the run's id at the start of a path, and the rest; the id is empty if there is none."""
    for length in (2, 1):
        id = "/".join(words[:length])
        if len(words) >= length and is_run_id(id):
            return id, words[length:]
    return "", words
