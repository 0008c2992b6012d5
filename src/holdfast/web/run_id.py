"""What a run and a trial are called in an address: names that lead nowhere else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from holdfast.model.spec import Part
from holdfast.store.run_names import PARTS

_PARTS = "|".join(get_args(Part))
_RUN = re.compile(rf"[0-9]{{1,12}}(?:/(?:{_PARTS}))?")
_TRIAL = re.compile(r"[0-9a-f]{1,64}")


def is_run_id(text: str) -> bool:
    """`0007`, or `0007/contract` of a part."""
    return _RUN.fullmatch(text) is not None


def is_trial_id(text: str) -> bool:
    return _TRIAL.fullmatch(text) is not None


def run_folder(runs: Path, id: str) -> Path:
    """Where the run of that id lies."""
    number, _, part = id.partition("/")
    return runs / number / PARTS / part if part else runs / number


def split_id(words: list[str]) -> tuple[str, list[str]]:
    """The run's id at the start of a path, and what comes after it; an empty id where there is none."""
    for length in (2, 1):
        id = "/".join(words[:length])
        if len(words) >= length and is_run_id(id):
            return id, words[length:]
    return "", words
