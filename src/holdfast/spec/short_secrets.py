"""Secrets that are set and too short to be masked: a run refuses them, and so does whoever checks the file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from holdfast.reading.node import Node
from holdfast.reading.reader import Reader
from holdfast.secrets.spelling import SHORTEST_SECRET, TOO_SHORT, TOO_SHORT_HINT
from holdfast.spec.references import given_by
from holdfast.spec.secrecy import HIDDEN, RESOLVED, scalars, variable_of
from holdfast.spec.sections.file import File


def short_secrets(reader: Reader, file: File, environ: Mapping[str, str]) -> None:
    """Reports each of them where it stands; one without a value is told of elsewhere."""
    for node, path, name in _named(file, environ):
        if name in environ and len(environ[name]) < SHORTEST_SECRET:
            reader.error(node, path, f"the value of {name} {TOO_SHORT}", hint=TOO_SHORT_HINT, code="short-secret")


def _named(file: File, environ: Mapping[str, str]) -> Iterator[tuple[Node, str, str]]:
    """Every variable that gives a secret, with its place."""
    for node, path in scalars(file.at):
        if path.startswith(RESOLVED) and re.fullmatch(HIDDEN, path):
            for name in given_by((node.text,), environ):
                yield node, path, name
    for secret in file.secrets:
        if name := variable_of(secret):
            yield secret.at, "secrets", name
