"""The LLM gateway beside a direct connection: the same client and the same upstream, the two take turns."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import uvloop
from byte_proxy import byte_proxy
from measure import limited, own_cpu, project, row

from holdfast.execute.context import LiveContext
from holdfast.model.model_spec import ModelSpec
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.spec import AgentSpec
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.planes.site_planes import PlaneSettings, SitePlanes

HERE = Path(__file__).parent
DIRECT, THROUGH, BYTES = 0, 1, 2
CALLS = 1500
"""Of one round: an agent that calls more often than any."""
CALM = Scenario("calm")
HIT = Scenario("hit", injections=(Injection("llm", "*", "truncated_response"),))
"""Every reply is read, changed and written again."""


async def measured(folder: Path, upstream: int) -> None:
    base = f"http://127.0.0.1:{upstream}/v1"
    models = {"*": ModelSpec("openai", base_url=base)}
    site_planes = SitePlanes(PlaneSettings(AgentSpec(type="command", command="x"), folder, dict(os.environ), models))
    address = await site_planes.open_address()
    passed = await byte_proxy(upstream)
    bytes_port = passed.sockets[0].getsockname()[1]
    urls = [
        f"{base}/chat/completions",
        f"{address.url}/openai/v1/chat/completions",
        f"http://127.0.0.1:{bytes_port}/v1/chat/completions",
    ]
    client = await asyncio.create_subprocess_exec(
        sys.executable, str(HERE / "gateway_client.py"), *urls, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )

    async def ask(name: str, which: int, *args: int, scenario: Scenario = CALM) -> Any:
        """One round of the client, as one trial: an agent of a few hundred calls."""
        assert client.stdin is not None
        assert client.stdout is not None
        trial = Trial(f"{time.monotonic_ns() % 16**12:012x}", "contract", scenario, Task(("q",)))
        with address.serve_trial(LiveContext(trial)):
            client.stdin.write((json.dumps([name, which, *args]) + "\n").encode())
            await client.stdin.drain()
            return json.loads(await client.stdout.readline())

    async def pairs(name: str, rounds: int, *args: int) -> list[tuple[float, float]]:
        return [(await ask(name, DIRECT, *args), await ask(name, THROUGH, *args)) for _ in range(rounds)]

    async def cpu(which: int, scenario: Scenario) -> tuple[float, float]:
        """CPU that this process spends on a call, and calls a second."""
        before = own_cpu()
        rate = await ask("rate", which, CALLS, 32, scenario=scenario)
        return (own_cpu() - before) / CALLS, rate

    try:
        await pairs("p50", 1, 200)
        rounds = await pairs("p50", 5, 300)
        direct, added = median(d for d, _ in rounds), median(t - d for d, t in rounds)
        row("direct, one at a time, p50", f"{direct:.2f} ms")
        limited("gateway adds, p50", added, "{:.2f} ms", most=0.4)
        rounds = await pairs("first_byte", 5, 60)
        limited("first byte of a stream comes later by", median(t - d for d, t in rounds), "{:.2f} ms", most=2)
        rounds, spent, bare, hit = [], [], [], []
        for _ in range(5):
            theirs = await ask("rate", DIRECT, CALLS, 32)
            bare.append((await cpu(BYTES, CALM))[0])
            cost, ours = await cpu(THROUGH, CALM)
            spent.append(cost)
            rounds.append((theirs, ours))
            hit.append((await cpu(THROUGH, HIT))[0])
        theirs, ours = max(d for d, _ in rounds), max(t for _, t in rounds)
        row("direct, 32 in flight", f"{theirs:.0f}/s")
        limited("gateway, 32 in flight", ours, "{:.0f}/s", least=8000, note=f"{ours / theirs:.2f} of direct")
        row("CPU of a byte proxy per call", f"{min(bare) * 1e6:.0f} µs", "two sockets and Python, nothing read")
        ratio = f"{min(spent) / min(bare):.1f} byte proxies"
        limited("CPU of the gateway per call", min(spent) * 1e6, "{:.0f} µs", most=130, note=ratio)
        ratio = f"{min(hit) / min(bare):.1f} byte proxies"
        limited("CPU of the gateway per call that a fault hits", min(hit) * 1e6, "{:.0f} µs", most=330, note=ratio)
        whole = await ask("streams", DIRECT, 1, 50)
        many = await ask("streams", THROUGH, 500, 50)
        lost = "none" if many["digests"] == whole["digests"] and many["count"] == 500 else "SOME"
        row("500 streams at once: bytes lost", lost, f"{many['s']:.1f} s for 50 chunks each, 20 ms apart")
    finally:
        client.kill()
        await client.wait()
        passed.close()
        await address.close()
        await site_planes.close()


def main() -> None:
    print("gateway: an untouched call through it beside a direct one; client and upstream are processes of their own")
    words = [sys.executable, str(HERE / "gateway_upstream.py")]
    with project({}) as folder, subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            upstream = int(server.stdout.readline())
            for name, factory in (("asyncio's own loop", None), ("uvloop", uvloop.new_event_loop)):
                print(f"  on {name}")
                with asyncio.Runner(loop_factory=factory) as runner:
                    runner.run(measured(folder, upstream))
        finally:
            server.kill()
