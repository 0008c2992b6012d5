"""References and secrets of a file: what must resolve, what is masked, and what should not stand there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from holdfast.errors import UserError
from holdfast.reading.node import Node
from holdfast.reading.reader import Reader, join
from holdfast.secrets.spelling import KEY_NAME, KEY_SHAPED, SHORTEST_SECRET
from holdfast.spec.references import names
from holdfast.spec.sections.file import File
from holdfast.spec.sections.world import SecretEntry
from holdfast.spec.settled_values import SettledValues

RESOLVED = (
    "agent", "agents", "model", "models", "services", "secrets", "network", "fixtures", "setup", "resources", "base",
)  # fmt: skip
"""Sections in which `${VAR}` is a reference. Prompts, patterns and payloads are text: a dollar there is a dollar."""
_TEXT_ONLY = (
    r"agent\.(command|args\[\d+\]|dialogue\[\d+\]\.expect)|setup\.commands.*|services\[\d+\]\.wait_for"
    r"|fixtures\[\d+\]\.sql"
)
"""Shell and SQL text has dollars of its own."""

_NOT_FILLED = ("chaos", "contract.chaos_matrix", "output", "replays", "mutations", "model", "advanced", "scoring")
_FILLED = "they are filled into what is asked, the agent's section and the settings of rules"

_HEADERS = r"agent\.(headers|mcp_config\..+\.headers)"
KEY_HEADER = rf"(?i){_HEADERS}\.{KEY_NAME}"
HIDDEN = rf"{_HEADERS}\..+|.*\.api_key"
_PASSED_ON = (
    r"(agent\.(env|query_params)|agent\.dialogue\[\d+\]|agent\.mcp_config\..+\.env|(setup|services\[\d+\])\.env)\..+"
)
"""Values that may be secrets, and may be a port or a language: a short one is passed on and not masked."""


class Referred(Struct, frozen=True):
    """What a file refers to."""

    variables: tuple[str, ...]
    secrets: tuple[str, ...]
    passed_on: tuple[str, ...]


def scalars(node: Node, path: str = "") -> Iterator[tuple[Node, str]]:
    """Every scalar of the tree with its path: a number in a header is a text, too."""
    if node.kind == "list":
        for index, item in enumerate(node.items):
            yield from scalars(item, f"{path}[{index}]")
    elif node.kind == "map":
        for key, (_, value) in node.pairs.items():
            yield from scalars(value, join(path, key))
    elif node.kind != "null":
        yield node, path


def references(reader: Reader, file: File, environ: Mapping[str, str], folder: Path, values: SettledValues) -> Referred:
    """Collects the file's references and reports those that cannot resolve."""
    known_secrets = {secret.name for secret in file.secrets}
    known_params = set(file.parallelism.matrix) if file.parallelism else set()
    variables = dict(values.variables)
    masked: dict[str, None] = {}
    passed_on: dict[str, None] = {}
    for node, path in scalars(file.at):
        _literal_secret(reader, node, path)
        resolved = path.startswith(RESOLVED) and not re.fullmatch(_TEXT_ONLY, path)
        if resolved and "${" in node.text:
            _unclosed(reader, node, path)
        found = names(node.text)
        if not found.any:
            continue
        _unknown(reader, node, path, "params", found.params, known_params)
        if found.params and path.startswith(_NOT_FILLED):
            reader.error(node, path, "{{ params }} are not filled in here", hint=_FILLED, code="unknown-reference")
        _unknown(reader, node, path, "secrets", found.secrets, known_secrets)
        if path in values.found or path in values.unset:
            _unset(reader, node, path, list(values.unset.get(path, ())))
        elif resolved:
            variables |= dict.fromkeys(found.variables)
            if found.variables or found.optional:
                masked |= {node.text: None} if re.fullmatch(HIDDEN, path) else {}
                passed_on |= {node.text: None} if re.fullmatch(_PASSED_ON, path) else {}
            _unset(reader, node, path, [name for name in found.variables if name not in environ])
    for secret in file.secrets:
        name = variable_of(secret)
        if name:
            variables[name] = None
            masked[f"${{{name}}}"] = None
            _unset(reader, secret.at, "secrets", [name] if name not in environ else [])
    masked |= dict.fromkeys(f"${{{name}:-}}" for name in _in_mcp_file(file.agent.mcp_config, folder, environ))
    return Referred(tuple(variables), tuple(masked), tuple(passed_on))


def _unclosed(reader: Reader, node: Node, path: str) -> None:
    from holdfast.reading.hints import UNCLOSED, unclosed

    if (way_out := unclosed(node.text)) and not reader.failed(path):
        reader.error(node, path, UNCLOSED, hint=way_out, code="unclosed-reference")


def _in_mcp_file(config: Any, folder: Path, environ: Mapping[str, str]) -> list[str]:
    """The variables that a client's own file gives to its servers: those that are set, and long enough to be masked."""
    if not isinstance(config, str) or names(config).any or not os.path.isfile(folder / config):
        return []
    from holdfast.planes.mcp.config import read, variables

    try:
        found = variables(read(folder / config))
    except UserError:
        return []  # told where the file is checked
    return [name for name in found if len(environ.get(name, "")) >= SHORTEST_SECRET]


def variable_of(secret: SecretEntry) -> str:
    """The variable that the secret's value comes from; empty if it comes from elsewhere."""
    source = secret.source or ("env" if secret.from_ is None else "")
    if source == "env":
        return secret.name
    return source.removeprefix("env:") if source.startswith("env:") else ""


def _unset(reader: Reader, node: Node, path: str, missing: list[str]) -> None:
    for name in missing:
        message = f"the variable {name} is not set; a run would be refused"
        hint = f"export {name}=…, or write ${{{name}:-default}}"
        reader.warn(node, path, message, hint=hint, code="unset-variable", values=(name,))


def _unknown(reader: Reader, node: Node, path: str, space: str, found: tuple[str, ...], known: set[str]) -> None:
    home = "parallelism.matrix" if space == "params" else "secrets"
    for name in found:
        if name not in known:
            message = f"{{{{ {space}.{name} }}}} is not in {home}"
            reader.error(node, path, message, code="unknown-reference")


def _literal_secret(reader: Reader, node: Node, path: str) -> None:
    """Refuses a literal api_key, and warns of values that look like one."""
    literal = not names(node.text).any
    if path.startswith(("model.", "models.")) and path.endswith(".api_key") and literal:
        message = "a key must not stand in the file"
        reader.error(node, path, message, hint="write api_key: ${VAR} and set the variable", code="literal-secret")
        return
    shaped = KEY_SHAPED.search(node.text) is not None or (literal and re.fullmatch(KEY_HEADER, path))
    if shaped:
        message = "looks like a key that should not stand in the file"
        reader.warn(node, path, message, hint="write ${VAR} and set the variable", code="lint-literal-secret")
