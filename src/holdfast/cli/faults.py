"""holdfast faults"""

from __future__ import annotations

import click

from holdfast.cli import options as shared


@click.command(name="faults")
@click.argument("name", required=False, shell_complete=shared.complete_from("faults"))
@shared.as_json
def command(name: str | None, as_json: bool) -> None:
    """List every fault with its settings (* required) and the built-in profiles, or describe one.

    \b
      holdfast faults
      holdfast faults lost_reply
      holdfast faults llm_faults.timeout
      holdfast faults --json
    """
    from holdfast.cli.catalogue import show

    show("fault", name, as_json=as_json)
    if as_json or name is not None:
        return
    from holdfast.faults import profiles

    print("Every fault also takes probability, after_calls, times, every, on_call, match;")
    print("those of the world take after_ms or on_event instead. holdfast faults NAME describes one in full.\n")
    print("profiles: --profile NAME, or `profile:` in a scenario")
    names = profiles.list_profiles()
    for profile in names:
        description = str(profiles.load_profile(profile).get("description", "")).strip()
        print(f"  {profile:<{max(map(len, names))}}  {description}")
