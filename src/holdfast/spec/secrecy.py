"""References and secrets of a file: what must resolve, what is masked, and what should not be in the file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml
from msgspec import Struct

from holdfast.errors import UserError
from holdfast.model.codec import digest
from holdfast.reading.hints import UNCLOSED, suggest_closing
from holdfast.reading.node import Node
from holdfast.reading.reader import Reader
from holdfast.reading.tree import parse
from holdfast.secrets.spelling import KEY_NAME, KEY_SHAPED, SHORTEST_SECRET, TOO_SHORT, TOO_SHORT_HINT, list_spellings
from holdfast.spec.references import Names, SettledValues, find_names, find_variables
from holdfast.spec.sections.file import File
from holdfast.spec.sections.world import SecretEntry

RESOLVED = (
    "agent", "agents", "model", "models", "services", "secrets", "network", "fixtures", "setup", "resources", "base",
)  # fmt: skip
"""Sections in which `${VAR}` is a reference. Prompts, patterns and payloads are text, and a dollar there is a dollar.
"""
_TEXT_ONLY = (
    r"agent\.(command|args\[\d+\]|dialogue\[\d+\]\.expect)|setup\.commands.*|services\[\d+\]\.wait_for"
    r"|fixtures\[\d+\]\.sql"
)
"""Shell and SQL text has dollars of its own."""

_OTHER_LANGUAGE = re.compile(
    r"\b(command|commands|args|sql|query|content|body|response|script|text|payload|template|request_template)\b"
)
"""Keys of texts in a language of their own, or that a service or model gives to the agent: dollars are usual there."""
_NOT_FILLED = ("chaos", "contract.chaos_matrix", "output", "replays", "mutations", "model", "advanced", "scoring")
_FILLED = "they are filled into prompts, the agent's section and the settings of rules"

_HEADERS = r"agent\.(headers|mcp_config\..+\.headers)"
KEY_HEADER = rf"(?i){_HEADERS}\.{KEY_NAME}"
HIDDEN = rf"{_HEADERS}\..+|.*\.api_key"
_PASSED_ON = (
    r"(agent\.(env|query_params)|agent\.dialogue\[\d+\]|agent\.mcp_config\..+\.env|(setup|services\[\d+\])\.env)\..+"
)
"""Values that may be secrets, or a port or a language: a short one is passed on without masking."""


_LINES_NAMED = 5
"""Lines that one warning names."""


class FileReferences(Struct, frozen=True):
    """The names that a file refers to."""

    variables: tuple[str, ...]
    secrets: tuple[str, ...]
    passed_on: tuple[str, ...]


def iter_scalars(node: Node) -> Iterator[Node]:
    """Yield every scalar of the tree: a number in a header is also a text."""
    for inner in (*node.items, *(value for _, value in node.pairs.values())):
        yield from iter_scalars(inner)
    if node.kind not in ("list", "map", "null"):
        yield node


# Three kinds of places: values of a type that the reader has resolved already, sections in which every reference is
# resolved at the run, and prompts or patterns, in which a dollar is a dollar and a reference probably a mistake.
def collect_references(
    reader: Reader, file: File, environ: Mapping[str, str], folder: Path, values: SettledValues
) -> FileReferences:
    """Collect the file's references and report those that cannot resolve."""
    variables = dict(values.variables)
    masked: dict[str, None] = {}
    passed_on: dict[str, None] = {}
    unfilled = list[Node]()
    for node in iter_scalars(file.at):
        path = node.path
        _report_literal_secret(reader, node)
        resolved = path.startswith(RESOLVED) and not re.fullmatch(_TEXT_ONLY, path)
        if resolved and "${" in node.text and (hint := suggest_closing(node.text)) and not reader.has_error(path):
            reader.report(node, UNCLOSED, hint=hint, code="unclosed-reference")
        referred = find_names(node.text)
        if not referred.has_references:
            continue
        _report_unknown_names(reader, file, node, referred)
        if path in values.found or path in values.unset:
            _warn_unset(reader, node, list(values.unset.get(path, ())))
        elif resolved:
            variables |= dict.fromkeys(referred.variables)
            if referred.variables or referred.optional:
                masked |= {node.text: None} if re.fullmatch(HIDDEN, path) else {}
                passed_on |= {node.text: None} if re.fullmatch(_PASSED_ON, path) else {}
            _warn_unset(reader, node, [name for name in referred.variables if name not in environ])
        elif not _OTHER_LANGUAGE.search(path):
            # In a pattern, an escaped dollar means a dollar; a bare `${VAR}` matches nothing.
            plain = find_names(node.text.replace(r"\$", ""))
            if (plain.variables or plain.optional) and not reader.has_error(path):
                unfilled.append(node)
    _warn_unfilled(reader, unfilled)
    for secret in file.secrets:
        name = get_secret_variable(secret)
        if name:
            variables[name] = None
            masked[f"${{{name}}}"] = None
            _warn_unset(reader, secret.at, [name] if name not in environ else [])
    masked |= dict.fromkeys(f"${{{name}:-}}" for name in _find_mcp_variables(file.agent.mcp_config, folder, environ))
    return FileReferences(tuple(variables), tuple(masked), tuple(passed_on))


def _find_mcp_variables(config: Any, folder: Path, environ: Mapping[str, str]) -> list[str]:
    """Return the variables that an MCP client's own file gives to its servers: those that are set, and long enough to
    be masked.
    """
    if not isinstance(config, str) or find_names(config).has_references or not os.path.isfile(folder / config):
        return []
    from holdfast.planes.mcp.config import list_variables, read_config

    try:
        variables = list_variables(read_config(folder / config))
    except UserError:
        return []  # reported by the check of the file
    return [name for name in variables if len(environ.get(name, "")) >= SHORTEST_SECRET]


def get_secret_variable(secret: SecretEntry) -> str:
    """Return the variable that provides the secret's value; empty if something else does."""
    source = secret.source or ("env" if secret.from_ is None else "")
    if source == "env":
        return secret.name
    return source.removeprefix("env:") if source.startswith("env:") else ""


def _warn_unset(reader: Reader, node: Node, missing: list[str]) -> None:
    for name in missing:
        message = f"the variable {name} is not set; a run would be refused"
        hint = f"export {name}=…, or write ${{{name}:-default}}"
        reader.warn(node, message, hint=hint, code="unset-variable", values=(name,))


def _warn_unfilled(reader: Reader, nodes: list[Node]) -> None:
    """Report one warning for all texts, such as prompts, that keep their `${VAR}`."""
    if not nodes:
        return
    first, *others = nodes
    names = find_names(first.text.replace(r"\$", ""))
    name = (*names.variables, *names.optional)[0]
    lines = ", ".join(str(line) for line in dict.fromkeys(node.line for node in others[:_LINES_NAMED]))
    message = f"${{{name}}} is not replaced here; the text is used as it is" + (
        f" (also lines {lines})" if lines else ""
    )
    hint = (
        f"write the value, or {{{{ params.{name.lower()} }}}} with that name in parallelism.matrix; "
        "if you mean a dollar sign: warnings: {ignore: [lint-unfilled-variable]}"
    )
    values = tuple(dict.fromkeys(node.path for node in nodes))
    reader.warn(first, message, hint=hint, code="lint-unfilled-variable", values=values)


def _report_unknown_names(reader: Reader, file: File, node: Node, referred: Names) -> None:
    """Report references to parameters and secrets that the file does not have, or that are not filled in here."""
    params = file.parallelism.matrix
    secrets = {secret.name for secret in file.secrets}
    unknown = [("params", name, "parallelism.matrix") for name in referred.params if name not in params]
    unknown += [("secrets", name, "secrets") for name in referred.secrets if name not in secrets]
    for space, name, home in unknown:
        reader.report(node, f"{{{{ {space}.{name} }}}} is not in {home}", code="unknown-reference")
    if referred.params and node.path.startswith(_NOT_FILLED):
        reader.report(node, "{{ params }} are not filled in here", hint=_FILLED, code="unknown-reference")


def _report_literal_secret(reader: Reader, node: Node) -> None:
    """Reject a literal api_key, and warn about values that look like one."""
    literal, path = not find_names(node.text).has_references, node.path
    if path.startswith(("model.", "models.")) and path.endswith(".api_key") and literal:
        message = "a key must not be in the file"
        reader.report(node, message, hint="write api_key: ${VAR} and set the variable", code="literal-secret")
        return
    shaped = KEY_SHAPED.search(node.text) is not None or (literal and re.fullmatch(KEY_HEADER, path))
    if shaped:
        message = "looks like a key, which should not be in the file"
        reader.warn(node, message, hint="write ${VAR} and set the variable", code="lint-literal-secret")


def report_short_secrets(reader: Reader, file: File, environ: Mapping[str, str]) -> None:
    """Report each secret that is too short to be masked; unset variables are reported elsewhere."""
    for node, name in _iter_secret_variables(file, environ):
        if name in environ and len(environ[name]) < SHORTEST_SECRET:
            reader.report(node, f"the value of {name} {TOO_SHORT}", hint=TOO_SHORT_HINT, code="short-secret")


def _iter_secret_variables(file: File, environ: Mapping[str, str]) -> Iterator[tuple[Node, str]]:
    """Yield every variable that provides a secret, with its position."""
    for node in iter_scalars(file.at):
        if node.path.startswith(RESOLVED) and re.fullmatch(HIDDEN, node.path):
            for name in find_variables((node.text,), environ):
                yield node, name
    for secret in file.secrets:
        if name := get_secret_variable(secret):
            yield secret.at, name


_MASKED = r"masked-[0-9a-f]{16}"
_STATIC = "static://"
_RULE_TEXT = r"(contract\.)?invariants[.\[](?!.*\.(id|type|when|service|tools?(\[\d+\])?|script)$|.*\.probes\[).+"
"""Texts of a rule without which the copy still loads, and which are not part of a trial's id, as probes are."""
_BOM = "\ufeff"
_HINT = re.compile(r"(?i)static:|authorization|api[-_]?key|token|cookie|\\")
"""Texts without which a file has no secret: the name of a key for one, or an escape that may hide it."""
_PROPERTIES = r"\A(?:[&!]\S*\s+|#[^\n]*\n\s*)*"
"""The anchor and the tag before a value. Rare patterns are strings: `re` compiles them when needed."""
_BLOCK_HEAD = r"\A[|>][^\n]*"
_COMMENT = r"#[^\r\n]*"
_STATIC_COMMENT = rf"{_STATIC}([^'\"]+)"
_HEADER_COMMENT = rf"(?i)(\b{KEY_NAME}['\"]?\s*:\s+)(?P<value>\S.*)"
_Static = Mapping[str, re.Pattern[str]]
"""By its mask: the forms of a secret that the file sets."""
_PEM_COMMENT = r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[^\n]*\n[ \t]*#)*?[^\n]*?-----END [A-Z ]*PRIVATE KEY-----"


def mask_source(source: str) -> str:
    """Return the text with literal secrets replaced by placeholders that still load; the same text if it has none."""
    if not _HINT.search(source) and not KEY_SHAPED.search(source):
        return source  # nothing in it can be one: most files are not parsed a second time
    if source.startswith(_BOM):
        return _BOM + mask_source(source.removeprefix(_BOM))  # the parser does not count it
    root, _ = parse(source)
    if root is None:
        return source
    values = (node.text.removeprefix(_STATIC) for node in iter_scalars(root) if _is_static(node.text, node.path))
    static = {_mask(value): _compile_repetitions(value) for value in values if len(value) >= SHORTEST_SECRET}
    changed = {node.span: text for node in iter_scalars(root) if (text := _mask_node(node, static)) != node.text}
    # The copy keeps every line where it is, because problems are reported by position. So the text is cut at the spans
    # of its scalars: a changed value replaces its own span, and the rest can only hide a key in a comment or an anchor.
    parts, at = [], 0
    for start, end in sorted(set(_iter_spans(root))):
        # A span begins with the anchor and the tag of its value, which must stay: an alias elsewhere may refer to them.
        body = re.sub(_PROPERTIES, "", source[start:end], count=1)
        parts += [_mask_between(source[at : end - len(body)], static), _replace_value(body, changed.get((start, end)))]
        at = end
    return "".join([*parts, _mask_between(source[at:], static)])


def _compile_repetitions(secret: str) -> re.Pattern[str]:
    """Return a pattern for every form in which a rule may repeat the secret, such as escaped for a regex or a URL."""
    in_regex = "".join(char if char.isalnum() else rf"\\?{re.escape(char)}" for char in secret)
    return re.compile("|".join([in_regex, *(spelling.pattern.pattern for spelling in list_spellings(secret))]))


def _mask_node(node: Node, static: _Static) -> str:
    """Return the text of a value for the copy: a rule may repeat a secret that the file sets."""
    text: str = mask_keys(node.text, node.path)
    return _mask_values(text, static) if re.fullmatch(_RULE_TEXT, node.path) else text


def _mask_values(text: str, static: _Static) -> str:
    for mask, repetitions in static.items():
        text = repetitions.sub(mask, text)
    return text


def _iter_spans(node: Node) -> Iterator[tuple[int, int]]:
    """Yield the spans of scalars, keys included: the rest is syntax and comments."""
    for inner in node.items:
        yield from _iter_spans(inner)
    for key, value in node.pairs.values():
        yield from (*_iter_spans(key), *_iter_spans(value))
    if node.span[0] < node.span[1]:
        yield node.span


def mask_keys(part: Any, path: str) -> Any:
    """Return a value of the file as it is in the copy, so trial ids do not depend on which of them is read."""
    if isinstance(part, dict):
        return {key: mask_keys(inner, f"{path}.{key}") for key, inner in part.items()}
    if isinstance(part, list):
        return [mask_keys(inner, f"{path}[{index}]") for index, inner in enumerate(part)]
    # A number may be a key, too, so it is masked by its text; only if that changes it does it become a text.
    if part is None or isinstance(part, bool):
        return part
    masked = _mask_text(str(part), path)
    return masked if masked != str(part) else part


def _mask_text(text: str, path: str) -> str:
    """Mask secrets in a text, only in the sections in which lint looks for them."""
    if _is_static(text, path):
        return _STATIC + _mask(text.removeprefix(_STATIC))
    if re.split(r"[.\[]", path, maxsplit=1)[0] not in RESOLVED:
        return text
    if "PRIVATE KEY-----" in text or (re.fullmatch(KEY_HEADER, path) and text and not find_names(text).has_references):
        return _mask(text)
    return KEY_SHAPED.sub(lambda match: _mask(match[0]), text)


def _is_static(text: str, path: str) -> bool:
    return text.startswith(_STATIC) and re.fullmatch(r"secrets\[\d+\]\.from", path) is not None


def _mask(value: str) -> str:
    return value if re.fullmatch(_MASKED, value) else f"masked-{digest(value.encode(), 8)}"


def _replace_value(body: str, value: str | None) -> str:
    """Replace a changed value in its written form; what follows stays on its line."""
    if value is None:
        return re.sub(_BLOCK_HEAD, lambda match: _mask_between(match[0]), body, count=1)
    quoted: str = yaml.safe_dump(value, default_style='"', width=float("inf")).strip()
    return quoted + "\n" * body.count("\n")


def _mask_between(text: str, static: _Static = MappingProxyType({})) -> str:
    """Mask the text between values: keys and static secrets in comments, and anchors shaped like a key."""
    text = _mask_values(text, static)
    text = re.sub(_PEM_COMMENT, lambda match: _mask(match[0]) + "\n#" * match[0].count("\n"), text)
    text = KEY_SHAPED.sub(lambda match: _mask(match[0]), text)
    return re.sub(_COMMENT, lambda match: _mask_comment(match[0]), text)


def _mask_comment(text: str) -> str:
    """Mask a commented-out line like a line of the file."""
    text = re.sub(_STATIC_COMMENT, lambda match: _STATIC + _mask(match[1]), text)
    return re.sub(
        _HEADER_COMMENT,
        lambda match: match[0] if find_names(match[0]).has_references else match[1] + _mask(match["value"]),
        text,
    )
