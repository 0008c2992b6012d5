"""Rewrites an MCP client's configuration to route every server through Holdfast."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from holdfast.errors import UserError
from holdfast.planes.mcp import relay as relay_program
from holdfast.reading.file import read_file

_SECTIONS = ("mcpServers", "servers")
_URLS = ("url", "httpUrl", "serverUrl")
"""Keys under which clients write a server's address."""
_REFERENCE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class McpConfigInvalid(UserError):
    """The agent's MCP configuration cannot be used."""

    default_code = "mcp-config-invalid"


class Target(Struct, frozen=True):
    """A server over streamable HTTP. Its headers may be secrets: the agent never receives them."""

    url: str
    headers: dict[str, str] = {}


def fill_references(text: str, server: str, environ: Mapping[str, str] | None) -> str:
    """Resolve `${VAR}`, `${env:VAR}` and `${VAR:-default}`, as the client with that environment would."""

    def resolve(match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        resolved = (environ or {}).get(name, default)
        if resolved is None:
            raise McpConfigInvalid(f"mcp_config: the server {server!r} needs the variable {name}, which is not set")
        return resolved

    return text if environ is None else _REFERENCE.sub(resolve, text)


def list_variables(config: Mapping[str, Any]) -> list[str]:
    """Return the variables that headers and environments of servers refer to: they usually hold keys."""
    entries = [entry for name in _SECTIONS for entry in _list_values(config.get(name)) if isinstance(entry, dict)]
    texts = [str(text) for entry in entries for key in ("headers", "env") for text in _list_values(entry.get(key))]
    return list(dict.fromkeys(match[1] for text in texts for match in _REFERENCE.finditer(text)))


def _list_values(part: Any) -> list[Any]:
    return list(part.values()) if isinstance(part, dict) else []


def build_relay_command() -> list[str]:
    """Return the command that starts the relay: as a file, because that is fastest and no file of the agent can shadow
    it.
    """
    return [sys.executable, "-I", "-S", relay_program.__file__]


def rewrite_config(
    config: Mapping[str, Any],
    *,
    relay: Sequence[str],
    environ: Mapping[str, str],
    base_url: str,
    fill_from: Mapping[str, str] | None = None,
) -> tuple[dict[str, Any], dict[str, Target]]:
    """Return the configuration with each server replaced by the relay or Holdfast's address, and the servers that
    Holdfast calls instead.

    `environ` are the variables that route a relay to Holdfast. Clients start servers with a small environment, so each
    entry contains them. `fill_from` are the variables for the values that Holdfast keeps, addresses and headers.
    Without them nothing is resolved: a check only reads, and a missing variable matters only in a run.
    """
    changed = dict(config)
    servers: dict[str, Target] = {}
    used: set[str] = set()
    for section in [section for section in _SECTIONS if section in config]:
        entries = _require_map(config[section], section)
        twice = next((name for name in entries if name in used), None)
        if twice is not None:
            raise McpConfigInvalid(f"mcp_config: the server {twice!r} is listed twice")
        used.update(entries)
        changed[section] = rewritten = {}
        for name, written in entries.items():
            entry = _require_map(written, f"{section}.{name}")
            if "command" in entry:
                rewritten[name] = _rewrite_stdio(name, entry, relay, environ)
                continue
            key, servers[name] = _read_target(name, entry, fill_from)
            rest = {name: value for name, value in entry.items() if name != "headers"}
            rewritten[name] = {**rest, key: f"{base_url.rstrip('/')}/{quote(name, safe='')}"}
    if not used:
        raise McpConfigInvalid(
            "mcp_config names no servers", hint='it is a map {"mcpServers": {name: {"command": ...}}}'
        )
    return changed, servers


def write_config(path: Path, config: Mapping[str, Any]) -> None:
    """Write a configuration that only its owner can read: it contains a trial's address, and maybe keys."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(descriptor, 0o600)
        json.dump(config, file, indent=2)


def read_config(path: Path) -> dict[str, Any]:
    """Read a configuration from its file."""
    source = read_file(path)
    if source.problem is not None:
        raise McpConfigInvalid(f"agent.mcp_config: {path.name} cannot be read: {source.problem.message}")
    try:
        return _require_map(json.loads(source.text), path.name)
    except (ValueError, RecursionError) as wrong:
        raise McpConfigInvalid(f"agent.mcp_config: {path.name} cannot be read: {wrong}") from wrong


def _read_target(name: str, entry: dict[str, Any], environ: Mapping[str, str] | None) -> tuple[str, Target]:
    """Return the key that holds the address of an HTTP server, and the server."""
    key = next((key for key in _URLS if key in entry), None)
    if key is None:
        raise McpConfigInvalid(f"mcp_config: the server {name!r} has neither a command nor a url")
    if entry.get("type") == "sse":
        hint = "use the server's streamable HTTP address, with type: http"
        raise McpConfigInvalid(
            f"mcp_config: the server {name!r} is of type sse, which MCP no longer supports", hint=hint
        )
    url = entry[key]
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        raise McpConfigInvalid(f"mcp_config: the url of server {name!r} is not an http address")
    headers = _require_map(entry.get("headers", {}), f"{name}.headers")
    filled = {header: fill_references(str(value), name, environ) for header, value in headers.items()}
    return key, Target(fill_references(url, name, environ), filled)


def _rewrite_stdio(
    name: str, entry: dict[str, Any], relay: Sequence[str], environ: Mapping[str, str]
) -> dict[str, Any]:
    command, args = entry["command"], entry.get("args", [])
    if not isinstance(command, str) or not isinstance(args, list):
        raise McpConfigInvalid(f"mcp_config: the server {name!r} needs a command (text) and args (a list)")
    env = _require_map(entry.get("env") or {}, f"{name}.env")
    started = [*relay, "--name", name, "--", command, *[str(arg) for arg in args]]
    return {**entry, "command": started[0], "args": started[1:], "env": {**env, **environ}}


def _require_map(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise McpConfigInvalid(f"mcp_config: {where} must be a map, found {type(value).__name__}")
    return value
