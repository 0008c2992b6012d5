"""The programs that a check runs in the sandbox: which the world does not have, and whose doing that is."""

from __future__ import annotations

import re
from collections.abc import Iterable

from holdfast.protocols import World
from holdfast.reading.program_word import readable_calls

NOT_RUN = (126, 127)
"""What a shell exits with where a program cannot be executed or is not there."""
_LOOK_UP = 'for name; do command -v -- "$name" >/dev/null || printf "%s\\n" "$name"; done'
_NAMED = re.compile(
    r"(?:^|[\s:])['\"\u2018]?([\w./+-]+)['\"\u2019]?: (?:command )?(?:not found|No such file)", re.MULTILINE
)
"""How shells and `env` name a program that they did not find."""


def programs_in(command: str) -> tuple[str, ...]:
    """The programs of a shell command, as far as they can be read without a shell."""
    return tuple(dict.fromkeys(call.program for call in readable_calls(command)))


def named_in(stderr: str) -> tuple[str, ...]:
    """The programs that a script did not find, as its shell says."""
    return tuple(dict.fromkeys(_NAMED.findall(stderr)))


async def not_found(programs: Iterable[str], world: World) -> tuple[str, ...]:
    """Those that a shell in the sandbox cannot run now; its own commands are found."""
    names = tuple(programs)
    if not names:
        return ()
    argv = ["/bin/sh", "-c", _LOOK_UP, "sh", *names]
    ran = await world.sandbox.run(argv, world.environ, timeout_s=20, throwaway=True)
    said = set(ran.stdout.decode("utf-8", "replace").splitlines())
    return tuple(name for name in names if name in said)


def of_workspace(program: str, workspace: str) -> bool:
    """Whether it is a file that the agent was to make: a path in the workspace."""
    return "/" in program and (not program.startswith("/") or program.startswith(f"{workspace}/"))
