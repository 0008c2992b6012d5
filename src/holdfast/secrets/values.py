"""The values of a world's secrets, resolved once per run, held in memory and masked everywhere."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from holdfast.errors import UserError
from holdfast.model.codec import digest, encode_canonical
from holdfast.model.world import Secret
from holdfast.processes.leftovers import kill_group
from holdfast.secrets.spelling import SHORTEST_SECRET, TOO_SHORT

COMMAND_S = 30.0
"""Time limit of a command that prints a secret."""


class SecretUnavailable(UserError):
    """A secret has no usable value."""

    default_code = "secret-unavailable"


_STATIC = "static://"


def list_static_values(secrets: Iterable[Secret]) -> tuple[str, ...]:
    """Return the values that are written in the spec itself, if they are long enough to be masked."""
    values = (one.source.removeprefix(_STATIC) for one in secrets if one.source.startswith(_STATIC))
    return tuple(value for value in values if len(value) >= SHORTEST_SECRET)


def resolve_secrets(
    secrets: Iterable[Secret], environ: Mapping[str, str], root: Path, seed: int, *, commands: bool
) -> dict[str, str]:
    """Return the value of each secret by its name; raise UserError for one without a value.

    `commands` allows its commands to run.
    """
    values = {secret.name: _resolve_value(secret, environ, root, seed, commands) for secret in secrets}
    for name, value in values.items():
        if len(value) < SHORTEST_SECRET:
            message = f"the secret {name} {TOO_SHORT}"
            raise SecretUnavailable(message, hint="masking it would hide ordinary text; use a longer value")
    return values


def _resolve_value(secret: Secret, environ: Mapping[str, str], root: Path, seed: int, commands: bool) -> str:
    kind, _, rest = secret.source.partition(":")
    if secret.source == "generated":
        return "hf-" + digest(encode_canonical([seed, "secret", secret.name]), 16)
    if secret.source.startswith(_STATIC):
        return secret.source.removeprefix(_STATIC)
    if kind == "file":
        return _read_file(secret.name, root / rest)
    if kind == "command":
        return _run_command(secret.name, rest, root, environ, commands)
    variable = rest or secret.name
    if not environ.get(variable):
        raise SecretUnavailable(
            f"the secret {secret.name} is read from {variable}, which is not set", hint=f"export {variable}=…"
        )
    return environ[variable]


def _read_file(name: str, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").rstrip("\n")
    except (OSError, UnicodeDecodeError) as refused:
        raise SecretUnavailable(f"the secret {name} cannot be read from {path.name}: {refused}") from refused


def _run_command(name: str, command: str, root: Path, environ: Mapping[str, str], allowed: bool) -> str:
    if not allowed:
        message = f"the secret {name} comes from a command, but this spec is outside your project folder"
        raise SecretUnavailable(message, hint="if you trust the file, add --allow-commands")
    pipe = subprocess.PIPE
    running = subprocess.Popen(  # noqa: S602  # the spec's own words, which the user trusts
        command, shell=True, cwd=root, env=dict(environ), stdout=pipe, stderr=pipe, start_new_session=True
    )
    try:
        out, err = running.communicate(timeout=COMMAND_S)
    except subprocess.TimeoutExpired:
        raise SecretUnavailable(f"the command of the secret {name} did not end within {COMMAND_S:g} s") from None
    finally:
        kill_group(running.pid, signal.SIGKILL)  # kills the command and its children
        running.wait()
    if running.returncode:
        messages = err.decode("utf-8", "replace").strip().splitlines()
        raise SecretUnavailable(
            f"the command of the secret {name} exited with {running.returncode}: {messages[-1] if messages else ''}"
        )
    return out.decode("utf-8", "replace").rstrip("\n")
