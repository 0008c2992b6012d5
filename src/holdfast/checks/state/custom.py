"""`custom`: a script of the spec's author decides."""

from __future__ import annotations

import math
import os
import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from holdfast.checks.json_parts import parse
from holdfast.checks.state.command_exit import Ended, ended, last_line, named
from holdfast.checks.state.custom_context import context
from holdfast.checks.state.host_script import run_script
from holdfast.checks.state.host_services import host_services
from holdfast.checks.state.recorded import record, recorded
from holdfast.checks.wording import shorten
from holdfast.errors import HarnessError
from holdfast.model.codec import encodable, encode
from holdfast.model.observation import Observation
from holdfast.model.verdict import Finding
from holdfast.model.world import Evidence
from holdfast.protocols import Exhibit, Ran, World
from holdfast.reading.durations import Duration
from holdfast.reading.fields import about

OUTPUT_KEPT = 1_000_000
"""Bytes of a result that are read."""
_OWN = ("passed", "score", "reason", "details")


_ALONE = re.compile(rb"#!.*\bpython3? -I\s")
_FOUND = 'python=$(PATH="$1" command -v python3) || { echo "no python3 in $1" >&2; exit 127; }; exec "$python" -I "$0"'
_WRITABLE = ("/workspace", "/tmp", "/var/tmp", "/dev/shm", "/home")  # noqa: S108
"""Where an agent may have put a Python of its own."""


@dataclass(frozen=True)
class Custom:
    """A Python script of yours says passed: true.

    It gets its context as JSON on stdin and prints its result as JSON on stdout.
    """

    script: Annotated[str, about("The script, beside the spec.", min_length=1, examples=["verify.py"])]
    runs_in: Annotated[Literal["host", "sandbox"], about("Where it runs.")] = "host"
    timeout: Annotated[Duration, about("Over it the check is an error.")] = 120_000

    polarity: ClassVar[Literal["positive", "negative"]] = "positive"
    reads: ClassVar[Literal["state"]] = "state"
    texts_read: ClassVar[tuple[str, ...]] = ()  # the script saw what was there

    @property
    def runs_inside(self) -> bool:
        return self.runs_in == "sandbox"

    async def foresee(self, world: World) -> None:
        if not (world.root / self.script).is_file():
            raise HarnessError(f"there is no {self.script} beside the spec")

    async def gather(self, world: World, seen: Observation) -> Evidence:
        ran = await (self._inside(world) if self.runs_inside else self._on_host(world))
        return record([self.script, self.runs_in], ended(ran))

    async def _on_host(self, world: World) -> Ran:
        script = (world.root / self.script).resolve()
        async with host_services(world) as services:
            told = encode(context(world, services))
            return await run_script(script, world.root, told, timeout_s=self.timeout / 1000, keep=OUTPUT_KEPT)

    async def _inside(self, world: World) -> Ran:
        """The script is lent: the agent has ended, and could not have written there.

        One that begins with `#!/usr/bin/env -S python3 -I` is not run by what the agent wrote, either: neither its
        `python3` nor its modules are taken.
        """
        source = (world.root / self.script).read_bytes()
        path = world.lend(f"check-{self.script.replace('/', '-')}", source)
        return await world.sandbox.run(
            ["/bin/sh", "-c", *_start(source, path, world.environ)],
            world.environ,
            stdin=encode(context(world)),
            timeout_s=self.timeout / 1000,
            keep=OUTPUT_KEPT,
            throwaway=True,
        )

    def decide(self, exhibit: Exhibit) -> Finding:
        ran = recorded(exhibit, [self.script, self.runs_in], Ended)
        said = last_line(ran.stderr)
        if ran.timed_out:
            raise HarnessError(f"{self.script} did not end within {self.timeout / 1000:g} s")
        if ran.exit_code != 0:
            how = f"exited with {ran.exit_code}" if ran.exit_code is not None else f"was killed by {named(ran.signal)}"
            raise HarnessError(f"{self.script} {how}" + (f": {said}" if said else ""))
        result = _result(self.script, ran.stdout)
        score = _score(self.script, result)
        reason = result.get("reason")
        default = "the script says passed" if result["passed"] else "the script says not passed"
        text = shorten(reason, 220) if isinstance(reason, str) and reason.strip() else default
        return Finding(result["passed"], text, score, details=_details(result, ran.stderr))

    def problems(self) -> Iterable[tuple[str, str]]:
        if not self.script.endswith(".py"):
            yield "script", f"expected a Python script, found {self.script[:60]!r}"


def _start(source: bytes, path: str, environ: Mapping[str, str]) -> list[str]:
    """What the shell runs, the script, and for one that stands alone where Python is looked for."""
    if not _ALONE.match(source):
        return ['exec python3 "$0"', path]
    own = (*_WRITABLE, environ.get("HOME") or "/home")
    folders = map(posixpath.normpath, environ.get("PATH", os.defpath).split(":"))
    kept = (one for one in folders if one.startswith("/") and not any(f"{one}/".startswith(f"{at}/") for at in own))
    return [_FOUND, path, ":".join(kept)]


def _result(script: str, printed: str) -> dict[str, Any]:
    """What the script printed; HarnessError if that is no result."""
    try:
        result = parse(printed, unique=True)
    except ValueError as bad:
        what = f"'{shorten(printed.strip(), 60)}' ({shorten(str(bad), 60)})" if printed.strip() else "nothing"
        raise HarnessError(f"{script} must print one JSON object and nothing else; it printed {what}") from bad
    if not isinstance(result, dict):
        raise HarnessError(f"{script} must print a JSON object, not {shorten(printed.strip(), 60)}")
    if not isinstance(result.get("passed"), bool):
        raise HarnessError(f"{script} must say passed: true or false; it says {shorten(str(result.get('passed')))}")
    return result


def _score(script: str, result: dict[str, Any]) -> float | None:
    score = result.get("score")
    if score is None:
        return None
    if isinstance(score, bool) or not isinstance(score, int | float) or not (math.isfinite(score) and 0 <= score <= 1):
        raise HarnessError(f"{script} gave a score of {shorten(str(score), 40)}, which is not a number from 0 to 1")
    return float(score)


def _details(result: dict[str, Any], stderr: str) -> dict[str, Any]:
    """The script's details and all that it said besides, fit to be stored."""
    given = result.get("details")
    found = dict(given) if isinstance(given, dict) else {} if given is None else {"details": given}
    found |= {key: value for key, value in result.items() if key not in _OWN}
    if stderr.strip():
        found.setdefault("stderr", stderr[-8_000:])
    plain: dict[str, Any] = _storable(found)
    return plain


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, dict):
        return {encodable(key): _storable(item) for key, item in value.items()}
    return [_storable(item) for item in value] if isinstance(value, list) else value
