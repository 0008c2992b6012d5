"""holdfast validate"""

from __future__ import annotations

from pathlib import Path

import click

from holdfast.api.config_file import find_config
from holdfast.cli import options as shared


@click.command(name="validate")
@shared.add_config
@shared.as_json
def command(config: Path | None, as_json: bool) -> int:
    """Check a spec of either spelling; run nothing.

    \b
      holdfast validate
      holdfast validate specs/renewal.yaml --json
    """
    from holdfast.cli.check_file import check_file

    return check_file(find_config(config), as_json=as_json, contract=False)
