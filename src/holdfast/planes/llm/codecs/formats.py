"""The format that each path uses, and the hosts of model providers."""

from __future__ import annotations

import re
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from holdfast.planes.llm.codecs.anthropic import ANTHROPIC
from holdfast.planes.llm.codecs.codec import Codec
from holdfast.planes.llm.codecs.gemini import GEMINI, GEMINI_ARRAY
from holdfast.planes.llm.codecs.ollama import OLLAMA_CHAT, OLLAMA_GENERATE
from holdfast.planes.llm.codecs.openai_chat import OPENAI_CHAT
from holdfast.planes.llm.codecs.openai_responses import OPENAI_RESPONSES

RouteKind: TypeAlias = Literal["completion", "reply", "embeddings", "models", "other"]
"""`reply`: fetches the reply to an earlier completion."""


class ApiRoute(Struct, frozen=True):
    """The purpose of a request."""

    codec: Codec | None
    """None if the request is forwarded unread."""
    kind: RouteKind
    provider: str
    """openai, anthropic, google or ollama: the provider whose format the path uses."""
    unread: str = ""
    """The name of an unsupported format, for a model call in one."""


_CHAT = ApiRoute(OPENAI_CHAT, "completion", "openai")
_COMPLETIONS: dict[str, ApiRoute] = {
    "chat/completions": _CHAT,
    "responses": ApiRoute(OPENAI_RESPONSES, "completion", "openai"),
    "messages": ApiRoute(ANTHROPIC, "completion", "anthropic"),
    "chat": ApiRoute(OLLAMA_CHAT, "completion", "ollama"),
    "generate": ApiRoute(OLLAMA_GENERATE, "completion", "ollama"),
}
_REPLY = ApiRoute(OPENAI_RESPONSES, "reply", "openai")
_GEMINI = ApiRoute(GEMINI, "completion", "google")
_GEMINI_ARRAY = ApiRoute(GEMINI_ARRAY, "completion", "google")
_OF_OPENAI = (
    "assistants|audio|batches|chat/completions|completions|containers|conversations|evals|files|fine_tuning|images|"
    "moderations|organization|realtime|responses|threads|uploads|vector_stores|videos"
)
_PASSED: tuple[tuple[str, RouteKind, str], ...] = (
    (r":(batchE|e)mbedContents?$", "embeddings", "google"),
    (r":\w+$", "other", "google"),
    (r"^messages/", "other", "anthropic"),
    (r"^embeddings$", "embeddings", "openai"),
    (r"^api/embed(dings)?$|^embed$", "embeddings", "ollama"),
    (r"^(api/)?tags$", "models", "ollama"),
    (r"^(api/)?(show|ps|version|pull|push|create|copy|delete|blobs/.*)$", "other", "ollama"),
    (r"^v1beta/models(/[^/:]+)?$", "models", "google"),
    (r"^models(/.+)?$", "models", "openai"),
    (r"^v1beta/|^(cachedContents|fileSearchStores|interactions|tunedModels)(/|$)", "other", "google"),
    (rf"^({_OF_OPENAI})(/|$)", "other", "openai"),
)
_OTHERS = tuple((re.compile(pattern), ApiRoute(None, kind, provider)) for pattern, kind, provider in _PASSED)
_UNREAD = tuple(
    (re.compile(pattern), ApiRoute(None, "other", provider, name))
    for pattern, provider, name in (
        (r"(^|/)model/[^/]+/converse(-stream)?$", "openai", "Bedrock Converse"),
        (r"(^|/)model/[^/]+/invoke(-with-response-stream)?$", "openai", "Bedrock InvokeModel"),
        (r"/models/[^/]+:(stream)?[rR]awPredict$", "google", "Vertex AI rawPredict"),
        (r"^(v\w+/)?interactions$", "google", "Gemini Interactions"),
        (r"(^|/)ai/language-model$", "openai", "the AI Gateway's own format"),
        (r"(^|/)fim/completions$", "openai", "Mistral FIM"),
    )
)
_LEAD = re.compile(r"^(.*/)?(openai(/deployments/[^/]+)?|v\d+(?=/)|api(?=/(chat|generate)$))/")
"""Path prefixes before the decisive part: a version, the mount point of a compatible provider, Azure's deployment."""
_FETCHED = re.compile(r"responses/[^/]+")
_GENERATE = re.compile(r"models/[^/]+:(stream)?[gG]enerateContent$")

_COMPATIBLE = (
    "api.openai.com", "openai.azure.com", "cognitiveservices.azure.com", "services.ai.azure.com", "api.groq.com",
    "api.mistral.ai", "openrouter.ai", "api.together.xyz", "api.together.ai", "api.deepseek.com", "api.x.ai",
    "api.fireworks.ai", "api.cerebras.ai", "api.perplexity.ai", "integrate.api.nvidia.com", "router.huggingface.co",
    "models.github.ai", "api.githubcopilot.com", "ai-gateway.vercel.sh", "api.moonshot.ai", "api.z.ai",
    "api.sambanova.ai", "api.deepinfra.com", "api.novita.ai", "dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com",
    "codestral.mistral.ai", "models.inference.ai.azure.com", "api.friendli.ai", "api.llama.com",
    "api.tokenfactory.nebius.com", "api.studio.nebius.com", "api.studio.nebius.ai", "inference.baseten.co",
    "api.hyperbolic.xyz", "api.lambda.ai", "api.minimax.io", "api.moonshot.cn", "api.siliconflow.com",
    "api.siliconflow.cn", "open.bigmodel.cn", "ark.cn-beijing.volces.com", "inference.api.nscale.com",
    "api.featherless.ai", "llm.chutes.ai", "inference.do-ai.run", "gateway.ai.cloudflare.com", "router.requesty.ai",
    "api.inceptionlabs.ai", "api.upstage.ai",
)  # fmt: skip
"""Hosts that use OpenAI's format, including OpenAI itself."""
_HOSTS: dict[str, str] = {
    "api.anthropic.com": "anthropic",
    "generativelanguage.googleapis.com": "google",
    "ollama.com": "ollama",
    **dict.fromkeys(_COMPATIBLE, "openai"),
}


def find_route(method: str, path: str) -> ApiRoute | None:
    """Return the purpose of a request, from the part after the base URL, query included; None if no provider has such
    a path."""
    bare, _, query = path.partition("?")
    method, bare, events = method.upper(), bare.strip("/"), "alt=sse" in query.split("&")
    posted = method == "POST"
    if posted and (match := _GENERATE.search(bare)):
        return _GEMINI_ARRAY if match.group(1) and not events else _GEMINI
    # Compatible servers are mounted below many prefixes, and a path alone must say what it is. The decisive part is
    # what follows the version or the mount; anything that looks like a known completion is one.
    rest = _LEAD.sub("", bare, count=1)
    if posted and (rest in _COMPLETIONS or rest.endswith("/chat/completions")):
        return _COMPLETIONS.get(rest, _CHAT)
    if posted and (unread := next((route for pattern, route in _UNREAD if pattern.search(bare)), None)):
        return unread
    if method == "GET" and _FETCHED.fullmatch(rest):
        return _REPLY
    for pattern, route in _OTHERS:
        if pattern.search(rest) or (route.provider in ("google", "ollama") and pattern.search(bare)):
            return route
    return None


def is_model_call(method: str, path: str, body: Any) -> bool:
    """Return whether a request is a model call, judged by its path and body: many servers use a provider's format."""
    route = find_route(method, path)
    if route is None or route.kind not in ("completion", "embeddings") or not isinstance(body, dict):
        return False
    return route.provider == "google" or isinstance(body.get("model"), str)


def find_provider(host: str) -> str | None:
    """Return the provider format of a known model host: openai (also for compatible ones), anthropic or google."""
    name = host.lower().rstrip(".")
    if name.endswith("aiplatform.googleapis.com"):  # a region precedes it, with a dash
        return "google"
    while name:
        if name in _HOSTS:
            return _HOSTS[name]
        name = name.partition(".")[2]
    return None
