"""holdfast doctor | verify"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import click

from holdfast.api.job import choose_part, load_part
from holdfast.cli import options as shared
from holdfast.cli.screen import get_width, print_document, should_use_color
from holdfast.doctor.diagnose import ExaminedSpec, TellFindings, examine, examine_agent
from holdfast.errors import UsageError
from holdfast.folders import DEFAULT_FILES, find_config
from holdfast.plan import RunOptions
from holdfast.report.terminal.diagnosis import Diagnosis, DoctorFinding, Sheet, build_document


@click.command(name="doctor")
@shared.add_config
@shared.runs_option
@click.option("--replay", type=shared.FILE, metavar="FILE", help="Answer model calls from FILE.")
@click.option("--no-agent", is_flag=True, help="Do not start or call the agent.")
@shared.as_json
def doctor_command(config: Path | None, replay: Path | None, no_agent: bool, as_json: bool) -> int:
    """Check whether this machine can inject every fault of the spec, and call the agent once.

    \b
      holdfast doctor
      holdfast doctor finance.yaml --no-agent

    Exit codes: 0 every fault can be injected, 3 something is missing here, 4 the spec is invalid.
    """
    case = _load_examined_spec(config, replay, not no_agent)
    alone = "" if case else f"There is no {' or '.join(DEFAULT_FILES)} here, so only the machine was checked.\n"
    return show_findings(lambda tell: examine(case, os.environ, tell), alone, as_json=as_json)


def show_findings(
    examine: Callable[[TellFindings], Coroutine[Any, Any, Diagnosis]], before_verdict: str = "", *, as_json: bool
) -> int:
    """Print each part as soon as it is known, then the verdict. Return the exit code."""
    if as_json:
        diagnosis = asyncio.run(examine(lambda *_: None))
        print_document(build_document(diagnosis))
        return diagnosis.exit_code
    out = sys.stdout
    sheet = Sheet(get_width(out), color=should_use_color(out))

    def tell(title: str, about: str, findings: Sequence[DoctorFinding], notes: Sequence[str]) -> None:
        sys.stdout.write(sheet.format_part(title, about, findings, notes) + "\n")
        sys.stdout.flush()

    diagnosis = asyncio.run(examine(tell))
    sys.stdout.write(before_verdict + sheet.format_verdict(diagnosis))
    return diagnosis.exit_code


def _load_examined_spec(config: Path | None, replay: Path | None, ask: bool) -> ExaminedSpec | None:
    """Load the spec to examine together with the machine; None if none is named and none is in this folder."""
    try:
        path = find_config(config)
    except UsageError:
        return None
    spec, problems = load_part(path, RunOptions(part=choose_part(path, RunOptions())))
    return ExaminedSpec(spec, problems, os.environ, replay, ask)


@click.command(name="verify")
@shared.add_config
@shared.runs_option
@shared.as_json
def verify_command(config: Path | None, as_json: bool) -> int:
    """Send the first prompt to the agent once, without faults.

    \b
      holdfast verify finance.yaml

    Exit codes: 0 it answers, 3 it does not, 4 the spec is broken.
    """
    spec, problems = load_part(find_config(config), RunOptions(part="verify"))
    case = ExaminedSpec(spec, problems, os.environ, None, ask=True)
    return show_findings(lambda tell: examine_agent(case, os.environ, tell), as_json=as_json)
