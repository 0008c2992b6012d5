"""Opens an agent that Holdfast starts itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.model.spec import AgentSpec

if TYPE_CHECKING:
    from holdfast.agents.command import CommandAgent
    from holdfast.agents.instance import OpenAddress
    from holdfast.agents.launched import LaunchedHttpAgent


async def open_launched(
    agent: AgentSpec, root: Path, environ: Mapping[str, str], limit: int, open_address: OpenAddress
) -> CommandAgent | LaunchedHttpAgent:
    """The agent of a section whose references are resolved, for up to `limit` trials at once.

    `environ` is the user's environment; `moor` opens an address for each instance. AgentUnavailable if it cannot be
    started. Its `limit` says how many trials it can really run at once, its `notes` why.
    """
    if agent.type == "command":
        from holdfast.agents.command import CommandAgent

        return CommandAgent(agent, root, environ, open_address)
    from holdfast.agents.launched import LaunchedHttpAgent

    return await LaunchedHttpAgent.open(agent, root, environ, limit, open_address)
