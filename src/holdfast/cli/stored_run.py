"""Showing a run that is stored: shared by `show` and `report`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from holdfast.store.rundir import RunDir, under_way


def show_stored(
    run: RunDir, outputs: Sequence[Path], *, as_json: bool = False, quiet: bool = False, verbose: bool = False
) -> int:
    """Writes the reports that are asked for; shows the run where none is, or as JSON. The exit code of the command."""
    from msgspec.structs import replace

    from holdfast.cli.screen_output import Screen
    from holdfast.report.files import reporter, write
    from holdfast.runner.stored import look

    if run.manifest().parts:
        return _show_whole(run, outputs, as_json=as_json, quiet=quiet)
    for path in outputs:
        reporter(path)
    with closing(look(run, environ=os.environ)) as outcome:
        if under_way(run):
            outcome = replace(outcome, run=replace(outcome.run, running=True))
        for path in outputs:
            write(outcome.run, path)
        if not outputs or as_json:
            Screen(as_json=as_json, quiet=quiet, verbose=verbose).finish(outcome)
    return 0


def _show_whole(run: RunDir, outputs: Sequence[Path], *, as_json: bool, quiet: bool) -> int:
    """A run of several parts."""
    from holdfast.api.whole_run import look_whole
    from holdfast.cli.whole_run import show_overall, write_overall
    from holdfast.report.whole_files import check_output

    for path in outputs:
        check_output(path)
    with closing(look_whole(run)) as found:
        missing = write_overall(found, outputs, report=False)
        if not outputs or as_json:
            page = run.path / "report.html"
            show_overall(found, as_json=as_json, quiet=quiet, page=found.shown_page if page.is_file() else "")
    for trouble in missing:
        print(f"error: {trouble}", file=sys.stderr)
    return 3 if missing else 0
