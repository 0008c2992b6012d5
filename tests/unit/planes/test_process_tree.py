"""A address is for one process and what that starts: who has read its token elsewhere is turned away."""

import asyncio
import os
import subprocess
import sys
import time
from contextlib import asynccontextmanager

import pytest

from holdfast.planes.trial_address import FOREIGN_PROCESS, TrialAddress
from holdfast.processes.leftovers import list_family
from holdfast.processes.peers import find_holder, is_descendant
from planes_kit import FakeContext

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are told apart by /proc")

ASKS = """
import socket, sys
def ask(port, token, family="4"):
    host = "127.0.0.1" if family == "4" else "::ffff:127.0.0.1"
    with socket.socket(socket.AF_INET if family == "4" else socket.AF_INET6) as line:
        line.connect((host, port))
        line.sendall(b"GET /%b/openai/v1/models HTTP/1.1\\r\\nconnection: close\\r\\n\\r\\n" % token.encode())
        return line.recv(100).split()[1].decode()
sys.stdin.readline()
print(ask(int(sys.argv[1]), sys.argv[2], sys.argv[3]), flush=True)
"""
BELOW = "import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', *sys.argv[1:]]))"
DAEMON = """
import ctypes, os, sys, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)   # as a keeper: what daemonises stays below it
child = os.fork()
if child == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    exec(sys.argv.pop(1))
    os._exit(0)
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
"""


class ServedTrial:
    def __init__(self, context):
        self.context = context

    async def serve_model(self, exchange, provider, path):
        await exchange.respond(200, body=b"served")

    def report_error(self, why):
        self.context.sink.add_error(why, "bug")

    def note(self, text):
        self.context.sink.note(text)

    def close(self):
        pass


@asynccontextmanager
async def moored():
    address = await TrialAddress.open(lambda _, context: ServedTrial(context), lambda _: {})
    try:
        yield address
    finally:
        await address.close()


@asynccontextmanager
async def started(address, *how, version="4"):
    args = [*how, ASKS, str(address.port), address.token, version]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", *args, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        yield process
    finally:
        process.stdin.close()
        await process.wait()


async def read_report(process) -> str:
    process.stdin.write(b"go\n")
    await process.stdin.drain()
    return (await asyncio.wait_for(process.stdout.readline(), 20)).decode().strip()


@pytest.mark.parametrize("version", ["4", "6"])
@pytest.mark.parametrize("how", [(), (BELOW,), (DAEMON,)], ids=["itself", "below", "daemon"])
def test_the_process_that_an_address_is_for_is_served_and_what_it_starts_daemons_too(how, version):
    async def main():
        context = FakeContext()
        async with moored() as address, started(address, *how, version=version) as process:
            address.process_tree.first = process.pid
            with address.serve_trial(context):
                assert await read_report(process) == "200"
        return context.notes

    assert list(asyncio.run(main())) == []


@pytest.mark.parametrize("version", ["4", "6"])
def test_another_process_with_the_token_gets_403_and_the_trial_a_note(version):
    async def main():
        context = FakeContext()
        async with moored() as address, started(address) as own, started(address, version=version) as other:
            address.process_tree.first = own.pid
            with address.serve_trial(context):
                assert await read_report(other) == "403"
                assert await read_report(own) == "200"
        return context

    context = asyncio.run(main())
    assert list(context.notes) == [FOREIGN_PROCESS]
    assert not context.troubles


def test_a_strangers_call_before_the_trial_is_not_counted_as_the_agents():
    async def main():
        context = FakeContext()
        async with moored() as address, started(address) as own, started(address) as other:
            address.process_tree.first = own.pid
            assert await read_report(other) == "403"
            with address.serve_trial(context):
                pass
        return context

    assert not asyncio.run(main()).troubles


async def test_a_process_may_connect_before_its_start_is_reported():
    context = FakeContext()
    async with moored() as address, started(address) as earlier, started(address) as own:
        address.process_tree.first = earlier.pid
        with address.serve_trial(context):
            asking = asyncio.create_task(read_report(own))
            await asyncio.sleep(0.15)
            address.process_tree.first = own.pid
            assert await asking == "200"


async def test_an_address_whose_process_is_not_known_serves_who_has_the_token():
    async with moored() as address, started(address) as anybody:
        with address.serve_trial(FakeContext()):
            assert await read_report(anybody) == "200"


def test_a_connection_is_checked_once_and_quickly(monkeypatch):
    async def main():
        taken = []
        async with moored() as address:
            address.process_tree.first = os.getpid()
            looks = address.process_tree.is_foreign

            async def timed(*about):
                began = time.thread_time()
                try:
                    return await looks(*about)
                finally:
                    taken.append(time.thread_time() - began)

            monkeypatch.setattr(address.process_tree, "is_foreign", timed)
            with address.serve_trial(FakeContext()):
                for _ in range(20):
                    reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
                    for _ in range(3):
                        writer.write(f"GET /{address.token}/openai/v1/models HTTP/1.1\r\n\r\n".encode())
                        assert b"served" in await reader.readuntil(b"served")
                    writer.close()
        return taken

    taken = asyncio.run(main())
    assert len(taken) == 20
    assert sorted(taken)[10] < 0.003  # about 0.1 ms on a quiet machine


def test_a_long_chain_of_processes_is_a_family_and_found_from_both_sides():
    assert next(iter(list_family([os.getpid()]))) == os.getpid()
    assert is_descendant(os.getpid(), os.getppid())
    assert not is_descendant(os.getppid(), os.getpid())
    assert not is_descendant(2**30, os.getpid())
    assert find_holder(2**31) is None
