"""holdfast replay run | import | export"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from holdfast.cli import options as shared

if TYPE_CHECKING:
    from holdfast.model.session import SessionSource
    from holdfast.model.spec import Spec
    from holdfast.replay.session_list import UnreadableSessions
    from holdfast.replay.stored_run import SessionsFound

F = TypeVar("F", bound=Callable[..., Any])

FORMATS = ("langsmith", "otlp", "langfuse", "phoenix", "jsonl", "holdfast")
FOLDER = Path("replays")
"""Where sessions are kept beside a spec."""


def _langsmith_options(command: F) -> F:
    for option in reversed(
        [
            click.option("--from-langsmith", "langsmith_run", metavar="ID", help="Import a LangSmith run."),
            click.option("--from-langsmith-project", "project", metavar="NAME", help="Import traces of a project."),
            click.option("--filter-status", "status", type=click.Choice(["error", "warning", "all"]), default="error",
                         show_default=True, help="Of a project: how the traces ended."),
            click.option("--date-range", default="last_7_days", show_default=True, metavar="RANGE",
                         help="Of a project: last_N_days, last_N_hours, or all."),
            click.option("--min-latency-ms", type=click.FloatRange(0), default=0.0, metavar="MS",
                         help="Of a project: only traces that took as long."),
            click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, metavar="N",
                         help="Of a project: the most traces."),
        ]
    ):  # fmt: skip
        command = option(command)
    return command


@click.group(name="replay")
def command() -> None:
    """Replay recorded sessions, import them from traces, export failed trials.

    \b
      holdfast replay run
      holdfast replay import traces.json -o replays
      holdfast replay export --from-report latest -o replays
    """


@command.command()
@click.argument("path", required=False, type=click.Path(path_type=Path))
@_langsmith_options
@click.option("--run", "run_now", is_flag=True, help="Run what was imported from LangSmith, too.")
@click.option("--live", is_flag=True, help="Let calls through that a recording does not know.")
@shared.run_options_beside
@shared.output_options
def run(
    path: Path | None, config: Path | None, outputs: tuple[Path, ...], run_now: bool, live: bool, as_json: bool,
    langsmith_run: str | None, project: str | None, status: Any, date_range: str, min_latency_ms: float, limit: int,
    **given: Any,
) -> int:  # fmt: skip
    """Replay the sessions of a file, of a folder, or of the spec; each is held to its contract.

    Without PATH: the sessions of the spec. What is imported from LangSmith is written into the folder given by -o
    (default: replays), and run if --run is there.

    \b
      holdfast replay run
      holdfast replay run replays/incident-42.yaml
      holdfast replay run replays -c finance.yaml --live
      holdfast replay run --from-langsmith-project support --filter-status error -o replays --run
    """
    from holdfast.cli.run_job import run_and_show
    from holdfast.errors import UsageError
    from holdfast.replay.session_list import UnreadableSessions

    source = _source(langsmith_run, project, status, date_range, min_latency_ms, limit)
    if given["resume"] is not None and (path is not None or source is not None):
        raise UsageError("a run that is taken up has its sessions", hint="leave out what is named beside --resume")
    chosen = _Chosen(path, config, live)
    try:
        if source is not None:
            outputs = chosen.fetch(source, outputs, tell=not as_json)
            if not run_now:
                return 0
        return run_and_show(
            part="replay",
            config=chosen.spec,
            outputs=outputs,
            as_json=as_json,
            make=chosen.made,
            sessions=chosen.path and chosen.path.absolute(),
            live=live,
            **given,
        )
    except UnreadableSessions as broken:
        return _show_each(broken, as_json)


class _Chosen:
    """Which sessions are replayed, with which spec."""

    def __init__(self, path: Path | None, config: Path | None, live: bool) -> None:
        from holdfast.errors import UsageError

        self._live = live
        self.path = path
        self.spec = config
        self._found: SessionsFound | None = None
        if path is not None and _is_spec(path):
            if config is not None and config != path:
                raise UsageError(f"two specs: {path} and -c {config}", hint="name one of them")
            self.spec, self.path = path, None

    def fetch(self, source: SessionSource, outputs: tuple[Path, ...], *, tell: bool) -> tuple[Path, ...]:
        """Imports; the outputs that are left are reports."""
        from holdfast.errors import UsageError
        from holdfast.replay.langsmith_api import fetched

        if self.path is not None:
            raise UsageError(f"{self.path} and LangSmith exclude each other", hint="name one of them")
        folders = [one for one in outputs if one.is_dir() or not one.suffix]
        if len(folders) > 1:
            raise UsageError(f"two folders for sessions: {folders[0]} and {folders[1]}", hint="name one of them")
        found = fetched(source, os.environ, datetime.now(UTC))
        self._found, self.path = found, folders[0] if folders else FOLDER
        _keep(found, self.path, force=True, tell=tell)
        return tuple(one for one in outputs if one not in folders)

    def made(self, spec: Spec, environ: Mapping[str, str]) -> tuple[Spec, tuple[str, ...]]:
        from holdfast.replay.made import replayed
        from holdfast.replay.session_list import ListedSessions, sessions_in, sessions_of

        if self._found is not None:
            listed = ListedSessions(self._found.sessions)
        elif self.path is not None:
            listed = ListedSessions(sessions_in(self.path))
        else:
            listed = sessions_of(spec, environ, datetime.now(UTC))
        return replayed(spec, listed, live=self._live)


@command.command(name="import")
@click.argument("source", required=False)
@click.option("--format", type=click.Choice(FORMATS), help="What SOURCE is; guessed if not given.")
@_langsmith_options
@click.option("-o", "--output", "folder", type=click.Path(path_type=Path), default=FOLDER, show_default=True,
              metavar="DIR", help="Where the session files go.")  # fmt: skip
@click.option("--force", is_flag=True, help="Overwrite session files that are there.")
@shared.config_option
def import_(
    source: str | None, format: Any, folder: Path, force: bool, config: Path | None,
    langsmith_run: str | None, project: str | None, status: Any, date_range: str, min_latency_ms: float, limit: int,
) -> int:  # fmt: skip
    """Make session files of traces: a file, a stored run, LangSmith, or the sources of the spec.

    \b
      holdfast replay import traces.json -o replays
      holdfast replay import spans.jsonl --format phoenix
      holdfast replay import 0007
      holdfast replay import --from-langsmith-project support --filter-status error --date-range last_24_hours
    """
    from holdfast.errors import UsageError

    asked = _source(langsmith_run, project, status, date_range, min_latency_ms, limit)
    if source is not None and asked is not None:
        raise UsageError(f"{source} and LangSmith exclude each other", hint="name one of them")
    if source is not None:
        found = _from_source(source, format, folder)
    elif format is not None:
        raise UsageError("--format says what SOURCE is, and none is named", hint="name a file")
    else:
        found = _from_langsmith((asked,) if asked is not None else _spec_sources(config))
    return _keep(found, folder, force=force)


@command.command()
@click.option("--from-report", "report", required=True, metavar="FILE|RUN",
              help="A JSON report, or a run: its id, its folder, or latest.")  # fmt: skip
@click.option("-o", "--output", "folder", type=click.Path(path_type=Path), default=FOLDER, show_default=True,
              metavar="DIR", help="Where the session files go.")  # fmt: skip
@click.option("--force", is_flag=True, help="Overwrite session files that are there.")
def export(report: str, folder: Path, force: bool) -> int:
    """Make every failed trial a session: what was asked, what its tools gave, why it failed.

    \b
      holdfast replay export --from-report latest -o replays
      holdfast replay export --from-report report.json
    """
    from holdfast.replay.stored_run import report_sessions, run_sessions
    from holdfast.runner.start import RUNS
    from holdfast.store.rundir import RunDir

    path = Path(report)
    if path.is_file():
        found = report_sessions(path, RUNS, folder, environ=os.environ)
    else:
        found = run_sessions(RunDir.find(RUNS, report), folder, environ=os.environ, failed_only=True)
    if not found.sessions and not found.left_out:
        print("no trial failed: there is nothing to export")
        return 0
    return _keep(found, folder, force=force)


def _from_source(source: str, format: Any, folder: Path) -> SessionsFound:
    """A file by its format; a run by its folder, its id or `latest`."""
    from holdfast.replay.formats import imported
    from holdfast.replay.stored_run import run_sessions
    from holdfast.runner.start import RUNS
    from holdfast.store.rundir import RunDir

    path = Path(source)
    if path.is_file():
        return imported(path, format)
    if format not in (None, "holdfast"):
        from holdfast.errors import UsageError

        raise UsageError(f"there is no file {source}", hint=f"--format {format} is of a file")
    return run_sessions(RunDir.find(RUNS, source), folder, environ=os.environ, failed_only=False)


def _from_langsmith(sources: Iterable[SessionSource]) -> SessionsFound:
    from holdfast.replay.formats import gathered
    from holdfast.replay.langsmith_api import fetched

    return gathered(fetched(one, os.environ, datetime.now(UTC)) for one in sources)


def _spec_sources(config: Path | None) -> tuple[SessionSource, ...]:
    from holdfast.errors import UsageError
    from holdfast.spec import load

    spec, _ = load(shared.find_config(config), environ=os.environ, part="replay")
    if spec.replays is None or not spec.replays.sources:
        hint = "name a file or a run, or --from-langsmith ID, or --from-langsmith-project NAME"
        raise UsageError(f"nothing to import: {spec.path} has no replays.sources", hint=hint)
    return spec.replays.sources


def _source(
    run: str | None, project: str | None, status: Any, date_range: str, min_latency_ms: float, limit: int
) -> SessionSource | None:
    from holdfast.errors import UsageError
    from holdfast.model.session import SessionSource
    from holdfast.spec.session_forms import range_seconds

    if run is not None and project is not None:
        raise UsageError("--from-langsmith and --from-langsmith-project exclude each other")
    try:
        range_seconds(date_range)
    except ValueError as wrong:
        raise UsageError(f"--date-range: {wrong}") from wrong
    if run is not None:
        return SessionSource(run=run)
    if project is None:
        return None
    return SessionSource("" if project is None else project, "", status, date_range, min_latency_ms, limit=limit)


def _keep(found: SessionsFound, folder: Path, *, force: bool, tell: bool = True) -> int:
    """Writes the sessions and says what became of all; UserError if none is left."""
    from holdfast.errors import UserError
    from holdfast.replay.session_file import write_sessions
    from holdfast.report.safe import one_line
    from holdfast.report.wording import plural

    for one in found.left_out:
        print(f"left out: {one_line(one.name)}: {one_line(one.why)}", file=sys.stderr)
    for note in found.notes:
        print(f"note: {one_line(note)}", file=sys.stderr)
    if not found.sessions:
        what = f"all {plural(len(found.left_out), 'trace')} left out" if found.left_out else "no trace was found"
        raise UserError(f"{what}: no session was written")
    files = write_sessions(found.sessions, folder, force=force)
    if tell:
        same = f", {len(files.unchanged)} there already" if files.unchanged else ""
        skipped = f", {plural(len(found.left_out), 'trace')} left out" if found.left_out else ""
        print(f"{plural(len(files.all), 'session')} in {folder}{same}{skipped}")
    return 0


def _is_spec(path: Path) -> bool:
    """Whether a file is a spec and not a session: it has an agent."""
    from holdfast.reading.file import read_file
    from holdfast.reading.tree import parse

    if not path.is_file():
        return False
    root, _ = parse(read_file(path).text)
    return root is not None and root.kind == "map" and root.has("agent")


def _show_each(broken: UnreadableSessions, as_json: bool) -> int:
    """All that is wrong with every session file."""
    from holdfast.cli.main import USAGE
    from holdfast.cli.problems import show_problems
    from holdfast.model.codec import encode, to_builtins

    if as_json:
        errors = [{"file": one.file, **to_builtins(p)} for one in broken.files for p in one.problems]
        document = {"score": None, "passed": False, "exit_code": USAGE, "errors": errors}
        sys.stdout.write(encode(document).decode() + "\n")
        return USAGE
    for one in broken.files:
        show_problems(one.file, one.source, one.problems, as_json=False, ran=one is not broken.files[-1])
    return USAGE
