"""`wait_for`: when a service counts as ready."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Mapping

from holdfast.errors import HarnessError
from holdfast.model.world import ServiceSpec
from holdfast.world.services.confinement import as_user
from holdfast.world.services.user import User

LIMIT_S = 30.0
PAUSE_S = 0.1
_KNOWN = re.compile(
    r"\s*(?:pg_isready\b|(?:redis-cli|valkey-cli)\b.*\bping\b|(?:mysqladmin|mariadb-admin)\b.*\bping\b|healthcheck\.sh\b)"
    r"[^;&|]*",
    re.IGNORECASE,
)
"""Commands that ask what we have asked already: whether the server takes connections."""


async def wait_for(spec: ServiceSpec, address: Mapping[str, str], user: User | None) -> None:
    """Runs the command until it succeeds, with the service's address in its environment."""
    if spec.wait_for is None or _KNOWN.fullmatch(spec.wait_for):
        return
    until = time.monotonic() + LIMIT_S
    while True:
        code, text = await asyncio.to_thread(_try, spec.wait_for, address, user, until - time.monotonic())
        if code == 0:
            return
        if time.monotonic() + PAUSE_S >= until:
            raise HarnessError(
                f"service {spec.name}: wait_for did not succeed in {LIMIT_S:.0f} s: {spec.wait_for}: {text}. "
                "It runs on this machine, with the address of the service in its environment"
            )
        await asyncio.sleep(PAUSE_S)


def _try(command: str, address: Mapping[str, str], user: User | None, limit_s: float) -> tuple[int, str]:
    env = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", **address}
    with tempfile.TemporaryFile() as output:
        try:
            ran = subprocess.run(  # noqa: S603
                ["sh", "-c", command],  # noqa: S607
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=env,
                cwd="/",
                timeout=max(limit_s, 0.1),
                check=False,
                **as_user(user),
            )
        except subprocess.TimeoutExpired:
            return -1, "it did not end"
        output.seek(max(0, output.tell() - 500) if output.tell() else 0)
        said = output.read(500).decode("utf-8", "replace").strip()
    return ran.returncode, said or f"exit code {ran.returncode}"
