"""holdfast shell"""

from __future__ import annotations

from pathlib import Path

import click


@click.command(name="shell", context_settings={"ignore_unknown_options": True})
@click.argument("trial", required=False)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def command(trial: str | None, words: tuple[str, ...]) -> int:
    """Look into the world of a trial that failed, if the run was made with --keep.

    A new sandbox is opened on the workspace that the agent left, with its environment less its secrets. Its services
    are gone; what they held is in /kept/services, the logs are in /kept. What you change there is not kept.

    \b
      holdfast shell              which trials there are
      holdfast shell 3f2a         a shell
      holdfast shell 3f2a ls -l   one command
    """
    import asyncio

    from holdfast.world.keeping import KEPT, kept_worlds

    if trial is None:
        for folder in kept_worlds(KEPT):
            print(folder.name)
        return 0
    folder = _chosen(trial, kept_worlds(KEPT))
    from holdfast.world.visit import visit

    return asyncio.run(visit(folder, words))


def _chosen(trial: str, kept: list[Path]) -> Path:
    """The kept world that is meant; UsageError if none or several are."""
    from holdfast.errors import UsageError

    found = [folder for folder in kept if folder.name == trial] or [f for f in kept if f.name.startswith(trial)]
    if len(found) == 1:
        return found[0]
    hint = f"there are: {', '.join(folder.name for folder in kept[:20])}" if kept else "run with --keep first"
    raise UsageError(f"{'no' if not found else 'more than one'} kept world is called {trial}", hint=hint)
