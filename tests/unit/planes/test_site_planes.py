"""What an agent is started with."""

from holdfast.planes.site_planes import placeholders


def test_keys_stand_in_where_the_user_has_none():
    assert set(placeholders({})) == {
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "GOOGLE_API_KEY",
        "GEMINI_API_KEY",
        "OLLAMA_API_KEY",
    }
    assert "GOOGLE_API_KEY" not in placeholders({"GEMINI_API_KEY": "k"})
    assert "ANTHROPIC_API_KEY" not in placeholders({"ANTHROPIC_AUTH_TOKEN": "k"})
