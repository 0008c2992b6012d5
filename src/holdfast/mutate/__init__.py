"""Golden prompts to mutated tasks."""

from __future__ import annotations

from holdfast.mutate.expand import Expansion, LeftOut, expand
from holdfast.mutate.mutators import mutator_of

__all__ = ["Expansion", "LeftOut", "expand", "mutator_of"]
