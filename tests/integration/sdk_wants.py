"""What each provider's own library makes of every fault of the model."""

from __future__ import annotations

from dataclasses import replace

import anthropic
import httpx
import httpx2
import ollama
import openai
import pydantic
from anthropic._exceptions import OverloadedError
from sdk_voices import Chat, Google, Messages, OllamaChat, Responses, genai
from sdk_weather import (
    BEGUN,
    CUT,
    Want,
    Wants,
    drifts,
    fails,
    incomplete,
    invented,
    no_object,
    nonsense,
    unreadable,
)  # fmt: skip

FAILING: Wants = {
    "timeout": fails(openai.APIConnectionError, 3),
    "timeout, the client's": fails(openai.APITimeoutError, 3),
    "slow_tokens, the client's": fails(openai.APITimeoutError, 3),
    "rate_limit": fails(openai.RateLimitError, 3, "429"),
    "rate_limit, retry-after": fails(openai.RateLimitError, 3, "429"),
    "quota": fails(openai.RateLimitError, 3, "exceeded your current quota"),
    "overloaded": fails(openai.InternalServerError, 3, "503"),
    "server_error": fails(openai.InternalServerError, 3, "500"),
    "server_error, html": fails(openai.InternalServerError, 3, "502"),
    "context_length": fails(openai.BadRequestError, 1, "maximum context length"),
    "stream_cut": (fails(openai.APIConnectionError, 3), fails(openai.APIConnectionError, 1, text=CUT)),
}
CHAT: Wants = (
    FAILING
    | drifts("stop", Chat.smaller)
    | {
        "rate_limit, heals": Want("stop", requests=3),
        "truncated": Want("length", CUT, usage=(1000, 4)),
        "truncated, silent": Want("stop", CUT, usage=(1000, 4)),
        "empty content": Want("stop", ""),
        "empty choices": (Want(None, "", lacks="choices"), Want(None, "", hollow=1)),
        "empty message": Want("stop", "", lacks="message"),
        "garbage": Want("stop", nonsense),
        "overloaded, in stream": (
            fails(openai.InternalServerError, 3, "503"),
            fails(openai.APIError, 1, "currently overloaded", BEGUN),
        ),
        "slow_tokens": Want("stop"),
        "empty_choices": (Want(None, "", lacks="choices"), Want("stop", hollow=1)),
        "content_filter": Want("content_filter", ""),
        "malformed, not json": Want("tool_calls", "", unreadable),
        "malformed, not object": Want("tool_calls", "", no_object),
        "unknown_tool": Want("tool_calls", "", invented),
        "wrong_args": Want("tool_calls", "", incomplete),
        "odd_chunks": (Want("stop", effect="no_effect"), Want("stop")),
    }
)
RESPONSES: Wants = (
    FAILING
    | drifts("completed", Responses.smaller)
    | {
        "rate_limit, heals": Want("completed", requests=3),
        "truncated": Want("max_output_tokens", CUT, usage=(1000, 4)),
        "truncated, silent": Want("completed", CUT, usage=(1000, 4)),
        "empty content": Want("completed", ""),
        "empty choices": Want("completed", "", lacks="choices"),
        "empty message": Want("completed", "", lacks="message"),
        "garbage": Want("completed", nonsense),
        "overloaded, in stream": (
            fails(openai.InternalServerError, 3, "503"),
            # `response.failed` is an event like any other.
            Want("server_error", BEGUN, usage=None, lacks="choices", failed=True),
        ),
        "slow_tokens": Want("completed"),
        "empty_choices": (Want("completed", "", lacks="choices"), Want("completed", hollow=1)),
        "content_filter": Want("content_filter", "", lacks="choices"),
        "malformed, not json": Want("completed", "", unreadable),
        "malformed, not object": Want("completed", "", no_object),
        "unknown_tool": Want("completed", "", invented),
        "wrong_args": Want("completed", "", incomplete),
        "odd_chunks": (Want("completed", effect="no_effect"), Want("completed", hollow=1)),
    }
)

MESSAGES: Wants = drifts("end_turn", Messages.smaller) | {
    "timeout": fails(anthropic.APIConnectionError, 3),
    "timeout, the client's": fails(anthropic.APITimeoutError, 3),
    "slow_tokens, the client's": fails(anthropic.APITimeoutError, 3),
    "rate_limit": fails(anthropic.RateLimitError, 3, "rate_limit_error"),
    "rate_limit, retry-after": fails(anthropic.RateLimitError, 3, "rate_limit_error"),
    "rate_limit, heals": Want("end_turn", requests=3),
    "quota": fails(anthropic.RateLimitError, 3, "spend limit"),
    "overloaded": fails(OverloadedError, 3, "529"),
    "overloaded, in stream": (
        fails(OverloadedError, 3, "529"),
        fails(anthropic.APIStatusError, 1, "overloaded_error", BEGUN),
    ),
    "server_error": fails(anthropic.InternalServerError, 3, "api_error"),
    "server_error, html": fails(anthropic.InternalServerError, 3, "502 Bad Gateway"),
    "context_length": fails(anthropic.BadRequestError, 1, "prompt is too long"),
    "stream_cut": (fails(anthropic.APIConnectionError, 3), fails(httpx2.RemoteProtocolError, 1, text=CUT)),
    "truncated": Want("max_tokens", CUT, usage=(1000, 4)),
    "truncated, silent": Want("end_turn", CUT, usage=(1000, 4)),
    "empty content": (Want("end_turn", "", lacks="choices"), Want("end_turn", "")),
    "empty choices": (Want("end_turn", "", lacks="choices"), Want("end_turn", "")),
    "empty message": (Want("end_turn", "", lacks="message"), Want("end_turn", "")),
    "garbage": Want("end_turn", nonsense),
    "slow_tokens": Want("end_turn"),
    "empty_choices": (Want("end_turn", "", lacks="choices"), Want("end_turn")),  # a ping, which the library leaves out
    "content_filter": (Want("refusal", "", lacks="choices"), Want("refusal", "")),
    "malformed, not json": Want("tool_use", "", unreadable),
    "malformed, not object": Want("tool_use", "", no_object),
    "unknown_tool": Want("tool_use", "", invented),
    "wrong_args": Want("tool_use", "", incomplete),
    "odd_chunks": (Want("end_turn", effect="no_effect"), Want("end_turn")),
}

ClientError, ServerError = genai.errors.ClientError, genai.errors.ServerError

GOOGLE: Wants = drifts("STOP", Google.smaller) | {
    "timeout": fails(httpx2.RemoteProtocolError, says="without sending a response"),
    "timeout, the client's": fails(httpx2.ReadTimeout),
    "slow_tokens, the client's": fails(httpx2.ReadTimeout),
    "rate_limit": fails(ClientError, says="429 RESOURCE_EXHAUSTED"),
    "rate_limit, retry-after": fails(ClientError, says="'retryDelay': '0.2s'"),
    "rate_limit, heals": fails(ClientError, says="429 RESOURCE_EXHAUSTED"),
    "quota": fails(ClientError, says="QuotaFailure"),
    "overloaded": fails(ServerError, says="503 UNAVAILABLE"),
    "overloaded, in stream": (
        fails(ServerError, says="503 UNAVAILABLE"),
        fails(ServerError, says="503 UNAVAILABLE", text=BEGUN),
    ),
    "server_error": fails(ServerError, says="500 INTERNAL"),
    "server_error, html": fails(ServerError, says="502 Bad Gateway"),
    "context_length": fails(ClientError, says="exceeds the maximum number of tokens"),
    "stream_cut": (fails(httpx2.RemoteProtocolError), fails(httpx2.RemoteProtocolError, text=CUT)),
    "truncated": Want("MAX_TOKENS", CUT, usage=(1000, 4)),
    "truncated, silent": Want("STOP", CUT, usage=(1000, 4)),
    "empty content": Want("STOP", ""),
    "empty choices": Want(None, "", lacks="choices", hollow=1),
    "empty message": Want("STOP", "", lacks="message"),
    "garbage": Want("STOP", nonsense),
    "slow_tokens": Want("STOP"),
    "empty_choices": (Want(None, "", lacks="choices", hollow=1), Want("STOP", hollow=1)),
    "content_filter": Want("SAFETY", "", lacks="message"),
    "malformed, not json": Want("MALFORMED_FUNCTION_CALL", ""),  # Google never passes such a call on
    "malformed, not object": Want("MALFORMED_FUNCTION_CALL", ""),
    "unknown_tool": Want("STOP", "", invented),
    "wrong_args": Want("STOP", "", incomplete),
    "odd_chunks": (Want("STOP", effect="no_effect"), Want("STOP")),
}


def _as_text(text: str) -> bool:
    """A call that cannot be read is shown as text: that is what Ollama does with it."""
    return text.startswith('{"name": "forecast", "arguments": ')


OLLAMA: Wants = drifts("stop", OllamaChat.smaller) | {
    "timeout": fails(httpx.RemoteProtocolError, says="without sending a response"),
    "timeout, the client's": fails(httpx.ReadTimeout),
    "slow_tokens, the client's": fails(httpx.ReadTimeout),
    "rate_limit": fails(ollama.ResponseError, says="429"),
    "rate_limit, retry-after": fails(ollama.ResponseError, says="429"),
    "rate_limit, heals": fails(ollama.ResponseError, says="429"),
    "quota": fails(ollama.ResponseError, says="exceeded your current quota"),
    "overloaded": fails(ollama.ResponseError, says="maximum pending requests exceeded (status code: 503)"),
    "overloaded, in stream": (
        fails(ollama.ResponseError, says="status code: 503"),
        fails(ollama.ResponseError, says="server busy", text=BEGUN),
    ),
    "server_error": fails(ollama.ResponseError, says="status code: 500"),
    "server_error, html": fails(ollama.ResponseError, says="502 Bad Gateway"),
    "context_length": fails(ollama.ResponseError, says="exceeds the context length (status code: 400)"),
    "stream_cut": (fails(httpx.RemoteProtocolError), fails(httpx.RemoteProtocolError, text=CUT)),
    "truncated": Want("length", CUT, usage=(1000, 4)),
    "truncated, silent": Want("stop", CUT, usage=(1000, 4)),
    "empty content": Want("stop", ""),
    "empty choices": Want("stop", ""),  # the format has no list of choices: what is left is an empty answer
    "garbage": Want("stop", nonsense),
    "slow_tokens": Want("stop"),
    "empty_choices": (Want("stop", ""), Want("stop", hollow=1)),
    "content_filter": Want("stop", ""),  # the format has no word for a filtered answer
    "odd_chunks": (Want("stop", effect="no_effect"), Want("stop", hollow=2)),
}
OLLAMA_CHAT: Wants = OLLAMA | {
    "empty message": replace(fails(pydantic.ValidationError, says="message"), failed=False),
    "malformed, not json": Want("stop", _as_text),
    "malformed, not object": Want("stop", _as_text),
    "unknown_tool": Want("stop", "", invented),
    "wrong_args": Want("stop", "", incomplete),
}
OLLAMA_GENERATE: Wants = OLLAMA | {
    "empty message": Want("stop", ""),
    "malformed, not json": Want("stop", effect="no_effect"),  # it supports no tools
    "malformed, not object": Want("stop", effect="no_effect"),
    "unknown_tool": Want("stop", ""),
    "wrong_args": Want("stop", effect="no_effect"),
}

WANTS = {
    "chat": CHAT,
    "responses": RESPONSES,
    "anthropic": MESSAGES,
    "google": GOOGLE,
    "ollama": OLLAMA_CHAT,
    "generate": OLLAMA_GENERATE,
}
