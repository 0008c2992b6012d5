"""Sources of sessions and the folder they are written to: shared by `replay` and `promote`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from holdfast.errors import UsageError, UserError
from holdfast.folders import find_config, get_runs_folder
from holdfast.model.codes import RunWarning
from holdfast.model.session import SessionSource
from holdfast.model.spec import Spec
from holdfast.reading.file import read_file
from holdfast.reading.tree import parse
from holdfast.replay.derived_spec import derive_spec
from holdfast.replay.foreign_trace import SessionsFound
from holdfast.replay.formats import TraceFormat, import_file
from holdfast.replay.langsmith import fetch_sessions
from holdfast.replay.session_file import write_sessions
from holdfast.replay.session_list import list_sessions, read_path
from holdfast.replay.stored_run import merge_sessions, read_run_sessions
from holdfast.report.safe import to_one_line
from holdfast.report.wording import format_count
from holdfast.spec import LoadOptions, load
from holdfast.spec.sections.run import parse_range
from holdfast.store.rundir import RunDir

F = TypeVar("F", bound=Callable[..., Any])

FORMATS = ("langsmith", "otlp", "langfuse", "phoenix", "inspect", "jsonl", "holdfast")
FOLDER = Path("replays")
"""The folder of sessions next to a spec."""
_TRACE_FILES = frozenset({".eval", ".json", ".jsonl", ".ndjson", ".yaml", ".yml"})
"""Names with these endings are files, not runs."""


def add_langsmith_options(command: F) -> F:
    """Add the options that select a LangSmith run or project and its traces."""
    for option in reversed(
        [
            click.option("--from-langsmith", "run_id", metavar="ID", help="Import a LangSmith run."),
            click.option("--from-langsmith-project", "project", metavar="NAME", help="Import traces of a project."),
            click.option("--filter-status", "status", type=click.Choice(["error", "warning", "all"]), default="error",
                         show_default=True, help="For a project: status of the traces."),
            click.option("--date-range", default="last_7_days", show_default=True, metavar="RANGE",
                         help="For a project: last_N_days, last_N_hours, or all."),
            click.option("--min-latency-ms", type=click.FloatRange(0), default=0.0, metavar="MS",
                         help="For a project: minimum duration of a trace."),
            click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, metavar="N",
                         help="For a project: maximum number of traces."),
        ]
    ):  # fmt: skip
        command = option(command)
    return command


LANGSMITH = ("run_id", "project", "status", "date_range", "min_latency_ms", "limit")
"""The parameter names of the LangSmith options."""


def read_langsmith_options(
    *, run_id: str | None, project: str | None, date_range: str, **more: Any
) -> SessionSource | None:
    """Read the LangSmith options; None if none is given."""
    if run_id is not None and project is not None:
        raise UsageError("--from-langsmith and --from-langsmith-project cannot be combined", code="options-conflict")
    try:
        parse_range(date_range)
    except ValueError as wrong:
        raise UsageError(f"--date-range: {wrong}", code="argument-invalid") from wrong
    if run_id is not None:
        return SessionSource(run=run_id)
    return None if project is None else SessionSource(project=project, date_range=date_range, **more)


class ChosenSessions:
    """The sessions to replay, and their spec."""

    def __init__(self, path: Path | None, config: Path | None, live: bool) -> None:
        self._live = live
        self.path = path
        """The file or folder of the sessions; None if they are in the spec."""
        self.spec = config
        self._found: SessionsFound | None = None
        if path is not None and _is_spec(path):
            if config is not None and config != path:
                raise UsageError(f"two specs: {path} and -c {config}", hint="name one of them", code="options-conflict")
            self.spec, self.path = path, None

    def fetch(self, source: SessionSource, outputs: tuple[Path, ...], *, force: bool, quiet: bool) -> tuple[Path, ...]:
        """Import the sessions into the folder among the outputs; the other outputs are reports."""
        if self.path is not None:
            raise UsageError(
                f"{self.path} and LangSmith cannot be combined", hint="name one of them", code="options-conflict"
            )
        folders = [one for one in outputs if one.is_dir() or not one.suffix]
        if len(folders) > 1:
            raise UsageError(
                f"two folders for sessions: {folders[0]} and {folders[1]}",
                hint="name one of them",
                code="options-conflict",
            )
        self._found, self.path = import_from_langsmith([source]), folders[0] if folders else FOLDER
        write_and_report(self._found, self.path, force=force, quiet=quiet)
        return tuple(one for one in outputs if one not in folders)

    def derive_spec(self, spec: Spec, environ: Mapping[str, str]) -> tuple[Spec, tuple[RunWarning, ...]]:
        """Derive the spec that replays the sessions, with warnings."""
        if self._found is not None:
            listed = SessionsFound(self._found.sessions)
        elif self.path is not None:
            listed = SessionsFound(read_path(self.path))
        else:
            listed = list_sessions(spec, environ, datetime.now(UTC))
        return derive_spec(spec, listed, live=self._live)


def import_source(source: str, format: TraceFormat | None, folder: Path) -> SessionsFound:
    """Import a file by its format, or a run by its folder, its id or `latest`."""
    if Path(source).is_file():
        return import_file(Path(source), format)
    if Path(source).suffix in _TRACE_FILES and not Path(source).exists():
        raise UsageError(f"there is no file {source}", hint="name a file of traces, or a run", code="file-missing")
    if format not in (None, "holdfast"):
        raise UsageError(f"there is no file {source}", hint=f"--format {format} reads a file", code="file-missing")
    return read_run_sessions(RunDir.find(get_runs_folder(), source), folder, environ=os.environ, failed_only=False)


def import_from_langsmith(sources: Iterable[SessionSource]) -> SessionsFound:
    """Fetch the sessions of all sources now."""
    return merge_sessions(fetch_sessions(one, os.environ, datetime.now(UTC)) for one in sources)


def read_spec_sources(config: Path | None) -> tuple[SessionSource, ...]:
    """Read the sources that the spec names."""
    spec, _ = load(find_config(config), environ=os.environ, options=LoadOptions(part="replay"))
    if spec.replays is None or not spec.replays.sources:
        hint = "name a file or a run, or --from-langsmith ID, or --from-langsmith-project NAME"
        raise UsageError(f"nothing to import: {spec.path} has no replays.sources", hint=hint, code="nothing-to-import")
    return spec.replays.sources


def write_and_report(imported: SessionsFound, folder: Path, *, force: bool, quiet: bool = False) -> int:
    """Write the sessions and print the result for each; raise UserError if none is left."""
    for one in imported.left_out:
        print(f"left out: {to_one_line(one.name)}: {to_one_line(one.why)}", file=sys.stderr)
    for note in imported.notes:
        print(f"note: {to_one_line(note)}", file=sys.stderr)
    if not imported.sessions:
        count = format_count(len(imported.left_out), "trace")
        why = f"all {count} left out" if imported.left_out else "no trace was found"
        raise UserError(f"{why}: no session was written", code="nothing-to-import")
    files = write_sessions(imported.sessions, folder, force=force)
    if not quiet:
        same = f", {len(files.unchanged)} unchanged" if files.unchanged else ""
        skipped = f", {format_count(len(imported.left_out), 'trace')} left out" if imported.left_out else ""
        print(f"{format_count(len(files.all_files), 'session')} in {folder}{same}{skipped}")
    return 0


def _is_spec(path: Path) -> bool:
    """Return whether a file is a spec rather than a session: it has an agent."""
    if not path.is_file():
        return False
    root, _ = parse(read_file(path).text)
    return root is not None and root.kind == "map" and root.has("agent")
