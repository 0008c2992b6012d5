from holdfast.faults.llm.response_drift import name_smaller_model


def test_a_fallback_is_a_smaller_model_of_the_family():
    for model, fallback in [
        ("gpt-4o", "gpt-4o-mini"),
        ("gpt-4o-2024-08-06", "gpt-4o-mini"),
        ("gpt-4.1-mini", "gpt-4.1-nano"),
        ("claude-opus-4-1-20250805", "claude-haiku-4-1-20250805"),
        ("claude-3-5-sonnet-latest", "claude-3-5-haiku-latest"),
        ("gemini-2.5-pro", "gemini-2.5-flash"),
        ("gemini-2.5-flash", "gemini-2.5-flash-lite"),
        ("mistral-large-latest", "mistral-small-latest"),
        ("llama3.1:70b", "llama3.1:8b"),
        ("llama3.1:8b", "llama3.1:1b"),
        ("qwen2.5:1.5b", "qwen2.5:1.5b-mini"),
        ("", ""),
    ]:
        assert name_smaller_model(model) == fallback, (model, fallback)
