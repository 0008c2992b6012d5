"""What a judge's model name means."""

from __future__ import annotations

import pytest

from holdfast.model.model_spec import ModelSpec
from holdfast.planes.llm.sources.provider_hosts import Meaning, meaning

ENTRY = ModelSpec("anthropic", name="small")
SCRIPT = ModelSpec("script", script="judge.yaml")
BARE = ModelSpec("openai", base_url="http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("model", "models", "found"),
    [
        ("paragon-fast", {"paragon-fast": ENTRY}, Meaning("anthropic", "small", ENTRY)),
        ("gpt-4o", {"gpt-*": ENTRY}, Meaning("anthropic", "small", ENTRY)),
        ("gpt-4o", {"gpt-4o": BARE, "*": ENTRY}, Meaning("openai", "gpt-4o", BARE)),
        ("any", {"*": SCRIPT}, Meaning("openai", "any", SCRIPT)),
        ("openai/x/y", {"x/y": ENTRY}, Meaning("openai", "x/y")),
        ("google/gemini-2", {}, Meaning("google", "gemini-2")),
        ("ollama/qwen3:4b", {}, Meaning("ollama", "qwen3:4b")),
        ("gpt-5", {}, Meaning("openai", "gpt-5")),
        ("chatgpt-4o-latest", {}, Meaning("openai", "chatgpt-4o-latest")),
        ("o1", {}, Meaning("openai", "o1")),
        ("o4-mini", {}, Meaning("openai", "o4-mini")),
        ("claude-opus-4-5", {}, Meaning("anthropic", "claude-opus-4-5")),
        ("gemini-2.5-pro", {}, Meaning("google", "gemini-2.5-pro")),
        ("paragon-fast", {}, None),
        ("acme/gpt-4o", {}, None),
        ("openai/", {}, None),
        ("llama3", {}, None),
        ("", {}, None),
    ],
)
def test_an_entry_then_a_provider_then_a_known_beginning(
    model: str, models: dict[str, ModelSpec], found: Meaning | None
) -> None:
    assert meaning(models, model) == found
