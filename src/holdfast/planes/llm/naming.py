"""What a model's name means: the entry of `models:` that it falls under."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from holdfast.model.spec import ModelSpec

_GLOB = frozenset("*?[")


def is_glob(name: str) -> bool:
    return not _GLOB.isdisjoint(name)


def entry_for(models: Mapping[str, ModelSpec], model: str) -> str | None:
    """The key of the entry: the exact name, else the first glob in file order that it matches."""
    if model in models:
        return model
    for name in models:
        if name == "*" or (is_glob(name) and fnmatchcase(model, name)):
            return name
    return None
