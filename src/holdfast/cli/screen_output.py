"""The output of a running command: a terminal, a pipe, JSON, or none."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.cli import screen as terminal
from holdfast.model.codes import STATEFUL, RunWarning
from holdfast.model.events import CostEstimated, Event, WarningIssued
from holdfast.model.spec import Part
from holdfast.report.calls import describe_estimate
from holdfast.report.safe import escape_commands, get_painter
from holdfast.report.terminal.progress import Plain
from holdfast.report.terminal.summary import NOTES, format_details, format_summary
from holdfast.report.wording import format_count, format_warning
from holdfast.runner.job import Job, Listen, count_planned

if TYPE_CHECKING:
    from holdfast.report.terminal.live import Live
    from holdfast.runner.outcome import RunOutcome


class Screen:
    """The output of a command: a terminal, a pipe, JSON, or none."""

    def __init__(
        self, *, as_json: bool = False, quiet: bool = False, verbose: bool = False, silent: bool = False
    ) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self.verbose = verbose
        self._silent = silent
        self._listener: Live | Plain | None = None
        self._warnings: list[RunWarning] = []
        """Held back until the failures are shown."""
        self._known: set[RunWarning | str] = set()

    @property
    def hears_trials(self) -> bool:
        """Whether single trials are shown, not only warnings."""
        return not (self.as_json or self._silent or self.quiet)

    def build_listener(self) -> Listen:
        """Return a listener for a run's events. A warning that several runs share is shown once."""
        listener = self._listener = self._make_listener() if self.hears_trials else None

        def listen(event: Event) -> None:
            if isinstance(event, WarningIssued):
                self.warn(event.warning)
            elif isinstance(event, CostEstimated):
                if not (self._silent or self.quiet):
                    print(f"cost: {describe_estimate(event.estimate)}", file=sys.stderr, flush=True)
            elif listener is not None:
                listener(event)

        return listen

    def _make_listener(self) -> Live | Plain:
        if terminal.is_live(sys.stdout):
            from holdfast.report.terminal.live import Live

            return Live(sys.stdout, color=terminal.should_use_color(sys.stdout))
        return Plain(sys.stdout, verbose=self.verbose)

    def warn(self, warning: RunWarning) -> None:
        """Print a warning below the failures, or immediately if no failures are shown."""
        if (warning.ignored and not self.verbose) or not self._is_new(warning):
            return
        if self.hears_trials:
            self._warnings.append(warning)
        else:
            print(format_warning(warning), file=sys.stderr)

    def _is_new(self, text: RunWarning | str) -> bool:
        is_known = text in self._known
        self._known.add(text)
        return not is_known

    def tick(self) -> None:
        """Update the display; called regularly, even if nothing has happened."""
        if self._listener is not None:
            self._listener.tick()

    def close(self) -> None:
        """Close the live display and print what was held back."""
        if self._listener is not None:
            self._listener.close()
        self._print_warnings()

    def _print_warnings(self) -> None:
        """Print at most three warnings, or all with -v. The report has all of them."""
        held, self._warnings = self._warnings, []
        sys.stdout.flush()
        most = len(held) if self.verbose or len(held) <= NOTES else NOTES - 1
        # Document 001 asks for the warning about state whatever else there is to say.
        printed = sorted(held, key=lambda one: one.code != STATEFUL)[:most]
        for warning in printed:
            print(format_warning(warning), file=sys.stderr)
        if len(held) > len(printed):
            print(
                f"warning: {format_count(len(held) - len(printed), 'more warning')}: -v, or the report", file=sys.stderr
            )

    def print_heading(self, part: Part) -> None:
        """Print the heading of a part."""
        if self.hears_trials:
            self._write(f"\n== {part}\n")
            sys.stdout.flush()

    def print_part(self, outcome: RunOutcome, heading: Part | None = None) -> None:
        """Print the failures of a part and its matrix, under its heading; nothing if there is nothing to explain."""
        is_needed = outcome.score.exit_code != 0 or self.verbose
        if not self.hears_trials or not is_needed:
            return
        if heading is not None:
            self.print_heading(heading)
        paint = get_painter(terminal.should_use_color(sys.stdout))
        width = terminal.get_width(sys.stdout)
        lines = format_details(outcome.run, width, paint, verbose=self.verbose)
        self._write("\n".join(lines) + "\n")

    def finish(self, outcome: RunOutcome) -> None:
        """Print the summary, or the run as JSON."""
        if self.as_json:
            from holdfast.report.formats.json import Json

            for piece in next(iter(Json().render(outcome.run).values())):
                sys.stdout.write(piece.decode())
            return
        run = outcome.run
        if self._listener is not None or self.quiet:  # then warnings have a place of their own
            run = replace(run, warnings=tuple(one for one in run.warnings if one.ignored and not self.verbose))
        text = format_summary(
            run,
            width=terminal.get_width(sys.stdout),
            color=terminal.should_use_color(sys.stdout),
            verbose=self.verbose,
            quiet=self.quiet,
            most_notes=max(1, NOTES - len(self._warnings)),
        )
        self._write(text)
        self._print_warnings()

    def _write(self, text: str) -> None:
        sys.stdout.write(escape_commands(text) if os.environ.get("GITHUB_ACTIONS") == "true" else text)

    def print_dry_run(self, job: Job) -> int:
        """Print how many trials would run; for a resumed run, how many are missing."""
        plan, counts = job.plan, count_planned(job)
        if self.as_json:
            terminal.print_document({"dry_run": True, "seed": job.spec.seed, **counts})
            return 0
        shape = f"{format_count(len(plan.invariants), 'rule')} × {format_count(len(plan.scenarios), 'scenario')}"
        users = (
            f", up to {format_count(counts['user_calls'], 'call')} of simulated users" if counts["user_calls"] else ""
        )
        judges = format_count(counts["judge_calls"], "judge call")
        print(
            f"{format_count(counts['trials'], 'trial')} for {shape} = {format_count(counts['cells'], 'cell')}, "
            f"{format_count(counts['controls'], 'control trial')}, {judges}{users}. Nothing was run."
        )
        return 0
