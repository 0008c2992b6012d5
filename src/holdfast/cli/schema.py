"""holdfast schema"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from holdfast.errors import UsageError
from holdfast.folders import OWN
from holdfast.report.formats.files import write_atomically
from holdfast.spec import json_schema
from holdfast.store.rundir import make_own_folder


@click.command(name="schema")
@click.option("-o", "output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write to FILE.")
def command(output: Path | None) -> None:
    """Print the JSON Schema of the spec, for editors; `holdfast init` writes it for you.

    \b
      holdfast schema -o .holdfast/schema.json
      # first line of holdfast.yaml:
      # yaml-language-server: $schema=.holdfast/schema.json
    """
    if output is None:
        sys.stdout.write(_format_schema())
        return
    folder = output.parent.parent if output.parent.name == OWN else output.parent
    if not folder.exists():
        raise UsageError(
            f"cannot write {output}: there is no folder {folder}",
            hint=f"make it: mkdir -p {folder}",
            code="file-unusable",
        )
    try:
        write_schema(output)
    except OSError as refused:
        raise UsageError(f"cannot write {output}: {refused.strerror}", code="file-unusable") from refused
    print(f"wrote {output}")


def write_schema(path: Path) -> None:
    """Write the schema, including every installed plug-in."""
    if path.absolute().parent.name == OWN:
        make_own_folder(path.parent)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, [_format_schema().encode()])


def _format_schema() -> str:
    return json.dumps(json_schema(), indent=1, ensure_ascii=False) + "\n"
