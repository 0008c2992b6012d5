"""The mutations of one golden prompt while they are made."""

from __future__ import annotations

from msgspec import Struct

from holdfast.model.mutation import MutationType
from holdfast.model.task import Task
from holdfast.mutate.mutator import MadeMutation


class PromptDraft(Struct):
    """The mutations of one golden prompt while they are made."""

    task: Task
    made: dict[MutationType, list[MadeMutation]]
    seen: set[object]
    """What is taken: the prompt itself, and every mutation."""

    def take(self, type: MutationType, one: MadeMutation) -> bool:
        """Keeps it if it is new."""
        key = (one.turns, one.context, one.request)
        if key in self.seen:
            return False
        self.seen.add(key)
        self.made.setdefault(type, []).append(one)
        return True
