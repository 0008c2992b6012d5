"""Golden prompts to mutated tasks."""

from __future__ import annotations

from holdfast.mutate.expand import Expansion, OmittedType, expand, find_mutator

__all__ = ["Expansion", "OmittedType", "expand", "find_mutator"]
