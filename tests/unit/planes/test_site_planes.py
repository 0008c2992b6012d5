"""What an agent is started with."""

import asyncio
import json

from holdfast.model.model_spec import ModelSpec
from holdfast.model.spec import AgentSpec
from holdfast.planes.mcp.trial_state import McpTrialState
from holdfast.planes.site_planes import PlaneSettings, SitePlanes, build_model_variables, build_placeholder_keys
from planes_kit import FakeContext


def test_placeholder_keys_are_set_where_the_user_has_none():
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


def test_every_address_variable_names_the_gateway():
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


# The planes of one trial, when it ends.


SCRIPT = """
replies:
  - tool_calls: [{name: price, arguments: {item: lamp}}]
"""


async def test_a_tool_of_mcp_is_not_reported_as_declared_and_never_answered(tmp_path):
    (tmp_path / "model.yaml").write_text(SCRIPT)
    settings = PlaneSettings(
        AgentSpec(type="command", command="x"), tmp_path, {}, {"*": ModelSpec(script="model.yaml")}, web=False
    )
    context = FakeContext()
    asked = json.dumps(
        {
            "model": "m",
            "messages": [{"role": "user", "content": "hi"}],
            "tools": [{"type": "function", "function": {"name": "price", "parameters": {}}}],
        }
    ).encode()

    site_planes = SitePlanes(settings)
    address = await site_planes.open_address()
    with address.serve_trial(context):
        site_planes.mcp._states[context] = state = McpTrialState()
        state.add_tool("price")
        reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
        writer.write(
            f"POST /{address.token}/openai/v1/chat/completions HTTP/1.1\r\nconnection: close\r\n"
            f"content-length: {len(asked)}\r\n\r\n".encode()
            + asked
        )
        assert b'"price"' in await reader.read()
        writer.close()
    await address.close()
    await site_planes.close()
    assert context.troubles == []
    assert [event.event_type for event in context.trace] == ["llm_call"]
