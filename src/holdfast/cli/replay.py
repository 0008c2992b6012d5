"""holdfast replay run | import | export"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from holdfast.cli import options as shared
from holdfast.cli.main import USAGE
from holdfast.cli.replay_sessions import (
    FOLDER,
    FORMATS,
    LANGSMITH,
    ChosenSessions,
    add_langsmith_options,
    import_from_langsmith,
    import_source,
    read_langsmith_options,
    read_spec_sources,
    write_and_report,
)
from holdfast.cli.run_job import run_and_show
from holdfast.cli.screen import print_document, show_problems
from holdfast.errors import UsageError
from holdfast.folders import get_runs_folder
from holdfast.model.codec import to_builtins
from holdfast.replay.session_list import UnreadableSessions
from holdfast.replay.stored_run import read_report_sessions, read_run_sessions
from holdfast.store.rundir import RunDir

_FOLDER = click.option(
    "-o", "--output", "folder", type=shared.FILE, default=FOLDER, show_default=True, metavar="DIR",
    help="Folder for the session files.",
)  # fmt: skip
_FORCE = click.option("--force", is_flag=True, help="Overwrite existing session files.")


@click.group(name="replay", cls=shared.CommandGroup)
def command() -> None:
    """Replay recorded sessions, import them from traces, export failed trials.

    \b
      holdfast replay run
      holdfast replay import traces.json -o replays
      holdfast replay export --from-report latest -o replays
    """


@command.command(cls=shared.HeadedCommand)
@click.argument("path", required=False, type=click.Path(path_type=Path))
@add_langsmith_options
@click.option("--run", "run_now", is_flag=True, help="Also run the sessions imported from LangSmith.")
@click.option("--live", is_flag=True, help="Forward calls that are not in the recording.")
@shared.add(shared.config_option, *shared.RUN_OPTIONS, *shared.OUTPUT_OPTIONS)
def run(
    path: Path | None, config: Path | None, outputs: tuple[Path, ...], run_now: bool, live: bool, as_json: bool,
    **raw_options: Any,
) -> int:  # fmt: skip
    """Replay the sessions of a file, of a folder, or of the spec, and judge each by its contract.

    Without PATH: the sessions of the spec. Sessions imported from LangSmith are written to the folder given by -o
    (default: replays), and replayed with --run.

    \b
      holdfast replay run
      holdfast replay run replays/incident-42.yaml
      holdfast replay run replays -c finance.yaml --live
      holdfast replay run --from-langsmith-project support --filter-status error -o replays --run
    """
    source = read_langsmith_options(**{name: raw_options.pop(name) for name in LANGSMITH})
    if raw_options["resume"] is not None and (path is not None or source is not None):
        raise UsageError(
            "a resumed run keeps its sessions", hint="remove the sessions from the command", code="options-conflict"
        )
    chosen = ChosenSessions(path, config, live)
    if source is not None:
        outputs = chosen.fetch(source, outputs, force=raw_options["force"], quiet=as_json and run_now)
        if not run_now:
            return 0
    place = None if chosen.path is None else chosen.path.absolute()
    try:
        return run_and_show(
            part="replay", config=chosen.spec, outputs=outputs, as_json=as_json, make=chosen.derive_spec,
            sessions=place, live=live, **raw_options,
        )  # fmt: skip
    except UnreadableSessions as broken:
        return _show_each(broken, as_json)


@command.command(name="import")
@click.argument("source", required=False)
@click.option("--format", type=click.Choice(FORMATS), help="Format of SOURCE. Default: detected.")
@add_langsmith_options
@_FOLDER
@_FORCE
@shared.config_option
@shared.runs_option
def import_(source: str | None, format: Any, folder: Path, force: bool, config: Path | None, **langsmith: Any) -> int:
    """Convert traces to session files: a file, a stored run, LangSmith, or the sources of the spec.

    \b
      holdfast replay import traces.json -o replays
      holdfast replay import spans.jsonl --format phoenix
      holdfast replay import 0007
      holdfast replay import --from-langsmith-project support --filter-status error --date-range last_24_hours
    """
    source_options = read_langsmith_options(**langsmith)
    if source is not None and source_options is not None:
        raise UsageError(f"{source} and LangSmith cannot be combined", hint="name one of them", code="options-conflict")
    if source is not None:
        return write_and_report(import_source(source, format, folder), folder, force=force)
    if format is not None:
        raise UsageError("--format requires a SOURCE", hint="name a file", code="option-inapplicable")
    sources = (source_options,) if source_options is not None else read_spec_sources(config)
    return write_and_report(import_from_langsmith(sources), folder, force=force)


@command.command()
@click.option("--from-report", "report", required=True, metavar="FILE|RUN",
              help="A JSON report, or a run: its id, its folder, or latest.")  # fmt: skip
@_FOLDER
@_FORCE
@shared.runs_option
def export(report: str, folder: Path, force: bool) -> int:
    """Convert every failed trial to a session with its prompt, its tool results and the reason why it failed.

    \b
      holdfast replay export --from-report latest -o replays
      holdfast replay export --from-report report.json
    """
    if Path(report).is_file():
        sessions = read_report_sessions(Path(report), get_runs_folder(), folder, environ=os.environ)
    else:
        sessions = read_run_sessions(
            RunDir.find(get_runs_folder(), report), folder, environ=os.environ, failed_only=True
        )
    if not sessions.sessions and not sessions.left_out:
        print("no trial failed: there is nothing to export")
        return 0
    return write_and_report(sessions, folder, force=force)


def _show_each(broken: UnreadableSessions, as_json: bool) -> int:
    """Show the problems of every session file."""
    if as_json:
        errors = [{"file": one.file, **to_builtins(p)} for one in broken.files for p in one.problems]
        document = {"score": None, "passed": False, "exit_code": USAGE, "errors": errors}
        print_document(document)
        return USAGE
    for one in broken.files:
        show_problems(one.file, one.source, one.problems, as_json=False, ran=one is not broken.files[-1])
    return USAGE
