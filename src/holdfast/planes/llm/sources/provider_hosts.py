"""Providers: their addresses, how they receive a key, and which provider a model name belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cached_property
from urllib.parse import parse_qsl, urlencode, urlsplit

from msgspec import Struct

from holdfast.http1.heads import RawFields, drop_hop_by_hop
from holdfast.model.model_spec import ModelSpec


class Key(Struct, frozen=True):
    """A key and the header that carries it."""

    value: str
    header: str
    scheme: str = ""

    @property
    def field(self) -> tuple[bytes, bytes]:
        """The header."""
        return self.header.encode("latin-1"), f"{self.scheme} {self.value}".strip().encode("latin-1")


class ProviderHost(Struct, frozen=True):
    """The properties of a provider."""

    public: str
    """Its address, as in its own client library."""
    base_variables: tuple[str, ...]
    """Environment variables that override the address."""
    key_variables: tuple[tuple[str, str, str], ...]
    """Environment variables that hold a key: name, header, scheme. The first says how any key is sent."""


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
    """Return whether this is the host that the provider's own client library uses."""
    return urlsplit(HOSTS[provider].public).hostname == host.lower().rstrip(".")


def find_named_base(provider: str, environ: Mapping[str, str]) -> str | None:
    """Return the address that the user's environment sets for a provider."""
    base = next((environ[name].strip() for name in HOSTS[provider].base_variables if environ.get(name)), None)
    if not base:
        return None
    return _normalize_ollama_host(base) if provider == "ollama" else base.rstrip("/")


def find_own_key(provider: str, environ: Mapping[str, str]) -> Key | None:
    """Return the key that the user's environment holds for a provider."""
    known = ((environ.get(name), header, scheme) for name, header, scheme in HOSTS[provider].key_variables)
    return next((Key(value, header, scheme) for value, header, scheme in known if value), None)


def build_key(provider: str, value: str) -> Key:
    """Return a key in the header that this provider expects."""
    _, header, scheme = HOSTS[provider].key_variables[0]
    return Key(value, header, scheme)


def find_query_key(path: str) -> str:
    """Return the key in a path; empty if there is none."""
    return dict(parse_qsl(urlsplit(path).query)).get("key", "") if "?" in path else ""


def remove_key(path: str) -> str:
    """Return the path without a key in its query."""
    bare, mark, query = path.partition("?")
    if not mark:
        return path
    fields = [(name, value) for name, value in parse_qsl(query, keep_blank_values=True) if name != "key"]
    return f"{bare}?{urlencode(fields)}" if fields else bare


def join_url(provider: str, base: str, path: str) -> str:
    """Return the URL of a path at a base address, as the provider's client library would build it."""
    # Base addresses are written with and without the version, by users and by client libraries. The version must be in
    # the URL exactly once, whoever wrote it.
    base = base.rstrip("/")
    last = base.rpartition("/")[2] if urlsplit(base).path else ""
    if provider == "openai" and path.startswith("/v1/"):  # its base address ends in /v1, the agent's may not
        return base + path[3:]
    version = _VERSIONS.get(provider)
    if version and not last and path.startswith(version[1]):  # a client whose own base address contains the version
        return base + version[0] + path
    return base + (path[len(last) + 1 :] if last and path.startswith(f"/{last}/") else path)


_VERSIONS = {"anthropic": ("/v1", "/messages"), "google": ("/v1beta", "/models/")}
"""The version in a provider's paths, and the prefix of paths that lack it."""


def _normalize_ollama_host(host: str) -> str:
    """Return the URL for `OLLAMA_HOST`, which may be a host, a host and port, or a URL with an OpenAI-style `/v1`."""
    url = host if "://" in host else f"http://{host}"
    url = url.rstrip("/").removesuffix("/v1")
    parts = urlsplit(url)
    if "://" not in host and parts.port is None:
        return f"http://{parts.netloc}:{OLLAMA_PORT}{parts.path}"
    return url


_KEY_HEADERS = frozenset((b"authorization", b"x-api-key", b"x-goog-api-key", b"api-key"))
_SET_BY_HOLDFAST = frozenset(
    (b"host", b"content-length", b"transfer-encoding", b"connection", b"accept-encoding", b"expect")
)
_UNCOMPRESSED = (b"accept-encoding", b"identity")


class AgentHeaders(Struct, eq=False, dict=True):
    """The headers of a request, without those of its connection."""

    raw: RawFields

    @cached_property
    def _fields(self) -> RawFields:
        return drop_hop_by_hop(self.raw)

    @cached_property
    def key(self) -> str | None:
        """The key in the first header that carries one; None if there is no such header."""
        for name, value in self._fields:
            if name.lower() in _KEY_HEADERS:
                words = value.decode("latin-1").split(None, 1)
                return words[-1].strip() if words and words[0].lower() != "bearer" else "".join(words[1:]).strip()
        return None

    def get(self, name: bytes) -> str:
        """Return the value of a header, by its lower-case name; empty if there is none."""
        return next((value.decode("latin-1") for key, value in self._fields if key.lower() == name), "")

    def to_upstream(self, key: Key | None = None, *, strip: bool = False) -> RawFields:
        """Return the headers to send upstream. With a key of Holdfast's, or with `strip`, the agent's own key is left
        out.

        The reply is requested uncompressed, to be readable as it passes.
        """
        drop = _SET_BY_HOLDFAST | _KEY_HEADERS if strip or key is not None else _SET_BY_HOLDFAST
        fields = [field for field in self._fields if field[0].lower() not in drop]
        return (*fields, _UNCOMPRESSED, *([] if key is None else [key.field]))


_GLOB = frozenset("*?[")
_PROVIDERS = ("openai", "anthropic", "google", "ollama")
_PREFIXES = (
    ("gpt-", "openai"),
    ("chatgpt-", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("claude-", "anthropic"),
    ("gemini-", "google"),
)


def is_glob(name: str) -> bool:
    return not _GLOB.isdisjoint(name)


def find_entry(models: Mapping[str, ModelSpec], model: str) -> str | None:
    """Return the key of the matching entry: the exact name, otherwise the first matching glob in file order."""
    if model in models:
        return model
    for name in models:
        if name == "*" or (is_glob(name) and fnmatchcase(model, name)):
            return name
    return None


class ResolvedModel(Struct, frozen=True):
    """The provider to call for a model that Holdfast itself uses."""

    provider: str
    """The provider's format: openai, anthropic, google or ollama."""
    name: str
    """The name that the provider uses."""
    entry: ModelSpec | None = None
    """Its entry in `models:`, if any."""


def resolve_model(models: Mapping[str, ModelSpec], model: str) -> ResolvedModel | None:
    """Resolve a model by its entry in `models:`, as `provider/name`, or by its name alone; None if it is unknown."""
    entry = find_entry(models, model)
    if entry is not None:
        spec = models[entry]
        return ResolvedModel("openai" if spec.script else spec.provider, spec.name or model, spec)
    provider, slash, name = model.partition("/")
    if slash:
        return ResolvedModel(provider, name, None) if provider in _PROVIDERS and name else None
    by_prefix = next((provider for prefix, provider in _PREFIXES if model.startswith(prefix)), None)
    return ResolvedModel(by_prefix, model) if by_prefix else None


def is_hosted(model: str) -> bool:
    """Return whether it is a name of a hosted service, which no machine can resolve by itself."""
    return model.startswith("paragon-")


def describe_unknown_model(model: str) -> str:
    """Return the message for an unknown model name."""
    if is_hosted(model):
        return f"The hosted model {model} is not available here: describe it in models:."
    return f"No provider is known for the model {model[:60]!r}: describe it in models:, or write provider/name."
