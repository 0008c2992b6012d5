"""What a model's name means: the entry of `models:` that it falls under."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from msgspec import Struct

from holdfast.model.model_spec import ModelSpec

_GLOB = frozenset("*?[")
_PROVIDERS = ("openai", "anthropic", "google", "ollama")
_PREFIXES = (
    ("gpt-", "openai"),
    ("chatgpt-", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("claude-", "anthropic"),
    ("gemini-", "google"),
)


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


class Meaning(Struct, frozen=True):
    """Whom a model that Holdfast itself asks is asked of."""

    provider: str
    """openai, anthropic, google, ollama: in whose format."""
    name: str
    """As the provider knows it."""
    entry: ModelSpec | None = None
    """What `models:` says of it, if anything."""


def meaning(models: Mapping[str, ModelSpec], model: str) -> Meaning | None:
    """An entry of `models:`, else `provider/name`, else the provider whose models are called so; None if none fits."""
    entry = entry_for(models, model)
    if entry is not None:
        spec = models[entry]
        return Meaning("openai" if spec.script else spec.provider, spec.name or model, spec)
    provider, slash, name = model.partition("/")
    if slash:
        return Meaning(provider, name, None) if provider in _PROVIDERS and name else None
    found = next((provider for prefix, provider in _PREFIXES if model.startswith(prefix)), None)
    return Meaning(found, model) if found else None


def is_hosted(model: str) -> bool:
    """Whether it is a name of a hosted service, which means something on no machine by itself."""
    return model.startswith("paragon-")


def without_meaning(model: str) -> str:
    """What to say of a name that means nothing here."""
    if is_hosted(model):
        return f"The hosted model {model} has no local meaning: describe it in models:."
    return f"No provider is known for the model {model[:60]!r}: describe it in models:, or write provider/name."
