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

from measure import project, row

from holdfast.execute.trial import Voyage
from holdfast.model.spec import AgentSpec, ModelSpec, Scenario, Task
from holdfast.model.trial import Trial
from holdfast.planes.harbour import Chart, Harbour

UPSTREAM = """
import asyncio, json
from holdfast.planes.http1.server import serve

REPLY = json.dumps({"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0,
    "message": {"role": "assistant", "content": "Revenue was up, according to the report. " * 5},
    "finish_reason": "stop"}], "usage": {"prompt_tokens": 12, "completion_tokens": 40, "total_tokens": 52}}).encode()
CHUNK = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}

def event(delta, finish=None):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({**CHUNK, "choices": [choice]}).encode() + b"\\n\\n"

async def answer(exchange):
    asked = json.loads(await exchange.body())
    if not asked.get("stream"):
        await exchange.respond(200, (("content-type", "application/json"),), REPLY)
        return
    await exchange.start(200, (("content-type", "text/event-stream"),))
    for n in range(asked["chunks"]):
        await exchange.write(event({"content": f"word{n:04d} "}))
        if asked["pause"]:
            await asyncio.sleep(asked["pause"])
    await exchange.write(event({}, "stop") + b"data: [DONE]\\n\\n")
    await exchange.finish()

async def main():
    listener = await serve(answer)
    print(listener.port, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""
CLIENT = """
import asyncio, hashlib, json, sys, time
from statistics import median
from holdfast.planes.http1.client import Upstreams

def body(**more):
    asked = [{"role": "user", "content": "What was the revenue?"}]
    return json.dumps({"model": "m", "messages": asked, **more}).encode()

HEADERS = (("content-type", "application/json"), ("authorization", "Bearer k"))

async def call(up, url):
    reply = await up.send("POST", url, HEADERS, body())
    data = await reply.read()
    assert reply.status == 200 and b"Revenue" in data, (reply.status, data)

async def p50(up, url, times):
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        await call(up, url)
        taken.append(time.perf_counter() - began)
    return median(taken) * 1000

async def rate(up, url, times, at_once):
    left = iter(range(times))
    async def slot():
        for _ in left:
            await call(up, url)
    began = time.perf_counter()
    await asyncio.gather(*(slot() for _ in range(at_once)))
    return times / (time.perf_counter() - began)

async def first_byte(up, url, times):
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        reply = await up.send("POST", url, HEADERS, body(stream=True, chunks=20, pause=0.001))
        async for _ in reply.chunks():
            taken.append(time.perf_counter() - began)
            break
        reply.abort()
    return median(taken) * 1000

async def streams(up, url, count, chunks):
    async def one():
        reply = await up.send("POST", url, HEADERS, body(stream=True, chunks=chunks, pause=0.02))
        return hashlib.sha256(await reply.read()).hexdigest()
    began = time.perf_counter()
    digests = await asyncio.gather(*(one() for _ in range(count)))
    return {"digests": sorted(set(digests)), "count": len(digests), "s": time.perf_counter() - began}

async def main():
    urls = sys.argv[1:]
    up = Upstreams()
    for line in sys.stdin:
        name, which, *args = json.loads(line)
        print(json.dumps(await globals()[name](up, urls[which], *args)), flush=True)
    await up.close()

asyncio.run(main())
"""
DIRECT, THROUGH = 0, 1


async def measured(folder: Path, upstream: int) -> None:
    base = f"http://127.0.0.1:{upstream}/v1"
    models = {"*": ModelSpec("openai", base_url=base)}
    harbour = Harbour(Chart(AgentSpec(type="command", command="x"), folder, dict(os.environ), models))
    mooring = await harbour.moor()
    urls = [f"{base}/chat/completions", f"{mooring.url}/openai/v1/chat/completions"]
    client = await asyncio.create_subprocess_exec(
        sys.executable, "client.py", *urls, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, limit=1 << 20
    )

    async def ask(name: str, which: int, *args: int) -> object:
        """One round of the client, as one trial: an agent of a few hundred calls."""
        assert client.stdin is not None
        assert client.stdout is not None
        trial = Trial(f"{time.monotonic_ns() % 16**12:012x}", "contract", "calm", Task(("q",)))
        with mooring.carry(Voyage(trial, Scenario("calm"))):
            client.stdin.write((json.dumps([name, which, *args]) + "\n").encode())
            await client.stdin.drain()
            return json.loads(await client.stdout.readline())

    async def pairs(name: str, rounds: int, *args: int) -> list[tuple[float, float]]:
        return [(await ask(name, DIRECT, *args), await ask(name, THROUGH, *args)) for _ in range(rounds)]

    try:
        await pairs("p50", 1, 200)
        rounds = await pairs("p50", 5, 300)
        direct, added = median(d for d, _ in rounds), median(t - d for d, t in rounds)
        row("direct, one at a time, p50", f"{direct:.2f} ms")
        row("gateway adds, p50", f"{added:.2f} ms", "target 0.6 ms")
        rounds = await pairs("first_byte", 5, 60)
        row("first byte of a stream comes later by", f"{median(t - d for d, t in rounds):.2f} ms", "target 2 ms")
        rounds = await pairs("rate", 5, 1500, 32)
        theirs, ours = max(d for d, _ in rounds), max(t for _, t in rounds)
        row("direct, 32 in flight", f"{theirs:.0f}/s")
        row("gateway, 32 in flight", f"{ours:.0f}/s", f"{ours / theirs:.2f} of direct, target 2500/s")
        whole = await ask("streams", DIRECT, 1, 50)
        many = await ask("streams", THROUGH, 500, 50)
        assert isinstance(whole, dict)
        assert isinstance(many, dict)
        lost = "none" if many["digests"] == whole["digests"] and many["count"] == 500 else "SOME"
        row("500 streams at once: bytes lost", lost, f"{many['s']:.1f} s for 50 chunks each, 20 ms apart")
    finally:
        client.kill()
        await client.wait()
        await mooring.close()
        await harbour.close()


def main() -> None:
    print("gateway: an untouched call through it beside a direct one; client and upstream are processes of their own")
    with project({"upstream.py": UPSTREAM, "client.py": CLIENT}) as folder:
        server = subprocess.Popen([sys.executable, "upstream.py"], cwd=folder, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            asyncio.run(measured(folder, int(server.stdout.readline())))
        finally:
            server.kill()
            server.wait()
