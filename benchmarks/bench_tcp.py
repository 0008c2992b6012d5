"""The TCP plane beside a direct connection: the same client and the same server, the two take turns."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from measure import project, row

from holdfast.execute.context import LiveContext
from holdfast.model.spec import Injection, Scenario, Schedule, Task
from holdfast.model.trial import Trial
from holdfast.planes.tcp.plane import TcpPlane

SERVER = """
import socket, threading
CHUNK = b"x" * 262144

def serve(way):
    with way:
        while head := way.recv(8):
            size = int.from_bytes(head)
            if not size:
                way.sendall(head)
            while size > 0:
                way.sendall(CHUNK)
                size -= len(CHUNK)

listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    way, _ = listener.accept()
    way.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    threading.Thread(target=serve, args=(way,), daemon=True).start()
"""
CLIENT = """
import json, socket, sys, time
from statistics import median

def connect(port):
    way = socket.create_connection(("127.0.0.1", port))
    way.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return way

def turns(port, times):
    taken = []
    with connect(port) as way:
        for _ in range(times):
            began = time.perf_counter()
            way.sendall(bytes(8))
            way.recv(8)
            taken.append(time.perf_counter() - began)
    return median(taken) * 1000

def stream(port, size):
    room = bytearray(1 << 20)
    with connect(port) as way:
        began = time.perf_counter()
        way.sendall(size.to_bytes(8))
        while size > 0:
            size -= way.recv_into(room)
        return time.perf_counter() - began

def connections(port, times):
    began = time.perf_counter()
    for _ in range(times):
        with connect(port) as way:
            way.sendall(bytes(8))
            way.recv(8)
    return times / (time.perf_counter() - began)

for line in sys.stdin:
    name, *args = json.loads(line)
    print(json.dumps(globals()[name](*args)), flush=True)
"""
BULK = 1_000 * 262_144


async def measured(folder: Path, upstream: int) -> None:
    client = await asyncio.create_subprocess_exec(
        sys.executable, "client.py", cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert client.stdin is not None
    assert client.stdout is not None

    async def ask(*words: Any) -> float:
        assert client.stdin is not None
        assert client.stdout is not None
        client.stdin.write((json.dumps(words) + "\n").encode())
        await client.stdin.drain()
        return float(json.loads(await client.stdout.readline()))

    trial = Trial("0" * 12, "contract", "calm", Task(("q",)))
    paced = Injection("service", "s", "limit_data", {"bytes": 1 << 60}, Schedule())
    calm, watched = LiveContext(trial, Scenario("calm")), LiveContext(trial, Scenario("s", (paced,)))
    planes = []
    ports = [upstream]
    for context in (calm, watched):
        sock = socket.create_server(("127.0.0.1", 0))
        ports.append(sock.getsockname()[1])
        planes.append(await TcpPlane.open(sock, ("127.0.0.1", upstream), "s", "", context))
    direct, through, paced_port = ports
    try:
        rounds = [(await ask("turns", direct, 1000), await ask("turns", through, 1000)) for _ in range(5)]
        row("direct, a word and its echo, p50", f"{median(d for d, _ in rounds):.3f} ms")
        row("plane adds, p50", f"{median(t - d for d, t in rounds):.3f} ms", "target 0.2 ms")
        rounds = [(await ask("stream", direct, BULK), await ask("stream", through, BULK)) for _ in range(5)]
        theirs, ours = min(d for d, _ in rounds), min(t for _, t in rounds)
        row("direct, 262 MB", f"{BULK / theirs / 1e6:.0f} MB/s")
        row("plane, 262 MB", f"{BULK / ours / 1e6:.0f} MB/s", f"{theirs / ours:.2f} of direct, target 0.25")
        slow = min([await ask("stream", paced_port, BULK) for _ in range(3)])
        row("plane under a fault that holds nothing back", f"{BULK / slow / 1e6:.0f} MB/s")
        theirs, ours = await ask("connections", direct, 500), await ask("connections", through, 500)
        row("connections one after the other", f"{ours:.0f}/s", f"{ours / theirs:.2f} of direct")
    finally:
        client.stdin.close()
        await client.wait()
        for plane in planes:
            await plane.close()


def main() -> None:
    print("tcp: a connection through the plane beside a direct one; client and server are processes of their own")
    with project({"server.py": SERVER, "client.py": CLIENT}) as folder:
        server = subprocess.Popen([sys.executable, "server.py"], cwd=folder, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            asyncio.run(measured(folder, int(server.stdout.readline())))
        finally:
            server.kill()
            server.wait()
