"""The TCP plane beside a direct connection: the same client and the same server, the two take turns."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from measure import limited, own_cpu, project, row

from holdfast.execute.context import LiveContext
from holdfast.model.scenario import Injection, Scenario, Schedule
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.model.world import Wire
from holdfast.planes.tcp.plane import TcpPlane
from holdfast.planes.tcp.transactions import TrialService

SERVER = """
import socket, struct, threading
CHUNK = b"x" * 262144

def said(kind, body=b""):
    return kind + struct.pack("!i", len(body) + 4) + body

ROW = said(b"D", bytes((0, 1, 0, 0, 0, 10)) + b"0123456789")
HEAD, END = said(b"T", b"ab"), said(b"C", b"SELECT 1" + bytes(1)) + said(b"Z", b"I")
ONE, MANY = HEAD + ROW + END, HEAD + ROW * 100_000 + END

def echo(way):
    with way:
        while head := way.recv(8):
            size = int.from_bytes(head)
            if not size:
                way.sendall(head)
            while size > 0:
                way.sendall(CHUNK)
                size -= len(CHUNK)

def database(way):
    "Speaks as PostgreSQL does, and knows two answers."
    with way:
        way.recv(100)
        way.sendall(said(b"R", bytes(4)) + said(b"Z", b"I"))
        while asked := way.recv(1000):
            way.sendall(MANY if b"everything" in asked else ONE)

def accept(listener, serve):
    while True:
        way, _ = listener.accept()
        way.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=serve, args=(way,), daemon=True).start()

listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(listener.getsockname()[1] for listener in listeners), flush=True)
threading.Thread(target=accept, args=(listeners[0], echo), daemon=True).start()
accept(listeners[1], database)
"""
CLIENT = """
import json, socket, struct, sys, time
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
    return time.perf_counter() - began

def ask(way, sql, last=b"Z" + bytes((0, 0, 0, 5)) + b"I"):
    text = sql.encode() + bytes(1)
    way.sendall(b"Q" + struct.pack("!i", len(text) + 4) + text)
    end = b""
    while not end.endswith(last):
        end = (end + way.recv(1 << 18))[-len(last):]

def queries(port, times, sql):
    taken = []
    with connect(port) as way:
        way.sendall(struct.pack("!ii", 9, 196608) + bytes(1))
        way.recv(100)
        for n in range(times):
            began = time.perf_counter()
            ask(way, sql.format(n=n))
            taken.append(time.perf_counter() - began)
    return median(taken) * 1000

for line in sys.stdin:
    name, *args = json.loads(line)
    print(json.dumps(globals()[name](*args)), flush=True)
"""
BULK = 1_000 * 262_144
ONE_ROW = "INSERT INTO orders (id, total) VALUES ({n}, 'x') RETURNING id"
MANY_ROWS = "SELECT everything FROM orders"


class Client:
    """A client in a process of its own, and what our process spends while it works."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def ask(self, *words: Any) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write((json.dumps(words) + "\n").encode())
        await self._process.stdin.drain()
        return float(json.loads(await self._process.stdout.readline()))

    async def beside(self, times: int, name: str, direct: int, through: int, *words: Any) -> tuple[float, float, float]:
        """The least that it took directly and through the plane, by turns, and the least CPU of ours, in seconds."""
        found = []
        for _ in range(times):
            theirs = await self.ask(name, direct, *words)
            began = own_cpu()
            found.append((theirs, await self.ask(name, through, *words), own_cpu() - began))
        theirs, ours, spent = (min(column) for column in zip(*found, strict=True))
        return theirs, ours, spent


async def measured(folder: Path, echo: int, database: int) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "client.py", cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    paced = Injection("service", "s", "limit_data", {"bytes": 1 << 60}, Schedule())
    calm, watched = Scenario("calm"), Scenario("s", (paced,))
    planes = []
    ends: list[tuple[int, Wire, Scenario]] = [(echo, "", calm), (echo, "", watched), (database, "postgres", calm)]
    for upstream, kind, scenario in ends:
        sock = socket.create_server(("127.0.0.1", 0))
        context = LiveContext(Trial("0" * 12, "contract", scenario, Task(("q",))))
        wrote = written.append if kind == "postgres" else None
        service = TrialService(("127.0.0.1", upstream), "s", kind, context, wrote=wrote)
        planes.append(await TcpPlane(service).listen(sock))
    through, slowed, read = (plane.port for plane in planes)
    try:
        await passing(Client(process), echo, through, slowed)
        await reading(Client(process), database, read)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()
        for plane in planes:
            await plane.close()


written: list[object] = []


async def passing(client: Client, direct: int, through: int, slowed: int) -> None:
    """Bytes that nobody reads."""
    theirs, ours, spent = await client.beside(7, "turns", direct, through, 1000)
    row("direct, a word and its echo, p50", f"{theirs:.3f} ms")
    limited("plane adds, p50", ours - theirs, "{:.3f} ms", most=0.08, note=f"{spent * 1e3:.0f} µs of CPU each")
    theirs, ours, spent = await client.beside(7, "stream", direct, through, BULK)
    row("direct, 262 MB", f"{BULK / theirs / 1e6:.0f} MB/s")
    note = f"{BULK / ours / 1e6:.0f} MB/s, {spent / BULK * 1e12:.0f} ms of CPU per GB"
    limited("plane, 262 MB, of direct", theirs / ours, "{:.2f}", least=0.45, note=note)
    _, ours, spent = await client.beside(3, "stream", direct, slowed, BULK)
    cpu = f"{spent / BULK * 1e12:.0f} ms of CPU a GB"
    row("plane under a fault that holds nothing back", f"{BULK / ours / 1e6:.0f} MB/s", cpu)
    theirs, ours, spent = await client.beside(3, "connections", direct, through, 500)
    cpu = f"{theirs / ours:.2f} of direct; {spent / 500 * 1e6:.0f} µs of CPU each"
    row("connections one after the other", f"{500 / ours:.0f}/s", cpu)


async def reading(client: Client, direct: int, through: int) -> None:
    """A database that is read along, where no fault waits."""
    theirs, ours, spent = await client.beside(7, "queries", direct, through, 500, ONE_ROW)
    assert written
    row("direct, a query of PostgreSQL's, p50", f"{theirs:.3f} ms")
    row("plane reads along and adds, p50", f"{ours - theirs:.3f} ms", f"{spent / 500 * 1e6:.0f} µs of CPU each")
    theirs, ours, spent = await client.beside(5, "queries", direct, through, 5, MANY_ROWS)
    row("direct, 100,000 rows, p50", f"{theirs:.1f} ms")
    row("plane reads along, 100,000 rows, p50", f"{ours:.1f} ms", f"{spent / 5 * 1e3:.0f} ms of CPU each")


def main() -> None:
    print("tcp: a connection through the plane beside a direct one; client and server are processes of their own")
    with project({"server.py": SERVER, "client.py": CLIENT}) as folder:
        server = subprocess.Popen([sys.executable, "server.py"], cwd=folder, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            asyncio.run(measured(folder, *map(int, server.stdout.readline().split())))
        finally:
            server.kill()
            server.wait()
