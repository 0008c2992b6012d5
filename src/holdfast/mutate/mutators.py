"""Maps each type to its mutator."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.model.mutation import MutationType
from holdfast.mutate.corpus import CorpusAttacks, CustomTemplates
from holdfast.mutate.encoding_attacks import ENCODING_ATTACKS
from holdfast.mutate.language_mixing import LANGUAGE_MIXING
from holdfast.mutate.length_extremes import LENGTH_EXTREMES
from holdfast.mutate.mutator import Mutator
from holdfast.mutate.noise import NOISE
from holdfast.mutate.request import REQUEST_MUTATORS
from holdfast.mutate.token_manipulation import TOKEN_MANIPULATION

CORPORA: tuple[MutationType, ...] = (
    "prompt_injection", "context_manipulation", "multi_turn_attack", "advanced_jailbreak", "format_poisoning",
    "temporal_attack",
)  # fmt: skip
"""Types whose texts are a file of attacks."""
_MUTATORS: Mapping[str, Mutator] = {
    "encoding_attacks": ENCODING_ATTACKS,
    "language_mixing": LANGUAGE_MIXING,
    "length_extremes": LENGTH_EXTREMES,
    "noise": NOISE,
    "token_manipulation": TOKEN_MANIPULATION,
    **{type: CorpusAttacks(type) for type in CORPORA},
    **REQUEST_MUTATORS,
}


def find_mutator(type: MutationType, templates: Mapping[str, str] | None = None) -> Mutator:
    """Return the mutator of a type that needs no model; `templates` are those of `custom`."""
    return CustomTemplates(templates or {}) if type == "custom" else _MUTATORS[type]
