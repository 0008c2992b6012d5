"""What an engine is asked for when an image is run as a service. Pure, but for a file in memory."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from holdfast.model.world import ServiceSpec
from holdfast.world.containers.owner import LABEL, owner
from holdfast.world.services.confinement import data_limit

PIDS = 4096
_LOG = ("--log-driver", "json-file", "--log-opt", "max-size=1m", "--log-opt", "max-file=1")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_LONGEST = 60_000
"""Characters of a line that the client still reads from a file."""


def options(spec: ServiceSpec, name: str, label: str, env_path: str) -> list[str]:
    """Of `docker run`, in order. No value of the environment is among them: others could read it."""
    host = re.sub(r"[^A-Za-z0-9-]", "-", spec.name).strip("-")[:63] or "service"
    return [
        *("--detach", "--pull", "never", "--network", "none", "--name", name, *_LOG),
        *("--hostname", host, "--add-host", f"{host}:127.0.0.1"),
        *("--label", f"{LABEL}={owner()}", "--label", label),
        *("--pids-limit", str(PIDS), "--memory", str(data_limit()), "--memory-swap", str(data_limit())),
        *("--env-file", env_path, *(word for variable in client_env(spec.env) for word in ("--env", variable))),
        spec.image or "",
    ]


def env_file(env: Mapping[str, str]) -> int:
    """The variables that lines can hold, as a file in memory; the caller closes it."""
    lines = "".join(f"{name}={value}\n" for name, value in env.items() if _fits(name, value))
    fd = os.memfd_create("holdfast", os.MFD_CLOEXEC)
    with open(fd, "w", encoding="utf-8", closefd=False) as file:
        file.write(lines)
    return fd


def client_env(env: Mapping[str, str]) -> dict[str, str]:
    """The other variables: the client passes them on from its own environment."""
    return {name: value for name, value in env.items() if not _fits(name, value)}


def _fits(name: str, value: str) -> bool:
    long = len(name.encode()) + len(value.encode()) > _LONGEST
    return bool(_PLAIN.fullmatch(name)) and not long and "\n" not in value and "\r" not in value
