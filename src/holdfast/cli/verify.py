"""holdfast verify"""

from __future__ import annotations

import os
from pathlib import Path

import click

from holdfast.api.config_file import find_config
from holdfast.api.job import load_part
from holdfast.cli import options as shared
from holdfast.cli.doctor import show_findings
from holdfast.doctor.diagnose import ExaminedSpec, examine_agent
from holdfast.plan import RunOptions


@click.command(name="verify")
@shared.add_config
@shared.runs_option
@shared.as_json
def command(config: Path | None, as_json: bool) -> int:
    """Send the first prompt to the agent once, without faults.

    \b
      holdfast verify finance.yaml

    Exit codes: 0 it answers, 3 it does not, 4 the spec is broken.
    """
    spec, problems = load_part(find_config(config), RunOptions(part="verify"))
    case = ExaminedSpec(spec, problems, os.environ, None, ask=True)
    return show_findings(lambda tell: examine_agent(case, os.environ, tell), as_json=as_json)
