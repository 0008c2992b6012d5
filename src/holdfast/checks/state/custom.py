"""`custom`: a script of the spec's author decides."""

from __future__ import annotations

import asyncio
import math
import os
import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from holdfast.checks.json_parts import parse
from holdfast.checks.state import command_exit
from holdfast.checks.state.host_script import build_context, open_host_services, run_script
from holdfast.checks.state.recorded import build_evidence, read_evidence
from holdfast.checks.wording import shorten
from holdfast.errors import HarnessError
from holdfast.model.capabilities import THROWAWAY
from holdfast.model.codec import encode, encode_canonical, make_storable
from holdfast.model.fingerprint import compute_fingerprint
from holdfast.model.observation import Observation
from holdfast.model.traits import CheckTraits
from holdfast.model.verdict import Finding
from holdfast.model.world import Evidence
from holdfast.protocols.check import Exhibit
from holdfast.protocols.sandbox import CommandResult
from holdfast.protocols.world import World
from holdfast.reading.durations import Duration
from holdfast.reading.fields import about

OUTPUT_KEPT = 1_000_000
"""Maximum number of bytes of a result."""
_REFERENCE = "reference"
_NO_CONTROL = (
    "reference_timeout had no effect: the task's own solution can run as a control only without services, "
    "in a sandbox that discards a check's writes"
)
_OWN = ("passed", "score", "reason", "details")


_ALONE = re.compile(rb"#!.*\bpython3? -I\s")
_FOUND = 'python=$(PATH="$1" command -v python3) || { echo "no python3 in $1" >&2; exit 127; }; exec "$python" -I "$0"'
_WRITABLE = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108
"""Folders, next to the workspace and the homes, in which an agent may have put its own Python."""


class ScriptRun(Struct, frozen=True, omit_defaults=True):
    """The exit of the script, and its exit on its own solution before the agent started."""

    end: command_exit.ExitRecord
    reference: command_exit.ExitRecord | None = None


@dataclass(frozen=True)
class Custom:
    """Your Python script says `passed: true`.

    It gets its context as JSON on stdin and prints its result as JSON on stdout.
    """

    script: Annotated[str, about("The script, relative to the spec.", min_length=1, examples=["verify.py"])]
    runs_in: Annotated[Literal["host", "sandbox"], about("Where it runs.")] = "host"
    timeout: Annotated[Duration, about("The time limit; exceeding it is an error.")] = 120_000
    reference_timeout: Annotated[
        Duration | None,
        about("With `runs_in: sandbox`: the time in which the script must solve the task itself, as a control."),
    ] = None

    # No text decides: the script examined the state itself.
    traits: ClassVar[CheckTraits] = CheckTraits(
        polarity="positive",
        reads="state",
        texts=(),
        file_setting="script",
        needs_world=False,
        see=("invariants.command_exit",),
    )

    def configured(self) -> CheckTraits:
        return replace(self.traits, runs_inside=self._is_inside, needs_world=self._is_inside)

    codes: ClassVar[Mapping[str, str]] = {
        "script-said": "What the script reported.",
    }

    @property
    def _is_inside(self) -> bool:
        return self.runs_in == "sandbox"

    async def foresee(self, world: World) -> None:
        if not (world.root / self.script).is_file():
            raise HarnessError(f"there is no {self.script} next to the spec", code="check-script-failed")
        if self.reference_timeout is not None:
            lock = world.remembered.setdefault((_REFERENCE,), asyncio.Lock())
            key = (_REFERENCE, self.script, encode_canonical(world.trial.params).decode())
            async with cast(asyncio.Lock, lock):
                if key not in world.remembered:
                    world.remembered[key] = await self._run_reference(world)
            world.foreseen[_REFERENCE, self.script] = world.remembered[key]
            if world.remembered[key] is None:
                world.context.sink.note(f"{self.script}: {_NO_CONTROL}")

    async def _run_reference(self, world: World) -> command_exit.ExitRecord | None:
        """Let the script solve the task itself before the agent starts; None if it must not try.

        Its changes are discarded, and the script is emptied afterwards, so that no agent can find the solution.
        """
        if world.services or any(one.feature == THROWAWAY and not one.enforced for one in world.sandbox.isolation):
            return None
        limit_ms = self.timeout + (self.reference_timeout or 0)
        try:
            return command_exit.to_exit_record(await self._run_inside(world, limit_ms, reference=True))
        finally:
            world.lend(self._lent_name, b"")

    async def gather(self, world: World, observation: Observation) -> Evidence:
        ran = await (self._run_inside(world, self.timeout) if self._is_inside else self._run_on_host(world))
        reference = world.foreseen.get((_REFERENCE, self.script))
        return build_evidence(
            [self.script, self.runs_in],
            ScriptRun(command_exit.to_exit_record(ran), cast(command_exit.ExitRecord | None, reference)),
        )

    async def _run_on_host(self, world: World) -> CommandResult:
        script = (world.root / self.script).resolve()
        async with open_host_services(world) as services:
            stdin = encode(build_context(world, services))
            return await run_script(script, world.root, stdin, timeout_s=self.timeout / 1000, keep=OUTPUT_KEPT)

    async def _run_inside(self, world: World, limit_ms: int, *, reference: bool = False) -> CommandResult:
        """Lend the script to the sandbox while no agent runs, at a path where no agent could have written.

        A script that begins with `#!/usr/bin/env -S python3 -I` uses neither the agent's `python3` nor its modules.
        """
        source = (world.root / self.script).read_bytes()
        path = world.lend(self._lent_name, source)
        return await world.sandbox.run(
            ["/bin/sh", "-c", *_build_start_command(source, path, world)],
            world.environ,
            stdin=encode(replace(build_context(world), reference=reference)),
            timeout_s=limit_ms / 1000,
            keep=OUTPUT_KEPT,
            throwaway=True,
        )

    @property
    def _lent_name(self) -> str:
        return f"check-{self.script.replace('/', '-')}"

    def decide(self, exhibit: Exhibit) -> Finding:
        ran = read_evidence(exhibit, [self.script, self.runs_in], ScriptRun)
        finding = self._build_finding(ran.end, self.timeout)
        if ran.reference is None:
            return finding
        try:
            control = self._build_finding(ran.reference, self.timeout + (self.reference_timeout or 0))
        except HarnessError as broken:
            control = Finding(False, str(broken), "check-raised")
        if control.passed:
            return finding
        why = f"the task's own solution does not pass here: {control.reason}"
        text = shorten(f"{why}; the agent's result: {finding.reason}", 240)
        return Finding(None, text, "reference-failed", details=control.details)

    def _build_finding(self, ran: command_exit.ExitRecord, limit_ms: int) -> Finding:
        """Return the script's result; raise HarnessError if it gave none."""
        message = command_exit.get_last_line(ran.stderr)
        if ran.timed_out:
            raise HarnessError(f"{self.script} did not end within {limit_ms / 1000:g} s", code="check-timeout")
        if ran.exit_code != 0:
            how = (
                f"exited with {ran.exit_code}"
                if ran.exit_code is not None
                else f"was killed by {command_exit.get_signal_name(ran.signal)}"
            )
            raise HarnessError(
                f"{self.script} {how}" + (f": {message}" if message else ""),
                details=command_exit.build_output_details(ran),
                code="check-script-failed",
            )
        result = _parse_result(self.script, ran.stdout)
        score = _read_score(self.script, result)
        reason = result.get("reason")
        default = "the script reported a pass" if result["passed"] else "the script reported a failure"
        text = shorten(reason, 220) if isinstance(reason, str) and reason.strip() else default
        details = _build_details(result, ran.stderr)
        return Finding(result["passed"], text, "script-said", (compute_fingerprint(text),), score, details=details)

    def problems(self) -> Iterable[tuple[str, str]]:
        if not self.script.endswith(".py"):
            yield "script", f"expected a Python script, found {self.script[:60]!r}"
        if self.reference_timeout is not None and not self._is_inside:
            yield "reference_timeout", "needs runs_in: sandbox"


def _build_start_command(source: bytes, path: str, world: World) -> list[str]:
    """Return the shell command, the script, and for a stand-alone script the PATH on which Python is searched."""
    if not _ALONE.match(source):
        return ['exec python3 "$0"', path]
    # The agent may have put a `python3` of its own into any folder that it can write, so only the others of its PATH
    # are searched for the script's interpreter.
    # Not all of /home: the user's activated environment may be there, read-only, with the packages that tests need.
    own = (*_WRITABLE, world.sandbox.workspace, world.sandbox.home, world.environ.get("HOME") or world.sandbox.home)
    folders = map(posixpath.normpath, world.environ.get("PATH", os.defpath).split(":"))
    trusted = (one for one in folders if one.startswith("/") and not any(f"{one}/".startswith(f"{at}/") for at in own))
    return [_FOUND, path, ":".join(trusted)]


def _parse_result(script: str, printed: str) -> dict[str, Any]:
    """Return the printed result; raise HarnessError if it is not valid."""
    try:
        result = parse(printed, unique=True)
    except ValueError as bad:
        what = f"'{shorten(printed.strip(), 60)}' ({shorten(str(bad), 60)})" if printed.strip() else "nothing"
        raise HarnessError(
            f"{script} must print one JSON object and nothing else; it printed {what}", code="check-script-failed"
        ) from bad
    if not isinstance(result, dict):
        raise HarnessError(
            f"{script} must print a JSON object, not {shorten(printed.strip(), 60)}", code="check-script-failed"
        )
    if not isinstance(result.get("passed"), bool):
        raise HarnessError(
            f"{script} must print passed: true or false; it printed {shorten(str(result.get('passed')))}",
            code="check-script-failed",
        )
    return result


def _read_score(script: str, result: dict[str, Any]) -> float | None:
    score = result.get("score")
    if score is None:
        return None
    if isinstance(score, bool) or not isinstance(score, int | float) or not (math.isfinite(score) and 0 <= score <= 1):
        raise HarnessError(
            f"{script} gave a score of {shorten(str(score), 40)}, which is not a number from 0 to 1",
            code="check-script-failed",
        )
    return float(score)


def _build_details(result: dict[str, Any], stderr: str) -> dict[str, Any]:
    """Return the script's details and the rest of its output, in a form that can be stored."""
    details = result.get("details")
    combined = dict(details) if isinstance(details, dict) else {} if details is None else {"details": details}
    combined |= {key: value for key, value in result.items() if key not in _OWN}
    if stderr.strip():
        combined.setdefault("stderr", stderr[-8_000:])
    return make_storable(combined)
