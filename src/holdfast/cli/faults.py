"""holdfast faults"""

from __future__ import annotations

import click

from holdfast.cli import options as shared


@click.command(name="faults")
@shared.as_json
def command(as_json: bool) -> None:
    """List every fault with its settings (* required), and the built-in profiles.

    \b
      holdfast faults
      holdfast faults --json
    """
    from holdfast.cli.catalogue import show
    from holdfast.faults import profiles

    families = [
        ("faults.tool", "tool_faults: on tools, by their name or URL"),
        ("faults.llm", "llm_faults: on the model's replies, at the wire or in a model function"),
        ("faults.mcp", "mcp_faults: on MCP servers"),
        ("faults.http", "http_faults: on HTTP calls, by their URL"),
        ("faults.service", "service_faults: on connections to services, and on transactions of databases"),
        ("faults.world", "world_faults: on the agent's files, clock and processes"),
        ("faults.context", "context_attacks: on the input and on tool results"),
    ]
    show(families, as_json=as_json)
    if as_json:
        return
    print("Every fault also takes probability, after_calls, times, every, on_call, match;")
    print("those of the world take after_ms or on_event instead.\n")
    print("profiles: --profile NAME, or `profile:` in a scenario")
    names = profiles.names()
    for name in names:
        print(f"  {name:<{max(map(len, names))}}  {str(profiles.load(name).get('description', '')).strip()}")
