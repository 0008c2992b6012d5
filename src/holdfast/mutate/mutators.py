"""Maps each type to its mutator."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from holdfast.model.mutation import REQUEST_MUTATIONS, MutationType
from holdfast.mutate.mutator import Mutator

CORPORA: tuple[MutationType, ...] = (
    "prompt_injection", "context_manipulation", "multi_turn_attack", "advanced_jailbreak", "format_poisoning",
    "temporal_attack",
)  # fmt: skip
"""Types whose texts are a file of attacks."""


def find_mutator(type: MutationType, templates: Mapping[str, str] | None = None) -> Mutator:
    """Returns the mutator of a type that needs no model; `templates` are those of `custom`."""
    if type in REQUEST_MUTATIONS:
        table: Mapping[str, Mutator] = import_module("holdfast.mutate.request").REQUEST_MUTATORS
        return table[type]
    if type in CORPORA:
        from holdfast.mutate.corpus import CorpusAttacks

        return CorpusAttacks(type)
    if type == "custom":
        from holdfast.mutate.corpus import CustomTemplates

        return CustomTemplates(templates or {})
    return _find_techniques(type)


def _find_techniques(type: MutationType) -> Mutator:
    from holdfast.mutate.encoding_attacks import ENCODING_ATTACKS
    from holdfast.mutate.language_mixing import LANGUAGE_MIXING
    from holdfast.mutate.length_extremes import LENGTH_EXTREMES
    from holdfast.mutate.noise import NOISE
    from holdfast.mutate.token_manipulation import TOKEN_MANIPULATION

    table: Mapping[str, Mutator] = {
        "encoding_attacks": ENCODING_ATTACKS,
        "language_mixing": LANGUAGE_MIXING,
        "length_extremes": LENGTH_EXTREMES,
        "noise": NOISE,
        "token_manipulation": TOKEN_MANIPULATION,
    }
    return table[type]
