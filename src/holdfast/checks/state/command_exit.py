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
    is_agents_doing,
    is_in_workspace,
    is_started_by_another,
    not_found,
    not_run_in,
    programs_in,
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
    """Programs that it could not run because the world does not have them, which is not the agent's doing."""
    by_agent: bool = False
    """It could not run a program (126, 127) that the agent made or removed, or that a script of the agent's names."""


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
    timeout: Annotated[Duration, about("The time limit; over it the check fails.")] = 120_000

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
        return record([self.command, self.timeout], await self._explained(found, world, seen.missing_programs))

    @property
    def _programs(self) -> tuple[str, ...]:
        return programs_in(self.command)

    async def _explained(self, found: Ended, world: World, never_there: tuple[str, ...]) -> Ended:
        """How it ended, with the programs that it could not run.

        Two things tell: a program of the command that was missing when the agent started, and what the shell, make or
        npm printed. The second also covers functions, `eval`, recipes and scripts, which no reader of the command sees.
        """
        reported = not_run_in(f"{found.stdout}\n{found.stderr}")
        absent = [name for name in self._programs if name in never_there and not is_in_workspace(name, world)]
        gone = await not_found(dict.fromkeys([*absent, *(one.program for one in reported)]), world)
        # One that was there at the start is gone by the agent's doing, wherever it was.
        removed = set(self._programs) & set(gone) - set(never_there)
        agents = removed | {one.program for one in reported if is_agents_doing(one, world)}
        named = [*absent, *(one.program for one in reported if one.certain)]
        missing = tuple(name for name in gone if name in named and name not in agents)
        could_not_run = found.exit_code in NOT_RUN_CODES
        return replace(found, missing=missing, by_agent=could_not_run and bool(agents) and not missing)

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

        HarnessError if the command itself names a program that was never there, and could not run. It is only likely
        where the command has a way around the program, where the agent may have been asked to write it, and of what
        scripts and makefiles run.
        """
        absent = found.missing
        if self._is_expected(found):
            # `pytest | tail` ends well without pytest. `uv run pytest || pytest` does not need uv, and a rule that
            # expects 127 asks for its absence.
            ways = [word for word in _ELSE.findall(self.command) if word not in (*_NO_WORK, *absent)]
            needed = self.exit_code not in NOT_RUN_CODES and not ways
            return absent[0] if absent and needed else ""
        if found.timed_out:
            return ""
        if found.exit_code not in NOT_RUN_CODES:
            return absent[0] if absent else ""
        known = [name for name in absent if name in never_there and name in self._programs]
        programs = [name for name in known if not is_started_by_another(name)]
        if programs:
            raise HarnessError(_never_ran(shorten(self.command, 60), programs[0], found), code="check-program-missing")
        return "" if found.by_agent else next(iter(absent), "program that it needs")


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
