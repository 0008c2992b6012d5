"""Reads a run from disk as it ended."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from holdfast.model.codes import RunNote
from holdfast.plan import build_plan
from holdfast.runner.outcome import RunOutcome, conclude
from holdfast.runner.start import load_stored_spec
from holdfast.score import Tally
from holdfast.store.replay import replay_verdicts
from holdfast.store.rundir import RunDir, RunEnd
from holdfast.store.seal_check import check


def load_run(run: RunDir, *, environ: Mapping[str, str]) -> RunOutcome:
    """Return the run with its score, from its stored files; an unfinished run as far as it got."""
    manifest = run.read_manifest()
    warning = check(run)
    spec, _ = load_stored_spec(run, manifest, None, environ)
    made = build_plan(spec, manifest.options.select, sequential=manifest.options.auto)
    tally = Tally(spec, made)
    replay_verdicts(run, made, tally, keep_errors=True)
    page = run.path / "report.html"
    ended = run.read_end() or RunEnd(False, 0.0)
    ended = replace(ended, notes=(*ended.notes, RunNote("unsealed", warning))) if warning else ended
    return conclude(run, spec, made, tally, manifest.options, ended=ended, page=page if page.exists() else None)
