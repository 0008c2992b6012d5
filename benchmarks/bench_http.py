"""Trials against an HTTP agent that takes 50 ms, beside a bare aiohttp loop; the two take turns."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import aiohttp
from measure import HOLDFAST, command, limited, project, row

from holdfast.model.events import RunEnded, RunStarted
from holdfast.plan.options import RunOptions
from holdfast.runner.job import Job
from holdfast.runner.run import run
from holdfast.runner.start import begin
from holdfast.spec import load

SERVER = """
import asyncio, sys
from aiohttp import web

async def answer(request):
    asked = (await request.json())["input"]
    await asyncio.sleep(0.05)
    return web.json_response({"output": "source: " + asked})

async def main():
    app = web.Application()
    app.router.add_post("/", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(site._server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""
SPEC = """
agent: {{endpoint: "http://127.0.0.1:{port}/"}}
golden_prompts: ["What was revenue?"]
replicas: {count}
contract: {{name: bench, invariants: [{{id: r, type: contains, value: source, description: x}}]}}
chaos_matrix: [{{name: calm}}]
"""


async def bare(url: str, count: int, at_once: int) -> float:
    left = iter(range(count))
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=at_once)) as session:

        async def slot() -> None:
            for _ in left:
                async with session.post(url, json={"input": "What was revenue?"}) as reply:
                    assert (await reply.json())["output"]

        started = time.perf_counter()
        await asyncio.gather(*(slot() for _ in range(at_once)))
        return count / (time.perf_counter() - started)


def ours(folder: Path, at_once: int, count: int) -> float:
    """The whole loop: executed, stored, judged, tallied; start-up and reports apart."""
    spec, _ = load(folder / "bench.yaml", environ=os.environ)
    job = Job(spec, RunOptions(concurrency=at_once, preflight=False), os.environ)
    times: dict[type, float] = {}
    run(job, begin(job, folder / "runs"), lambda event: times.__setitem__(type(event), time.perf_counter()))
    return count / (times[RunEnded] - times[RunStarted])


def whole(folder: Path, at_once: int, count: int) -> float:
    """The command from its start to its end, reports written."""
    words = [*HOLDFAST, "contract", "run", "-c", "bench.yaml", "--concurrency", str(at_once), "--no-preflight"]
    return count / command(words, folder).wall_s


def main() -> None:
    print("http: trials a second, an agent that takes 50 ms, best of 5 turns each")
    with project({"server.py": SERVER}) as folder:
        server = subprocess.Popen([sys.executable, "server.py"], cwd=folder, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            for at_once, count in ((50, 1000), (200, 4000)):
                (folder / "bench.yaml").write_text(SPEC.format(port=port, count=count))
                compare(folder, f"http://127.0.0.1:{port}/", at_once, count)
        finally:
            server.kill()
            server.wait()


def compare(folder: Path, url: str, at_once: int, count: int) -> None:
    """A bare loop, ours, and the whole command, turn by turn."""
    turns = [
        (asyncio.run(bare(url, count, at_once)), ours(folder, at_once, count), whole(folder, at_once, count))
        for _ in range(5)
    ]
    theirs, loop, all_of_it = (max(rates) for rates in zip(*turns, strict=True))
    row(f"bare aiohttp, {at_once} in flight", f"{theirs:.0f}/s")
    limited(f"trials, {at_once} in flight, of bare", loop / theirs, "{:.2f}", least=0.95, note=f"{loop:.0f}/s")
    # 1,000 trials are over in a second, much of which is start-up: only the longer command has a limit.
    least = 0.8 if count >= 4000 else 0
    name = f"complete command, {count} trials, of bare"
    limited(name, all_of_it / theirs, "{:.2f}", least=least, note=f"{all_of_it:.0f}/s")
