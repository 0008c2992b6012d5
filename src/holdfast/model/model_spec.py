"""A model name in the spec, and what answers for it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class ModelSpec(Struct, frozen=True, omit_defaults=True):
    """One entry of `models:`: what a model name means here. Strings keep their references."""

    provider: Literal["ollama", "openai", "anthropic", "google", "script"] = "openai"
    name: str = ""
    """The model's name at the provider; empty: the name that the agent requested."""
    api_key: str | None = None
    base_url: str | None = None
    script: str | None = None
    """A scripted model's file, next to the spec."""
    input_usd: float | None = None
    """Price in US dollars of a million input tokens."""
    output_usd: float | None = None
    temperature: float | None = None
    """Sent for judges that do not set their own."""

    @property
    def is_script(self) -> bool:
        return self.script is not None
