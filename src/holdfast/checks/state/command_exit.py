"""`command_exit`: a command in the workspace ends as expected."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from holdfast.checks.state import programs
from holdfast.checks.state.recorded import build_evidence, read_evidence
from holdfast.checks.wording import shorten
from holdfast.errors import HarnessError
from holdfast.model.fingerprint import compute_fingerprint
from holdfast.model.observation import Observation
from holdfast.model.traits import CheckTraits
from holdfast.model.verdict import Finding
from holdfast.model.world import Evidence
from holdfast.processes.startable import NOT_RUN_CODES, SHELL
from holdfast.protocols.check import Exhibit
from holdfast.protocols.sandbox import CommandResult
from holdfast.protocols.world import World
from holdfast.reading.bash_syntax import explain_bash_only, find_bash_features
from holdfast.reading.durations import Duration
from holdfast.reading.fields import about

OUTPUT_KEPT = 8_000
"""Maximum number of bytes of stdout and of stderr: the last ones, where the failure is."""
_SYNTAX_ERROR = 2
"""The exit code of a shell that cannot parse its command; other programs use it, too."""


class ExitRecord(Struct, frozen=True, omit_defaults=True):
    """The exit of a command, and the end of its output."""

    exit_code: int | None = None
    stdout: str = ""
    stderr: str = ""
    timed_out: bool = False
    signal: int = 0
    duration_ms: float = 0.0
    missing: tuple[str, ...] = ()
    """Programs that the command or its scripts run and that are missing, if it ended neither with 126 nor with 127."""
    not_run: programs.NotRun = programs.NotRun()
    """The program that it could not run, if it ended with 126 or 127."""


@dataclass(frozen=True)
class CommandExit:
    """A command in the workspace ends with the expected exit code.

    It runs in the sandbox when the agent has ended, with the agent's environment; what it writes is thrown away.
    """

    command: Annotated[str, about("Run by sh -c from the workspace.", min_length=1, examples=["python -m pytest -q"])]
    exit_code: Annotated[int, about("The expected exit code.", ge=0, le=255)] = 0
    timeout: Annotated[Duration, about("The time limit; a longer run fails.")] = 120_000

    traits: ClassVar[CheckTraits] = CheckTraits(
        polarity="positive",
        reads="state",
        texts=(),
        runs_inside=True,
        shell_setting="command",
        see=("invariants.custom", "invariants.file_content"),
    )
    codes: ClassVar[Mapping[str, str]] = {
        "command-exited": "The command exited; the key has its exit code.",
        "command-killed": "A signal ended the command.",
        "command-timeout": "The command did not end in time.",
    }

    def configured(self) -> CheckTraits:
        return replace(self.traits, programs=self._programs)

    async def gather(self, world: World, observation: Observation) -> Evidence:
        ran = await world.sandbox.run(
            [SHELL, "-c", self.command],
            world.environ,
            timeout_s=self.timeout / 1000,
            keep=OUTPUT_KEPT,
            throwaway=True,
        )
        return build_evidence(
            [self.command, self.timeout],
            await self._add_missing_programs(to_exit_record(ran), world, observation.missing_programs),
        )

    @property
    def _programs(self) -> tuple[str, ...]:
        return programs.list_programs(self.command)

    async def _refuse_unreadable(self, world: World) -> None:
        """Raise HarnessError if sh cannot parse the command: no agent can change that."""
        ran = await world.sandbox.run(
            [SHELL, "-n", "-c", self.command], world.environ, timeout_s=20, keep=OUTPUT_KEPT, throwaway=True
        )
        if ran.exit_code:
            why = get_last_line(ran.stderr.decode("utf-8", "replace"))
            raise HarnessError(f"sh cannot read {shorten(self.command, 60)}: {why}", code="check-command-unreadable")

    async def _add_missing_programs(self, ended: ExitRecord, world: World, never_there: tuple[str, ...]) -> ExitRecord:
        """Return how it ended, with the programs that it could not run."""
        # sh exits with 2 if it cannot read the command, but so do many programs: only a trial run tells them apart.
        if ended.exit_code == _SYNTAX_ERROR and not find_bash_features(self.command):
            await self._refuse_unreadable(world)
        output = f"{ended.stdout}\n{ended.stderr}"
        not_run = await programs.find_program_not_run(self.command, ended.exit_code, output, world, never_there)
        if not_run.exit_code is not None:
            return replace(ended, not_run=not_run)
        absent = [name for name in self._programs if name in never_there and not programs.is_in_workspace(name, world)]
        missing = await programs.find_missing_programs(absent, world)
        if not missing and ended.exit_code is not None:
            passed = ended.exit_code == self.exit_code
            missing = await programs.find_missing_in_scripts(self.command, world, passed=passed)
        return replace(ended, missing=missing)

    def decide(self, exhibit: Exhibit) -> Finding:
        ended = read_evidence(exhibit, [self.command, self.timeout], ExitRecord)
        what = shorten(self.command, 60)
        passed = ended.exit_code == self.exit_code and not ended.timed_out
        # An expected exit code counts whatever was missing. Otherwise a missing program explains the result before the
        # code.
        meaning = "by exit code" if passed else programs.interpret_exit(ended.not_run)
        if meaning == "error":
            raise HarnessError(
                _explain_missing_program(what, ended.not_run.program, ended), code="check-program-missing"
            )
        if meaning == "unproven":
            why = f"{what} exited with {ended.exit_code}, but no program is known to be missing"
            return Finding(None, why, "program-missing", (str(ended.exit_code),), details=build_output_details(ended))
        if (
            ended.missing
            and not ended.timed_out
            and not programs.has_another_way(self.command, ended.missing, passed=passed)
        ):
            program = programs.strip_changes(ended.missing[0])
            why = _explain_missing_program(what, program, ended)
            return Finding(None, why, "program-missing", (program,), details=build_output_details(ended))
        if ended.timed_out:
            code, key, why = "command-timeout", "", f"{what} did not end within {self.timeout / 1000:g} s"
        elif ended.exit_code is None:
            code, key = "command-killed", get_signal_name(ended.signal)
            why = f"{what} was killed by {key}"
        else:
            code, key = "command-exited", str(ended.exit_code)
            why = f"{what} exited with {key}" + ("" if passed else f", not {self.exit_code}")
        output = "" if passed else get_last_line(ended.stderr) or get_last_line(ended.stdout)
        ran = ended.exit_code is not None and (passed or ended.exit_code not in NOT_RUN_CODES) and not ended.timed_out
        why += f": {output}" if output else ""
        return Finding(
            passed, why, code, (key, compute_fingerprint(output)), details=build_output_details(ended), empty=not ran
        )


def _explain_missing_program(what: str, program: str, ended: ExitRecord) -> str:
    """Return why the result says nothing about the agent, and the output."""
    output = get_last_line(ended.stderr) or get_last_line(ended.stdout)
    missing = f"the sandbox has no {program}; install it on this machine, or in the sandbox with setup"
    why = explain_bash_only(program) or missing
    return f"{what} could not run: {why}" + (f" ({output})" if output else "")


def to_exit_record(ran: CommandResult) -> ExitRecord:
    """Convert the end of a command to its record."""
    return ExitRecord(
        exit_code=ran.exit_code,
        stdout=ran.stdout.decode("utf-8", "replace"),
        stderr=ran.stderr.decode("utf-8", "replace"),
        timed_out=ran.timed_out,
        signal=ran.signal,
        duration_ms=round(ran.duration_ms, 1),
    )


def build_output_details(ended: ExitRecord) -> dict[str, Any]:
    """Return the output of a command, for the report."""
    details = {"exit_code": ended.exit_code, "stdout": ended.stdout, "stderr": ended.stderr}
    return {name: value for name, value in details.items() if value not in (None, "")}


def get_last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return shorten(lines[-1].strip(), 100) if lines else ""


def get_signal_name(number: int) -> str:
    """Return the name of a signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}" if number else "a signal"
