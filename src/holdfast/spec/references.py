"""References in strings: `${VAR}`, `${VAR:-default}`, `{{ secrets.X }}`, `{{ params.x }}`.

A Spec keeps them as written. Only a run resolves them, as late as possible.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from holdfast.errors import UserError
from holdfast.model.codec import encode
from holdfast.model.codes import RunWarning
from holdfast.model.spec import Spec
from holdfast.secrets.spelling import SHORTEST_SECRET, TOO_SHORT, TOO_SHORT_HINT

_VARIABLE = r"\$\{(?P<variable>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}"
NAMED = r"\{\{\s*(?P<space>secrets|params)\.(?P<name>[A-Za-z_][A-Za-z0-9_-]*)\s*\}\}"
REFERENCE = f"{_VARIABLE}|{NAMED}"
PROVIDER_KEYS = (
    "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GEMINI_API_KEY", "GOOGLE_API_KEY", "OLLAMA_API_KEY", "OPENAI_API_KEY",
)  # fmt: skip
"""Variables with model keys of the user, masked even if the spec does not name them."""


class Names(Struct, frozen=True):
    """The names that a string refers to."""

    variables: tuple[str, ...] = ()
    """Variables without a default: they must be set."""
    optional: tuple[str, ...] = ()
    """Variables with a default."""
    secrets: tuple[str, ...] = ()
    params: tuple[str, ...] = ()

    @property
    def has_references(self) -> bool:
        return bool(self.variables or self.optional or self.secrets or self.params)


def find_names(text: str) -> Names:
    """Return the names that a string refers to, by kind."""
    if "${" not in text and "{{" not in text:
        return Names()
    by_kind: dict[str, list[str]] = {"variables": [], "optional": [], "secrets": [], "params": []}
    for match in re.finditer(REFERENCE, text):
        if match["variable"] is None:
            by_kind[match["space"]].append(match["name"])
        else:
            by_kind["variables" if match["default"] is None else "optional"].append(match["variable"])
    return Names(**{kind: tuple(dict.fromkeys(listed)) for kind, listed in by_kind.items()})


def resolve(
    text: str,
    environ: Mapping[str, str],
    *,
    secrets: Mapping[str, str] | None = None,
    params: Mapping[str, Any] | None = None,
) -> str:
    """Return the text with its references replaced. Raises UserError for one that has no value."""
    if "${" not in text and "{{" not in text:
        return text

    def replace_reference(match: re.Match[str]) -> str:
        if match["variable"] is not None:
            return _resolve_variable(match["variable"], match["default"], environ)
        source: Mapping[str, Any] = (secrets if match["space"] == "secrets" else params) or {}
        if match["name"] not in source:
            raise UserError(f"{{{{ {match['space']}.{match['name']} }}}} has no value", code="reference-unresolved")
        return format_param(source[match["name"]])

    return re.sub(REFERENCE, replace_reference, text)


def interpolate(text: str, params: Mapping[str, Any]) -> str:
    """Return the text with its `{{ params.x }}` replaced and every other reference left as written."""
    if "{{" not in text:
        return text

    def replace_reference(match: re.Match[str]) -> str:
        if match["space"] != "params" or match["name"] not in params:
            return match[0]
        return format_param(params[match["name"]])

    return re.sub(REFERENCE, replace_reference, text)


def _resolve_variable(name: str, default: str | None, environ: Mapping[str, str]) -> str:
    value = environ.get(name)
    if value:
        return value
    if default is not None:
        return default
    if value is None:
        raise UserError(
            f"the variable {name} is not set",
            code="variable-unset",
            hint=f"export {name}=… or write ${{{name}:-default}}",
        )
    return value


def format_param(value: Any) -> str:
    """Return a parameter as the agent gets it: text unchanged, anything else as JSON."""
    if isinstance(value, str):
        return value
    return encode(value).decode()


def read_secret_values(spec: Spec, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values to mask, longest first. Raises UserError, naming the variable, for unset and short ones."""
    values = {_read_secret(name, environ) for name in find_variables(spec.secrets, environ)}
    passed = {_resolve_variable(name, None, environ) for name in find_variables(spec.passed_on, environ)}
    values |= {value for value in passed if len(value) >= SHORTEST_SECRET}
    values |= {environ[name] for name in PROVIDER_KEYS if len(environ.get(name, "")) >= SHORTEST_SECRET}
    return tuple(sorted(values, key=lambda value: (-len(value), value)))


def warn_unmasked_values(spec: Spec, environ: Mapping[str, str]) -> tuple[RunWarning, ...]:
    """Return a warning for each variable whose value is passed on to the agent and too short to be masked."""
    refused = find_variables(spec.secrets, environ)
    passed = [name for name in find_variables(spec.passed_on, environ) if name in environ and name not in refused]
    short = [name for name in passed if _is_short(name, environ)]
    why = f"is shorter than {SHORTEST_SECRET} characters: it is passed on, but not masked in output and stored files"
    return tuple(RunWarning("secret-short", f"the value of {name} {why}") for name in short)


def find_variables(texts: Iterable[str], environ: Mapping[str, str]) -> dict[str, None]:
    """Return the variables that provide the values of these texts."""
    variables: dict[str, None] = {}
    # Used to find what must be masked, so a variable counts only if it really provides the value: with a default that
    # is in use, nothing secret is in the text.
    for match in (match for text in texts for match in re.finditer(REFERENCE, text)):
        name = match["variable"]
        if name is not None and (match["default"] is None or environ.get(name)):
            variables[name] = None  # a secret of the world has its own entry; a default is not a secret
    return variables


def _is_short(name: str, environ: Mapping[str, str]) -> bool:
    return len(environ.get(name, "")) < SHORTEST_SECRET


def _read_secret(name: str, environ: Mapping[str, str]) -> str:
    value = _resolve_variable(name, None, environ)
    if _is_short(name, environ):
        raise UserError(f"the value of {name} {TOO_SHORT}", code="secret-unavailable", hint=TOO_SHORT_HINT)
    return value


_PLACE = r"\{[A-Za-z_][\w-]*\}"


def find_url_error(text: str) -> str:
    """Return what was expected instead; empty for an http or https URL, or if only a run can tell."""
    if re.match(REFERENCE, text):
        return ""
    filled = re.sub(_PLACE, "1", re.sub(REFERENCE, "1", text))
    if not filled.startswith(("http://", "https://")):
        return "expected an http:// or https:// URL"
    try:
        parts = urlsplit(filled)
        port = parts.port
    except ValueError:
        return "expected a port from 1 to 65535 in the URL"
    if not parts.hostname:
        return "expected a host in the URL"
    return "expected a port from 1 to 65535 in the URL" if port == 0 else ""


class SettledValues:
    """The values of references by path; a stored run provides the values that it used."""

    def __init__(self, environ: Mapping[str, str], stored: Mapping[str, str] | None = None) -> None:
        self._environ = environ
        self._kept = stored
        self.found: dict[str, str] = {}
        self.unset: dict[str, tuple[str, ...]] = {}
        """The unset variables by path."""
        self.variables: dict[str, None] = {}

    def __call__(self, path: str, text: str) -> str | None:
        # A resumed or rejudged run must see the values that the run itself used, not those of the environment today.
        if self._kept is not None and path in self._kept:
            self.found[path] = self._kept[path]
            return self._kept[path]
        referred = find_names(text).variables
        self.variables |= dict.fromkeys(referred)
        try:
            self.found[path] = resolve(text, self._environ)
        except UserError:
            self.unset[path] = tuple(name for name in referred if name not in self._environ)
            return None
        return self.found[path]
