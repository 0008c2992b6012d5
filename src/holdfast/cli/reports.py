"""The reports of a run: files that were asked for, the page, and what a GitHub Actions step shows."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.errors import HoldfastError
from holdfast.model.run import Overall, Run
from holdfast.model.score import Score
from holdfast.report.formats.files import get_reporter, get_suffix, write
from holdfast.report.safe import to_one_line
from holdfast.report.wording import format_verdict
from holdfast.runner.job import Job
from holdfast.score.resilience import BROKEN

if TYPE_CHECKING:
    from holdfast.protocols.reporter import Reporter
    from holdfast.runner.outcome import RunOutcome


def write_reports(
    outcome: RunOutcome, outputs: Sequence[Path] = (), declared: Mapping[Path, str] = {}, *, step_summary: bool = False
) -> RunOutcome:
    """Write the reports and return the outcome, with any errors: a report that fails does not hide the verdict.

    Each entry of `declared` has its format.
    """
    if outcome.run.page:
        trouble = _try_write_report(outcome, Path(outcome.run.page))
        if trouble:
            print(f"warning: {trouble}", file=sys.stderr)
            outcome = replace(outcome, run=replace(outcome.run, page=""))
    reports = [(path, None) for path in outputs] + [(path, get_reporter(by)) for path, by in declared.items()]
    missing = [trouble for path, by in reports if (trouble := _try_write_report(outcome, path, by))]
    if step_summary and os.environ.get("GITHUB_STEP_SUMMARY"):
        from holdfast.report.formats.markdown import Markdown

        append_summary(next(iter(Markdown().render(outcome.run).values())))
    return replace(outcome, unwritten=tuple(missing))


def write_all_reports(outcome: RunOutcome, job: Job, outputs: Sequence[Path] = ()) -> RunOutcome:
    """Write the reports of a command's only run, also the one that the spec's `output:` section declares."""
    return write_reports(outcome, outputs, _get_declared_report(job, outcome.run), step_summary=True)


def _try_write_report(outcome: RunOutcome, path: Path, by: Reporter | None = None) -> str:
    """Write a report, and return the error message if that fails."""
    try:
        write(outcome.run, path, by)
    except HoldfastError as refused:
        return to_one_line(str(refused))
    return ""


def _get_declared_report(job: Job, run: Run) -> dict[Path, str]:
    """Return the report that the spec's `output:` section declares, with its format."""
    output = job.spec.output
    if not output or output["format"] == "terminal":
        return {}
    suffix = get_suffix(output["format"])
    name = output.get("filename_template") or "holdfast-{run}"
    started = run.started.replace(":", "-")
    filled = name.replace("{run}", run.id.replace("/", "-")).replace("{timestamp}", started)
    filled = filled.replace("{date}", started[:10]).replace("{time}", started[11:19])
    path = Path(job.spec.path).parent / output["path"] / filled
    return {path if path.suffix == suffix else path.with_name(path.name + suffix): output["format"]}


def report_unwritten(outcome: RunOutcome) -> int:
    """Print reports that could not be written, and return the exit code: not 0 if one is missing."""
    return print_missing(outcome.unwritten, outcome.score.exit_code)


def print_missing(missing: Sequence[str], exit_code: int = 0) -> int:
    """Print why reports are missing, and return the exit code, which is then not 0."""
    for trouble in missing:
        print(f"error: {trouble}", file=sys.stderr)
    return exit_code or (BROKEN if missing else 0)


def append_summary(rendered: Iterable[bytes]) -> None:
    """Append to the summary of a GitHub Actions step. Errors are ignored: the verdict does not depend on it."""
    path = os.environ["GITHUB_STEP_SUMMARY"]
    try:
        with open(path, "ab") as file:
            file.writelines(rendered)
    except OSError as refused:
        print(f"warning: cannot write {to_one_line(path)}: {refused.strerror}", file=sys.stderr)


def report_step(runs: Iterable[Run], result: Score | Overall, run_id: str, *, annotations: bool) -> None:
    """Report a result to a GitHub Actions step: annotations at lines of the spec, and the step's outputs.

    With `annotations` they are printed elsewhere, too, on stderr: the runner also reads that, and stdout may be JSON.
    """
    is_step = os.environ.get("GITHUB_ACTIONS") == "true"
    if is_step or annotations:
        from holdfast.report.formats.line_remarks import format_commands

        for line in (line for run in runs for line in format_commands(run)):
            print(line, file=sys.stderr)
    path = os.environ.get("GITHUB_OUTPUT")
    if not is_step or not path:
        return
    score = result.score if isinstance(result, Overall) else result.value
    value = "" if score is None else f"{score:.2f}"
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"score={value}\nverdict={format_verdict(result)}\nrun={run_id}\n")
    except OSError as refused:
        print(f"warning: cannot write GITHUB_OUTPUT: {refused.strerror}", file=sys.stderr)
