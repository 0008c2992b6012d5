"""holdfast promote TRIAL"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli import options as shared

if TYPE_CHECKING:
    from holdfast.model.session import RecordedSession
    from holdfast.store.rundir import RunDir


@click.command(name="promote")
@shared.runs_option
@click.argument("trial")
@click.argument("run", default="latest", shell_complete=shared.suggest("runs"))
@click.option("--force", is_flag=True, help="Overwrite a session file that is there.")
def command(trial: str, run: str, force: bool) -> int:
    """Make a failed trial a session that the spec replays from now on.

    The session goes into replays/ beside the spec, and its name into replays.sessions: only lines are added there.

    \b
      holdfast promote 7f3a2c91d044
      holdfast promote 7f3a 0007
    """
    from msgspec.structs import replace

    from holdfast.cli.replay_sessions import FOLDER
    from holdfast.errors import UsageError
    from holdfast.replay.session_file import write_sessions
    from holdfast.runner.outcome import shown_path
    from holdfast.runner.start import runs_dir
    from holdfast.store.rundir import RunDir

    if not trial:
        raise UsageError("which trial?", hint="its id, or how that begins: the report has it")
    found = RunDir.find(runs_dir(), run)
    session = replace(_session(found, trial), contract="")
    spec = found.manifest().original
    folder = (spec.parent if spec.is_file() else Path.cwd()) / FOLDER
    files = write_sessions((session,), folder, force=force)
    print(f"{shown_path(files.all[0])} replays trial {session.id}")
    _add(spec, files.all[0], by_hand=bool(found.manifest().built))
    return 0


def _session(run: RunDir, trial: str) -> RecordedSession:
    """The session of the one failed trial that is meant; UsageError if none or several are."""
    import sys

    from holdfast.errors import UsageError
    from holdfast.replay.stored_run import run_sessions
    from holdfast.report.safe import one_line

    found = run_sessions(run, run.path, environ=os.environ, failed_only=True, trial=trial)
    if len(found.sessions) == 1:
        for note in found.notes:
            print(f"note: {one_line(note)}", file=sys.stderr)
        return found.sessions[0]
    if found.sessions:
        ids = ", ".join(one.id for one in found.sessions[:8])
        raise UsageError(f"more than one failed trial of run {run.id} begins with {trial}", hint=f"there are: {ids}")
    if found.left_out:
        raise UsageError(f"trial {found.left_out[0].name} becomes no session: {found.left_out[0].why}")
    failed = run_sessions(run, run.path, environ=os.environ, failed_only=True).sessions
    hint = f"those that failed: {', '.join(one.id for one in failed[:8])}" if failed else "no trial of it failed"
    raise UsageError(f"run {run.id} has no failed trial {trial}", hint=hint)


def _add(spec: Path, session: Path, *, by_hand: bool) -> None:
    """Adds the session to the spec; where that takes more than new lines, or it is Python code, says what to write."""
    from holdfast.replay.spec_edit import with_session
    from holdfast.runner.outcome import shown_path

    name = Path(os.path.relpath(session, spec.parent)).as_posix()
    text = spec.read_bytes().decode("utf-8", "replace") if spec.is_file() and not by_hand else ""
    made = with_session(text, name) if text else None
    if made is None:
        print(f"Add it to {shown_path(spec)} by hand:\n\nreplays:\n  sessions:\n    - file: {name}")
    elif made == text:
        print(f"{shown_path(spec)} names it already")
    else:
        temporary = spec.with_name(spec.name + ".new")
        temporary.write_bytes(made.encode())
        temporary.replace(spec)
        print(f"{shown_path(spec)}: added to replays.sessions")
