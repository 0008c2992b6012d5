"""`command_exit`: a command in the workspace ends as expected."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from holdfast.checks.state.programs import (
    is_started_by_another,
    not_found,
    not_found_by_make,
    of_workspace,
    programs_in,
    runs_only_our_scripts,
)
from holdfast.checks.state.recorded import record, recorded
from holdfast.checks.wording import shorten
from holdfast.errors import HarnessError
from holdfast.model.fingerprint import fingerprint
from holdfast.model.observation import Observation
from holdfast.model.traits import CheckTraits
from holdfast.model.verdict import Finding
from holdfast.model.world import Evidence
from holdfast.processes.startable import NOT_RUN_CODES
from holdfast.protocols.check import Exhibit
from holdfast.protocols.sandbox import Ran
from holdfast.protocols.world import World
from holdfast.reading.durations import Duration
from holdfast.reading.fields import about

OUTPUT_KEPT = 8_000
"""Bytes of stdout and of stderr that are kept: the last ones, where the failure is."""


class Ended(Struct, frozen=True, omit_defaults=True):
    """How a command ended, and the last that it printed."""

    exit_code: int | None = None
    stdout: str = ""
    stderr: str = ""
    timed_out: bool = False
    signal: int = 0
    duration_ms: float = 0.0
    missing: tuple[str, ...] = ()
    """Programs that it names, that are not there, and that the agent was not to make."""
    behind: tuple[str, ...] = ()
    """The same of those that `make` runs for it."""
    in_our_script: bool = False
    """It could not run a program (126, 127), and its scripts are as they were when the agent started."""


_ELSE = re.compile(r"\|\|\s*([\w./-]+)")
"""The program that a command runs where the one before it failed."""
_NO_WORK = ("exit", "return", "true", "false", "echo", "printf", ":")


@dataclass(frozen=True)
class CommandExit:
    """A command in the workspace ends with the expected exit code.

    It runs in the sandbox when the agent has ended, with the agent's environment; what it writes is thrown away.
    """

    command: Annotated[str, about("Run by sh -c from the workspace.", min_length=1, examples=["python -m pytest -q"])]
    exit_code: Annotated[int, about("The expected exit code.", ge=0, le=255)] = 0
    timeout: Annotated[Duration, about("Over it the check fails.")] = 120_000

    traits: ClassVar[CheckTraits] = CheckTraits(
        polarity="positive",
        reads="state",
        texts=(),
        runs_inside=True,
        shell_setting="command",
        see=("invariants.custom", "invariants.file_content"),
    )
    codes: ClassVar[Mapping[str, str]] = {
        "command-exited": "The command ended by itself; the key has its exit code.",
        "command-killed": "A signal ended the command.",
        "command-timeout": "The command did not end in time.",
    }

    def configured(self) -> CheckTraits:
        return replace(self.traits, programs=self._programs)

    async def gather(self, world: World, seen: Observation) -> Evidence:
        ran = await world.sandbox.run(
            ["/bin/sh", "-c", self.command],
            world.environ,
            timeout_s=self.timeout / 1000,
            keep=OUTPUT_KEPT,
            throwaway=True,
        )
        found = ended(ran)
        if not self._is_expected(found) or set(self._programs) & set(seen.missing_programs):
            found = await self._explained(found, world)
        return record([self.command, self.timeout], found)

    @property
    def _programs(self) -> tuple[str, ...]:
        return programs_in(self.command)

    async def _explained(self, found: Ended, world: World) -> Ended:
        """How it ended, with what it may not have been able to run."""
        missing = await not_found(self._programs, world)
        nested = found.exit_code in NOT_RUN_CODES and not missing and runs_only_our_scripts(self.command, world)
        return replace(
            found,
            missing=tuple(name for name in missing if not of_workspace(name, world)),
            behind=await not_found_by_make(self.command, world),
            in_our_script=nested,
        )

    def _is_expected(self, found: Ended) -> bool:
        return found.exit_code == self.exit_code and not found.timed_out

    def decide(self, exhibit: Exhibit) -> Finding:
        found = recorded(exhibit, [self.command, self.timeout], Ended)
        what = shorten(self.command, 60)
        passed = self._is_expected(found)
        if doubt := self._doubt(found, exhibit.observation.missing_programs):
            return Finding(None, _never_ran(what, doubt, found), "program-missing", (doubt,), details=printed(found))
        if found.timed_out:
            code, key, why = "command-timeout", "", f"{what} did not end within {self.timeout / 1000:g} s"
        elif found.exit_code is None:
            code, key = "command-killed", named(found.signal)
            why = f"{what} was killed by {key}"
        else:
            code, key = "command-exited", str(found.exit_code)
            why = f"{what} exited with {key}" + ("" if passed else f", not {self.exit_code}")
        said = "" if passed else last_line(found.stderr) or last_line(found.stdout)
        ran = found.exit_code is not None and (passed or found.exit_code not in NOT_RUN_CODES) and not found.timed_out
        why += f": {said}" if said else ""
        return Finding(passed, why, code, (key, fingerprint(said)), details=printed(found), empty=not ran)

    def _doubt(self, found: Ended, never_there: tuple[str, ...]) -> str:
        """The program without which the exit code says nothing of the agent; empty if it does.

        HarnessError if it is known that the command could not run. It is not known where the command has a way around
        the program, where it may be one that the agent was to write, and of what scripts and makefiles run.
        """
        absent = [name for name in found.missing if name in never_there]
        if self._is_expected(found):
            # `pytest | tail` ends well without pytest. `uv run pytest || pytest` does not need uv, and a rule that
            # expects 127 asks for its absence.
            ways = [word for word in _ELSE.findall(self.command) if word not in (*_NO_WORK, *absent)]
            needed = self.exit_code not in NOT_RUN_CODES and not ways
            return absent[0] if absent and needed else ""
        if found.timed_out:
            return ""
        programs = [name for name in absent if not is_started_by_another(name)]
        if programs and found.exit_code in NOT_RUN_CODES:
            raise HarnessError(_never_ran(shorten(self.command, 60), programs[0], found))
        unknown = "program for one of its scripts" if found.in_our_script else ""
        return next(iter((*absent, *found.behind)), unknown)


def _never_ran(what: str, program: str, found: Ended) -> str:
    """Why it says nothing of the agent, and what it printed."""
    said = last_line(found.stderr) or last_line(found.stdout)
    ways = "install it, or put it into the world with setup"
    return f"{what} could not run: this world has no {program}; {ways}" + (f" ({said})" if said else "")


def ended(ran: Ran) -> Ended:
    """A command as it is recorded."""
    return Ended(
        exit_code=ran.exit_code,
        stdout=ran.stdout.decode("utf-8", "replace"),
        stderr=ran.stderr.decode("utf-8", "replace"),
        timed_out=ran.timed_out,
        signal=ran.signal,
        duration_ms=round(ran.duration_ms, 1),
    )


def printed(found: Ended) -> dict[str, Any]:
    """What a command printed, for the report."""
    shown = {"exit_code": found.exit_code, "stdout": found.stdout, "stderr": found.stderr}
    return {name: value for name, value in shown.items() if value not in (None, "")}


def last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return shorten(lines[-1].strip(), 100) if lines else ""


def named(number: int) -> str:
    """A signal by its name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}" if number else "a signal"
