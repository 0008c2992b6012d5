"""custom: the file's own templates."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from holdfast.mutate.mutator import MadeMutation


class CustomTemplates:
    """Each template once, in the order of the file."""

    def __init__(self, templates: Mapping[str, str]) -> None:
        self._templates = tuple(templates.items())

    def mutate(self, prompt: str, n: int, rng: Random) -> MadeMutation | None:
        if n >= len(self._templates):
            return None
        name, template = self._templates[n]
        made = template.replace("{prompt}", prompt)
        return MadeMutation((made,), name) if made != prompt else None
