"""What an agent is started with."""

from holdfast.planes.site_planes import build_model_variables, build_placeholder_keys


def test_keys_stand_in_where_the_user_has_none():
    assert set(build_placeholder_keys({})) == {
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "GOOGLE_API_KEY",
        "GEMINI_API_KEY",
        "GOOGLE_GENERATIVE_AI_API_KEY",
        "OLLAMA_API_KEY",
    }
    assert "GOOGLE_API_KEY" not in build_placeholder_keys({"GEMINI_API_KEY": "k"})
    assert "GEMINI_API_KEY" not in build_placeholder_keys({"GOOGLE_GENERATIVE_AI_API_KEY": "k"})
    assert "ANTHROPIC_API_KEY" not in build_placeholder_keys({"ANTHROPIC_AUTH_TOKEN": "k"})


def test_every_variable_that_names_an_address_leads_to_the_gateway():
    assert build_model_variables("http://h/t") == {
        "OPENAI_BASE_URL": "http://h/t/openai/v1",
        "OPENAI_API_BASE": "http://h/t/openai/v1",
        "ANTHROPIC_BASE_URL": "http://h/t/anthropic",
        "ANTHROPIC_API_BASE": "http://h/t/anthropic",
        "ANTHROPIC_API_URL": "http://h/t/anthropic",
        "GOOGLE_GEMINI_BASE_URL": "http://h/t/google",
        "GEMINI_API_BASE": "http://h/t/google",
        "OLLAMA_HOST": "http://h/t/ollama",
        "OLLAMA_BASE_URL": "http://h/t/ollama",
        "OLLAMA_API_BASE": "http://h/t/ollama",
    }
