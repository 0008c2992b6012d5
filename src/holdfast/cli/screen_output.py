"""The screen of a command that runs: a terminal, a pipe, JSON, or not at all."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.cli import screen as terminal
from holdfast.model.events import Event, Warned
from holdfast.model.run_warning import RunWarning
from holdfast.report.safe import can_show_signs, unheeded
from holdfast.report.wording import format_warning, plural
from holdfast.runner.job import Job, Listen
from holdfast.store.rundir import RunDir

if TYPE_CHECKING:
    from holdfast.report.live import Live
    from holdfast.runner.outcome import RunOutcome


class Screen:
    """Where a command speaks: a terminal, a pipe, JSON, or not at all."""

    def __init__(
        self, *, as_json: bool = False, quiet: bool = False, verbose: bool = False, silent: bool = False
    ) -> None:
        self._as_json = as_json
        self._quiet = quiet
        self._verbose = verbose
        self._silent = silent
        self._signs = can_show_signs(sys.stdout.encoding)
        self._listen: Listen | None = None
        self._live: Live | None = None
        self._told: set[RunWarning | str] = set()

    @property
    def hears_trials(self) -> bool:
        """Whether single trials are shown, not only warnings."""
        return not (self._as_json or self._silent or self._quiet)

    def listener(self) -> Listen:
        """Hears the run's events; of several runs, the same warning once."""
        heard = self._listener()

        def once(event: Event) -> None:
            if not isinstance(event, Warned) or self._is_new(event.warning):
                heard(event)

        return once

    def _listener(self) -> Listen:
        if not self.hears_trials:
            self._listen = warnings_only
        elif terminal.is_live(sys.stdout):
            from holdfast.report.live import Live

            errors = None if sys.stderr.isatty() else sys.stderr
            color = terminal.wants_color(sys.stderr)
            self._listen = self._live = Live(sys.stdout, color=color, unicode=self._signs, errors=errors)
        else:
            from holdfast.report.progress import Plain

            self._listen = Plain(sys.stdout, unicode=self._signs)
        return self._listen

    def warn(self, warning: RunWarning) -> None:
        if (self._verbose or not warning.ignored) and self._is_new(warning):
            print(format_warning(warning), file=sys.stderr)

    def _is_new(self, warning: RunWarning | str) -> bool:
        """Whether this was not told before."""
        known = warning in self._told
        self._told.add(warning)
        return not known

    def beat(self) -> None:
        """Time has passed, also where nothing has happened."""
        if self._live is not None:
            self._live.tick()

    def close(self) -> None:
        """Takes a live picture away."""
        if self._live is not None:
            self._live.close()

    def heading(self, part: str) -> None:
        """A part of several begins."""
        if self.hears_trials:
            sys.stdout.write(f"\n== {part}\n")
            sys.stdout.flush()

    def part_ended(self, outcome: RunOutcome) -> None:
        """The summary of a part of several; what was noted of an earlier one, too, is not said again."""
        if self.hears_trials:
            notes = tuple(note for note in outcome.run.notes if self._is_new(note))
            self.finish(replace(outcome, run=replace(outcome.run, notes=notes)))

    def finish(self, outcome: RunOutcome) -> None:
        """The summary, or the run as JSON."""
        if self._as_json:
            from holdfast.report.json import Json

            for piece in next(iter(Json().render(outcome.run).values())):
                sys.stdout.write(piece.decode())
            return
        from holdfast.report.terminal import summary

        heard = self._listen is not None  # warnings were told while it ran
        text = summary(
            replace(outcome.run, warnings=()) if heard else outcome.run,
            width=terminal.width(sys.stdout),
            color=terminal.wants_color(sys.stdout),
            verbose=self._verbose,
            quiet=self._quiet,
            unicode=self._signs,
        )
        sys.stdout.write(unheeded(text) if os.environ.get("GITHUB_ACTIONS") == "true" else text)

    def dry_run(self, job: Job, rundir: RunDir | None) -> int:
        """How much would be run: of a run that is taken up, what is missing."""
        from holdfast.runner.dry_run import planned

        plan, counts = job.plan, planned(job, rundir)
        if self._as_json:
            from holdfast.cli.screen import print_document

            print_document({"dry_run": True, "seed": job.spec.seed, **counts})
            return 0
        shape = f"{plural(len(plan.invariants), 'rule')} × {plural(len(plan.scenarios), 'scenario')}"
        users = f", up to {plural(counts['user_calls'], 'call')} of simulated users" if counts["user_calls"] else ""
        print(
            f"{plural(counts['trials'], 'trial')} for {shape} = {plural(counts['cells'], 'cell')}, "
            f"{plural(counts['controls'], 'control trial')}, {plural(counts['judge_calls'], 'judge call')}{users}. "
            "Nothing was run."
        )
        return 0


def warnings_only(event: Event) -> None:
    """Tells what the user must know, and nothing else."""
    if isinstance(event, Warned):
        print(format_warning(event.warning), file=sys.stderr)
