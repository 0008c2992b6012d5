"""The mutation settings of a file: types, weights and count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from holdfast.model.model_spec import ModelSpec

MutationType = Literal[
    "paraphrase", "noise", "tone_shift", "prompt_injection", "encoding_attacks", "context_manipulation",
    "length_extremes", "custom", "multi_turn_attack", "advanced_jailbreak", "semantic_similarity_attack",
    "format_poisoning", "language_mixing", "token_manipulation", "temporal_attack", "http_header_injection",
    "payload_size_attack", "content_type_confusion", "query_parameter_poisoning", "request_method_attack",
    "protocol_level_attack", "resource_exhaustion", "concurrent_request_pattern", "timeout_manipulation",
]  # fmt: skip
MUTATIONS: tuple[MutationType, ...] = MutationType.__args__  # type: ignore[attr-defined]  # its values
DEFAULT_MUTATIONS: tuple[MutationType, ...] = MUTATIONS[:7]
REQUEST_MUTATIONS: frozenset[MutationType] = frozenset(MUTATIONS[15:])
"""Mutations of the HTTP request itself; they need an HTTP agent."""
MODEL_MUTATIONS: frozenset[MutationType] = frozenset({"paraphrase", "tone_shift", "semantic_similarity_attack"})
"""Mutations that a model writes."""
INTENT_KEPT: frozenset[MutationType] = frozenset(
    {"paraphrase", "noise", "tone_shift", "encoding_attacks", "length_extremes", "language_mixing",
     "token_manipulation", "custom"}
)  # fmt: skip
"""Mutations that keep the intent of the prompt. All others are attacks."""

MUTATION_WEIGHTS: Mapping[MutationType, float] = {
    "paraphrase": 1.0,
    "noise": 0.8,
    "tone_shift": 0.9,
    "prompt_injection": 1.5,
    "encoding_attacks": 1.3,
    "context_manipulation": 1.1,
    "length_extremes": 1.2,
    "custom": 1.0,
    "multi_turn_attack": 1.4,
    "advanced_jailbreak": 2.0,
    "semantic_similarity_attack": 1.3,
    "format_poisoning": 1.6,
    "language_mixing": 1.2,
    "token_manipulation": 1.5,
    "temporal_attack": 1.1,
    "http_header_injection": 1.7,
    "payload_size_attack": 1.4,
    "content_type_confusion": 1.5,
    "query_parameter_poisoning": 1.6,
    "request_method_attack": 1.3,
    "protocol_level_attack": 1.8,
    "resource_exhaustion": 1.5,
    "concurrent_request_pattern": 1.4,
    "timeout_manipulation": 1.3,
}


class MutationSpec(Struct, frozen=True, omit_defaults=True):
    """The `mutations:` section and the top-level `model:`, with defaults; strings keep their references."""

    count: int = 10
    """Mutations per prompt, over all types."""
    types: tuple[MutationType, ...] = DEFAULT_MUTATIONS
    listed: bool = False
    """Whether the file lists the types explicitly."""
    weights: dict[MutationType, float] = field(default_factory=lambda: dict(MUTATION_WEIGHTS))
    """By type: how much one mutation counts in the robustness."""
    custom_templates: dict[str, str] = field(default_factory=dict)
    """By name: a text with `{prompt}`."""
    model: ModelSpec | None = None
    """The model that writes mutations; None if there is none."""
