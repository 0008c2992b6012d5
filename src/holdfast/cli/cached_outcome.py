"""`--cached`: reuse a stored run instead of running again. Every report says so."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from holdfast.folders import get_runs_folder
from holdfast.model.codes import RunNote
from holdfast.runner.job import Job
from holdfast.runner.outcome import RunOutcome, load_run
from holdfast.runner.past.cached import (
    digest_files,
    find_cached_run,
    find_changed_variables,
    list_variables,
    refuse_uncacheable,
)
from holdfast.store.run_folders import list_stored_files


def find_cached_outcome(job: Job, outputs: Sequence[Path]) -> tuple[RunOutcome | None, str]:
    """Return the stored run that a new one would repeat, if there is one, and the digest that identifies a new run.

    Both are empty if the spec names variables: their values may be secret, and no run stores them. UsageError if
    Holdfast cannot know whether anything changed.
    """
    refuse_uncacheable(job.spec, job.options)
    variables = ", ".join(dict.fromkeys(list_variables(job)))
    if variables:
        print(f"--cached: every trial runs, because {variables} may have a different value today", file=sys.stderr)
        return None, ""
    runs = get_runs_folder(job.spec.file)
    files = digest_files(job, [*outputs, *list_stored_files(runs)])
    run = find_cached_run(runs, job, files)
    if run is None:
        changed = ", ".join(find_changed_variables(runs, job))
        if changed:
            print(f"--cached: every trial runs, because these variables changed: {changed}", file=sys.stderr)
        return None, files
    outcome = load_run(run, environ=os.environ)
    summary = f"cached: run {run.id} of {outcome.run.started[:16].replace('T', ' ')} UTC, no trial ran"
    print(summary, file=sys.stderr)
    note = RunNote("cached", f"{summary}; models and services may answer differently today")
    return replace(outcome, run=replace(outcome.run, notes=(*outcome.run.notes, note))), files
