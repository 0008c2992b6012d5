"""Where each provider is, and how it is given its key."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import parse_qsl, urlencode, urlsplit

from msgspec import Struct


class Key(Struct, frozen=True):
    """A key and the header it is sent in."""

    value: str
    header: str
    scheme: str = ""

    @property
    def field(self) -> tuple[bytes, bytes]:
        """The header."""
        return self.header.encode("latin-1"), f"{self.scheme} {self.value}".strip().encode("latin-1")


class ProviderHost(Struct, frozen=True):
    """What is known of a provider."""

    public: str
    """Its address, as its own client library has it."""
    base_variables: tuple[str, ...]
    """Environment variables that name another address."""
    key_variables: tuple[tuple[str, str, str], ...]
    """Environment variables that hold a key: name, header, scheme. The first is how any key is sent."""


HOSTS: Mapping[str, ProviderHost] = {
    "openai": ProviderHost(
        "https://api.openai.com/v1",
        ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
        (("OPENAI_API_KEY", "authorization", "Bearer"),),
    ),
    "anthropic": ProviderHost(
        "https://api.anthropic.com",
        ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE", "ANTHROPIC_API_URL"),
        (("ANTHROPIC_API_KEY", "x-api-key", ""), ("ANTHROPIC_AUTH_TOKEN", "authorization", "Bearer")),
    ),
    "google": ProviderHost(
        "https://generativelanguage.googleapis.com",
        ("GOOGLE_GEMINI_BASE_URL", "GEMINI_API_BASE"),
        (
            ("GOOGLE_API_KEY", "x-goog-api-key", ""),
            ("GEMINI_API_KEY", "x-goog-api-key", ""),
            ("GOOGLE_GENERATIVE_AI_API_KEY", "x-goog-api-key", ""),
        ),
    ),
    "ollama": ProviderHost(
        "http://127.0.0.1:11434",
        ("OLLAMA_HOST", "OLLAMA_BASE_URL", "OLLAMA_API_BASE"),
        (("OLLAMA_API_KEY", "authorization", "Bearer"),),
    ),
}

OLLAMA_PORT = 11434


def is_public(provider: str, host: str) -> bool:
    """Whether it is the host that the provider's own client library asks."""
    return urlsplit(HOSTS[provider].public).hostname == host.lower().rstrip(".")


def named_base(provider: str, environ: Mapping[str, str]) -> str | None:
    """The address that the user's environment names for a provider."""
    given = next((environ[name].strip() for name in HOSTS[provider].base_variables if environ.get(name)), None)
    if not given:
        return None
    return _ollama(given) if provider == "ollama" else given.rstrip("/")


def own_key(provider: str, environ: Mapping[str, str]) -> Key | None:
    """The key that the user's environment holds for a provider."""
    found = ((environ.get(name), header, scheme) for name, header, scheme in HOSTS[provider].key_variables)
    return next((Key(value, header, scheme) for value, header, scheme in found if value), None)


def key_for(provider: str, value: str) -> Key:
    """A key as this provider takes it."""
    _, header, scheme = HOSTS[provider].key_variables[0]
    return Key(value, header, scheme)


def key_in_query(path: str) -> str:
    """The key that a path carries; empty if none."""
    return dict(parse_qsl(urlsplit(path).query)).get("key", "") if "?" in path else ""


def without_key(path: str) -> str:
    """The path without a key in its query."""
    bare, asks, query = path.partition("?")
    if not asks:
        return path
    kept = [(name, value) for name, value in parse_qsl(query, keep_blank_values=True) if name != "key"]
    return f"{bare}?{urlencode(kept)}" if kept else bare


def join(provider: str, base: str, path: str) -> str:
    """The URL of a path at a base address, as the provider's client library would make it."""
    bare, asks, query = path.partition("?")
    return _joined(provider, base, bare) + asks + query


@lru_cache(512)
def _joined(provider: str, base: str, path: str) -> str:
    base = base.rstrip("/")
    last = base.rpartition("/")[2] if urlsplit(base).path else ""
    if provider == "openai" and path.startswith("/v1/"):  # its base address ends in /v1, whatever the agent's did
        return base + path[3:]
    version = _VERSIONS.get(provider)
    if version and not last and path.startswith(version[1]):  # a client whose own base address has the version in it
        return base + version[0] + path
    return base + (path[len(last) + 1 :] if last and path.startswith(f"/{last}/") else path)


_VERSIONS = {"anthropic": ("/v1", "/messages"), "google": ("/v1beta", "/models/")}
"""The version in the paths of a provider, and how a path begins that lacks it."""


def _ollama(given: str) -> str:
    """`OLLAMA_HOST` may be a host, a host and port, or a URL; an OpenAI-style `/v1` behind it belongs to the path."""
    url = given if "://" in given else f"http://{given}"
    url = url.rstrip("/").removesuffix("/v1")
    parts = urlsplit(url)
    if "://" not in given and parts.port is None:
        return f"http://{parts.netloc}:{OLLAMA_PORT}{parts.path}"
    return url
