"""holdfast mcp-proxy"""

from __future__ import annotations

import click


@click.command(name="mcp-proxy", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--name", default="", help="Name of the server in faults and reports. Default: its command.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True)
def command(name: str, command: tuple[str, ...]) -> int:
    """Run an MCP server over stdio, with Holdfast between it and its client.

    Put it before the server's own command in the client's configuration. During a trial every message passes through
    Holdfast; at any other time the server runs unchanged. agent.mcp_config does this for you.

    \b
      holdfast mcp-proxy -- npx -y @modelcontextprotocol/server-filesystem .
      holdfast mcp-proxy --name files -- my-server --verbose
    """
    from holdfast.planes.mcp import relay

    return relay.main(["--name", name, "--", *command])
