"""Makes the calls of a file one by one. A failed call is made again in a new session, as a careful client does."""

import asyncio
import json
import sys
from pathlib import Path

from mcp import Client, StdioServerParameters

TRIES, SECONDS = 3, 10


async def main(config: str, calls: str) -> int:
    (server,) = json.loads(Path(config).read_text())["mcpServers"].values()
    waiting = [(call["tool"], call["arguments"]) for call in json.loads(Path(calls).read_text())]
    tries = 0
    while waiting and tries < TRIES:
        tries += 1
        try:
            await make(StdioServerParameters(**server), waiting)
        except Exception as error:  # whatever went wrong, the next try has a new session
            print(f"{waiting[0][0]}, try {tries}: {error!r}")
    print(f"{len(waiting)} calls had no answer" if waiting else "all calls were answered")
    return bool(waiting)


async def make(server: StdioServerParameters, waiting: list) -> None:
    """Make the remaining calls in one session, and remove from the list those that got a result."""
    async with Client(server) as client:
        while waiting:
            tool, arguments = waiting[0]
            async with asyncio.timeout(SECONDS):
                result = await client.call_tool(tool, arguments)
            if result.is_error:
                raise RuntimeError(result.content[0].text)
            print(f"{tool}: {result.content[0].text}")
            del waiting[0]


sys.exit(asyncio.run(main(*sys.argv[1:3])))
