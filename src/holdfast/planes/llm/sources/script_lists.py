"""Other answers of a scripted model than completions: embeddings, token counts and model lists."""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Callable, Mapping
from hashlib import blake2b
from math import sqrt
from typing import Any

from holdfast.planes.llm.codecs.formats import find_route
from holdfast.planes.llm.codecs.loose import dump_json
from holdfast.planes.llm.sources.source import Query, StoredReply

_WORD = re.compile(r"\w+")
_MOST_DIMENSIONS = 4096
_TEXT_LIMIT = 2048
"""Maximum number of texts embedded per request: OpenAI's limit."""
_NAME = re.compile(r"/models/([^/:?]+)$")


def build_list_reply(query: Query, names: tuple[str, ...]) -> StoredReply:
    """Return a reply in the provider's format; 404 for what a script cannot simulate, 400 for JSON that is not an
    object.
    """
    path = query.path.partition("?")[0]
    data = query.data if isinstance(query.data, dict) else {}
    route = find_route(query.method, query.path)
    completes = route is not None and route.kind == "completion"
    if query.method == "POST" and data is not query.data and (_is_invalid_json(query) if query.body else completes):
        message = "the body is not a JSON object"
        return _build_json_reply(400, {"error": {"message": message, "type": "invalid_request_error", "code": 400}})
    if query.method == "POST" and data is query.data:
        answer = next((make(data, path) for end, make in _POSTED.items() if path.endswith(end)), None)
    else:
        answer = _list_models(query.provider, path, names) if query.method == "GET" else None
    if answer is None:
        message = f"a scripted model {'cannot read the body of' if completes else 'has no'} {query.method} {path}"
        return _build_json_reply(404, {"error": {"message": message, "type": "not_found_error", "code": 404}})
    return _build_json_reply(200, answer)


def _is_invalid_json(query: Query) -> bool:
    """Return whether a body claims to be JSON but no server could read it as an object.

    A form or a file does not claim it.
    """
    kind = query.headers.get(b"content-type")
    if (kind and "json" not in kind) or query.headers.get(b"content-encoding"):
        return False
    try:
        json.loads(query.body)
    except RecursionError:  # valid, but nested too deeply for Holdfast
        return False
    except ValueError:
        return True
    return True


def embed_text(text: str, dimensions: int) -> list[float]:
    """Return a unit vector derived from the words of a text: texts that share words are close to each other."""
    sums = [0.0] * dimensions
    for word in _WORD.findall(text.lower()) or [""]:
        seed = blake2b(word.encode("utf-8", "replace"), digest_size=8).digest()
        number = int.from_bytes(seed, "big")
        for at in range(4):  # four dimensions per word cause fewer collisions than one
            sums[(number >> (at * 13)) % dimensions] += 1.0 if number >> (52 + at) & 1 else -1.0
    length = sqrt(sum(value * value for value in sums)) or 1.0
    return [value / length for value in sums]


def _build_json_reply(status: int, data: Any) -> StoredReply:
    return StoredReply(status, (("content-type", "application/json"),), (dump_json(data),))


def _embed_openai(data: Mapping[str, Any], path: str) -> Any:
    model = str(data.get("model", ""))
    texts = _list_texts(data.get("input"))
    size = _choose_size(data.get("dimensions"), 3072 if "large" in model else 1536)
    vectors: list[Any] = [embed_text(text, size) for text in texts]
    if data.get("encoding_format") == "base64":
        vectors = [base64.b64encode(struct.pack(f"<{size}f", *values)).decode() for values in vectors]
    used = sum(len(_WORD.findall(text)) for text in texts)
    items = [{"object": "embedding", "index": at, "embedding": values} for at, values in enumerate(vectors)]
    usage = {"prompt_tokens": used, "total_tokens": used}
    return {"object": "list", "data": items, "model": model, "usage": usage}


def _embed_gemini_batch(data: Mapping[str, Any], path: str) -> Any:
    requests = data.get("requests")
    embedded = requests[:_TEXT_LIMIT] if isinstance(requests, list) else []
    return {"embeddings": [_build_gemini_embedding(one) for one in embedded if isinstance(one, dict)]}


def _build_gemini_embedding(data: Mapping[str, Any]) -> Any:
    content = data.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    texts = [str(part.get("text", "")) for part in parts or [] if isinstance(part, dict)]
    return {"values": embed_text(" ".join(texts), _choose_size(data.get("outputDimensionality"), 768))}


def _embed_ollama(data: Mapping[str, Any], path: str) -> Any:
    size = _choose_size(data.get("dimensions"), 768)
    if path.endswith("/embeddings"):
        return {"embedding": embed_text(str(data.get("prompt", "")), size)}
    vectors = [embed_text(text, size) for text in _list_texts(data.get("input"))]
    return {"model": data.get("model", ""), "embeddings": vectors}


def _count_tokens(field: str) -> Callable[[Mapping[str, Any], str], Any]:
    """Return the token count of a request, estimated from its words."""
    return lambda data, path: {field: len(_WORD.findall(dump_json(data).decode()))}


def _show_model(data: Mapping[str, Any], path: str) -> Any:
    more = {"modelfile": "", "parameters": "", "template": "", "model_info": {}}
    return {**_build_ollama_model(str(data.get("model", ""))), **more, "capabilities": ["completion", "tools"]}


_POSTED: Mapping[str, Callable[[Mapping[str, Any], str], Any]] = {
    "/api/embed": _embed_ollama,
    "/api/embeddings": _embed_ollama,
    "/embeddings": _embed_openai,
    ":embedContent": lambda data, path: {"embedding": _build_gemini_embedding(data)},
    ":batchEmbedContents": _embed_gemini_batch,
    "/messages/count_tokens": _count_tokens("input_tokens"),
    "/responses/input_tokens": _count_tokens("input_tokens"),
    ":countTokens": _count_tokens("totalTokens"),
    "/api/show": _show_model,
    "/api/pull": lambda data, path: {"status": "success"},
}


def _choose_size(value: Any, default: int) -> int:
    return min(value, _MOST_DIMENSIONS) if isinstance(value, int) and value > 0 else default


def _list_texts(value: Any) -> list[str]:
    """Return a text, a list of texts, a list of tokens, or a list of lists of tokens."""
    if not isinstance(value, list):
        return [str(value or "")]
    if value and isinstance(value[0], int):
        return [" ".join(map(str, value))]
    return [one if isinstance(one, str) else " ".join(map(str, one)) for one in value[:_TEXT_LIMIT]]


def _list_models(provider: str, path: str, names: tuple[str, ...]) -> Any | None:
    entry, listed = _LISTS["openai" if provider == "ollama" and "/api/" not in path else provider]
    if path.endswith(("/models", "/api/tags", "/api/ps")):
        return listed([entry(name) for name in names or ("scripted",)])
    if path.endswith("/api/version"):
        return {"version": "0.0.0"}
    one = _NAME.search(path)
    return entry(one[1]) if one and (not names or one[1] in names) else None


def _build_ollama_model(name: str) -> Any:
    return {"name": name, "model": name, "modified_at": "1970-01-01T00:00:00Z", "size": 0, "digest": "", "details": {}}


_LISTS: Mapping[str, tuple[Callable[[str], Any], Callable[[list[Any]], Any]]] = {
    "openai": (
        lambda name: {"id": name, "object": "model", "created": 0, "owned_by": "script"},
        lambda models: {"object": "list", "data": models},
    ),
    "anthropic": (
        lambda name: {"type": "model", "id": name, "display_name": name, "created_at": "1970-01-01T00:00:00Z"},
        lambda models: {"data": models, "has_more": False, "first_id": models[0]["id"], "last_id": models[-1]["id"]},
    ),
    "google": (
        lambda name: {
            "name": f"models/{name}",
            "displayName": name,
            "version": "1",
            "supportedGenerationMethods": ["generateContent", "streamGenerateContent", "embedContent"],
        },
        lambda models: {"models": models},
    ),
    "ollama": (_build_ollama_model, lambda models: {"models": models}),
}
