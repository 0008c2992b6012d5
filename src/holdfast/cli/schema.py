"""holdfast schema"""

from __future__ import annotations

import sys

import click


@click.command(name="schema")
def command() -> None:
    """Print the JSON Schema of the spec, for editors.

    \b
      holdfast schema > holdfast.schema.json
      # first line of holdfast.yaml:
      # yaml-language-server: $schema=holdfast.schema.json
    """
    import json

    from holdfast.spec import json_schema

    sys.stdout.write(json.dumps(json_schema(), indent=2) + "\n")
