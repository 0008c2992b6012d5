"""What a judge's model name means."""

from __future__ import annotations

import pytest

from holdfast.model.model_spec import ModelSpec
from holdfast.planes.llm.sources.provider_hosts import ResolvedModel, resolve_model

ENTRY = ModelSpec("anthropic", name="small")
SCRIPT = ModelSpec("script", script="judge.yaml")
BARE = ModelSpec("openai", base_url="http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("model", "models", "found"),
    [
        ("paragon-fast", {"paragon-fast": ENTRY}, ResolvedModel("anthropic", "small", ENTRY)),
        ("gpt-4o", {"gpt-*": ENTRY}, ResolvedModel("anthropic", "small", ENTRY)),
        ("gpt-4o", {"gpt-4o": BARE, "*": ENTRY}, ResolvedModel("openai", "gpt-4o", BARE)),
        ("any", {"*": SCRIPT}, ResolvedModel("openai", "any", SCRIPT)),
        ("openai/x/y", {"x/y": ENTRY}, ResolvedModel("openai", "x/y")),
        ("google/gemini-2", {}, ResolvedModel("google", "gemini-2")),
        ("ollama/qwen3:4b", {}, ResolvedModel("ollama", "qwen3:4b")),
        ("gpt-5", {}, ResolvedModel("openai", "gpt-5")),
        ("chatgpt-4o-latest", {}, ResolvedModel("openai", "chatgpt-4o-latest")),
        ("o1", {}, ResolvedModel("openai", "o1")),
        ("o4-mini", {}, ResolvedModel("openai", "o4-mini")),
        ("claude-opus-4-5", {}, ResolvedModel("anthropic", "claude-opus-4-5")),
        ("gemini-2.5-pro", {}, ResolvedModel("google", "gemini-2.5-pro")),
        ("paragon-fast", {}, None),
        ("acme/gpt-4o", {}, None),
        ("openai/", {}, None),
        ("llama3", {}, None),
        ("", {}, None),
    ],
)
def test_an_entry_then_a_provider_then_a_known_beginning(
    model: str, models: dict[str, ModelSpec], found: ResolvedModel | None
) -> None:
    assert resolve_model(models, model) == found
