"""A model by whatever name: who answers for it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class ModelSpec(Struct, frozen=True, omit_defaults=True):
    """What a model name means here: one entry of `models:`. Strings keep their references."""

    provider: Literal["ollama", "openai", "anthropic", "google", "script"] = "openai"
    name: str = ""
    """The model's name at the provider; empty: as the agent asked for it."""
    api_key: str | None = None
    base_url: str | None = None
    script: str | None = None
    """A scripted model's file, beside the spec."""
    input_usd: float | None = None
    """Price of a million input tokens."""
    output_usd: float | None = None
    temperature: float | None = None
    """What a judge sends that has none of its own."""

    @property
    def is_script(self) -> bool:
        return self.script is not None
