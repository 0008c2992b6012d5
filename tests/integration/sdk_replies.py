"""Replies as each provider sends them, byte for byte: what the gateway must pass on unchanged."""

from __future__ import annotations

import json
from typing import NamedTuple


class ProviderReply(NamedTuple):
    """A plain and a streamed reply of a provider."""

    path: str
    """In the path of the request."""
    environ: dict[str, str]
    """Where the user's own environment points to the provider; `{url}` is its address."""
    plain: bytes
    stream: list[bytes]


_OPENAI_PLAIN = {
    "chat": b"""{ "id": "chatcmpl-9", "object": "chat.completion", "created": 1700000000, "model": "gpt-4o-2024-08-06",
 "choices": [ {"index": 0, "message": {"role": "assistant", "content": "Ol\\u00e9", "refusal": null, "odd": [1.50]},
  "logprobs": null, "finish_reason": "stop"} ], "usage": {"prompt_tokens": 1000, "completion_tokens": 200,
  "total_tokens": 1200}, "unknown": {"b": 1, "a": 2} }\n""",
    "responses": b"""{ "id": "resp_9", "object": "response", "created_at": 1700000000, "status": "completed",
 "model": "gpt-4o-2024-08-06", "error": null, "incomplete_details": null, "output": [ {"id": "msg_9", "type": "message",
  "status": "completed", "role": "assistant", "content": [{"type": "output_text", "text": "Ol\\u00e9",
  "annotations": []}]} ], "parallel_tool_calls": true, "tool_choice": "auto", "tools": [],
 "usage": {"input_tokens": 1000, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 200,
  "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 1200}, "unknown": 1.50 }\n""",
}


def _chunk(choices: str, more: str = "") -> bytes:
    head = '"id":"chatcmpl-9","object":"chat.completion.chunk","created":1700000000,"model":"gpt-4o-2024-08-06"'
    return f'data: {{{head},"choices":[{choices}]{more}}}\n\n'.encode()


_OPENAI_STREAM = {
    "chat": [
        _chunk('{"index":0,"delta":{"role":"assistant","content":"Ol"},"finish_reason":null}'),
        b": a comment\n\n",
        _chunk('{"index":0,"delta":{"content":"\\u00e9"},"finish_reason":null}'),
        _chunk('{"index":0,"delta":{},"finish_reason":"stop"}'),
        _chunk("", ',"usage":{"prompt_tokens":1000,"completion_tokens":200,"total_tokens":1200}'),
        b"data: [DONE]\n\n",
    ],
    "responses": [
        b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","item_id":"m","output_index":0,'
        b'"content_index":0,"delta":"Ol\\u00e9","logprobs":[],"sequence_number":1}\n\n',
        b'event: response.completed\ndata: {"type":"response.completed","sequence_number":2,"response":'
        + json.dumps(json.loads(_OPENAI_PLAIN["responses"])).encode()
        + b"}\n\n",
    ],
}
_ANTHROPIC_PLAIN = b"""{ "id": "msg_9", "type": "message", "role": "assistant", "model": "claude-sonnet-4-8-20250929",
 "content": [ {"type": "text", "text": "Ol\\u00e9", "citations": null} ], "stop_reason": "end_turn",
 "stop_sequence": null, "usage": {"input_tokens": 1000, "output_tokens": 200, "service_tier": "standard"},
 "unknown": 1.50 }\n"""
_ANTHROPIC_STREAM = [
    b'event: message_start\ndata: {"type": "message_start", "message": {"id": "msg_9", "type": "message", "role": '
    b'"assistant", "model": "claude-sonnet-4-8-20250929", "content": [], "stop_reason": null, "stop_sequence": null, '
    b'"usage": {"input_tokens": 1000, "output_tokens": 1}}}\n\n',
    b'event: content_block_start\ndata: {"type": "content_block_start", "index": 0, "content_block": {"type": "text", '
    b'"text": ""}}\n\n',
    b'event: ping\ndata: {"type": "ping"}\n\n',
    b'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", '
    b'"text": "Ol\\u00e9"}}\n\n',
    b'event: content_block_stop\ndata: {"type": "content_block_stop", "index": 0}\n\n',
    b'event: message_delta\ndata: {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": '
    b'null}, "usage": {"output_tokens": 200}}\n\n',
    b'event: message_stop\ndata: {"type": "message_stop"}\n\n',
]
_GOOGLE_PLAIN = b"""{ "candidates": [ { "content": { "parts": [ { "text": "Ol\\u00e9" } ], "role": "model" },
 "finishReason": "STOP", "avgLogprobs": -0.10 } ], "usageMetadata": { "promptTokenCount": 1000,
 "candidatesTokenCount": 200, "totalTokenCount": 1200 }, "modelVersion": "gemini-2.5-flash", "responseId": "r9" }\n"""
_GOOGLE_STREAM = [
    b'data: {"candidates": [{"content": {"parts": [{"text": "Ol"}],"role": "model"}}],"modelVersion": '
    b'"gemini-2.5-flash","responseId": "r9"}\r\n\r\n',
    b'data: {"candidates": [{"content": {"parts": [{"text": "\\u00e9"}],"role": "model"},"finishReason": "STOP"}],'
    b'"usageMetadata": {"promptTokenCount": 1000,"candidatesTokenCount": 200,"totalTokenCount": 1200},"modelVersion": '
    b'"gemini-2.5-flash","responseId": "r9"}\r\n\r\n',
]
_OLLAMA_END = b'"done":true,"done_reason":"stop","total_duration":1,"prompt_eval_count":1000,"eval_count":200}\n'
_OLLAMA_PLAIN = {
    "chat": b'{"model": "llama3.1:70b", "created_at": "2025-01-01T00:00:00.123456789Z", "odd": 1.50,\n'
    b' "message": {"role": "assistant", "content": "Ol\\u00e9"}, ' + _OLLAMA_END,
    "generate": b'{"model": "llama3.1:70b", "created_at": "2025-01-01T00:00:00.1Z", "response": "Ol\\u00e9", '
    + _OLLAMA_END,
}
_OLLAMA_STREAM = {
    "chat": [
        b'{"model":"llama3.1:70b","message":{"role":"assistant","content":"Ol"},"done":false}\n',
        b'{"model":"llama3.1:70b","message":{"role":"assistant","content":"\\u00e9"},"done":false}\n',
        b'{"model":"llama3.1:70b","message":{"role":"assistant","content":""},' + _OLLAMA_END,
    ],
    "generate": [
        b'{"model":"llama3.1:70b","response":"Ol\\u00e9","done":false}\n',
        b'{"model":"llama3.1:70b","response":"",' + _OLLAMA_END,
    ],
}

_OPENAI = {"OPENAI_BASE_URL": "{url}/v1", "OPENAI_API_KEY": "sk-user"}
_ANTHROPIC = {"ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": "sk-user"}
_GOOGLE = {"GOOGLE_GEMINI_BASE_URL": "{url}", "GOOGLE_API_KEY": "sk-user"}
_OLLAMA = {"OLLAMA_HOST": "{url}"}

REPLIES = {
    "chat": ProviderReply("/v1/chat/completions", _OPENAI, _OPENAI_PLAIN["chat"], _OPENAI_STREAM["chat"]),
    "responses": ProviderReply("/v1/responses", _OPENAI, _OPENAI_PLAIN["responses"], _OPENAI_STREAM["responses"]),
    "anthropic": ProviderReply("/v1/messages", _ANTHROPIC, _ANTHROPIC_PLAIN, _ANTHROPIC_STREAM),
    "google": ProviderReply("/models/gemini-2.5-flash", _GOOGLE, _GOOGLE_PLAIN, _GOOGLE_STREAM),
    "ollama": ProviderReply("/api/chat", _OLLAMA, _OLLAMA_PLAIN["chat"], _OLLAMA_STREAM["chat"]),
    "generate": ProviderReply("/api/generate", _OLLAMA, _OLLAMA_PLAIN["generate"], _OLLAMA_STREAM["generate"]),
}
