"""A shared address tells trials apart by the process that connects."""

import asyncio
import base64
import os
import subprocess
import sys

import pytest
from served_trial import ServedTrial

from holdfast.http1.server import serve_plain
from holdfast.planes.shared_address import SharedAddress
from holdfast.processes.peers import find_owner
from planes_kit import FakeContext

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are told apart by /proc")

ASK = """
import sys, urllib.request, time
request = urllib.request.Request(sys.argv[1])
sys.stdin.readline()
try:
    print(urllib.request.urlopen(request).read().decode(), flush=True)
except urllib.error.HTTPError as refused:
    print(refused.code, flush=True)
sys.stdin.readline()
"""
BELOW = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1], sys.argv[2]])"


async def started(shared_address, *, below=False):
    url = f"{shared_address.url}/openai/v1/models"
    args = [BELOW, ASK, url] if below else [ASK, url]
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", *args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


async def read_report(process) -> str:
    process.stdin.write(b"go\n")
    await process.stdin.drain()
    said = (await asyncio.wait_for(process.stdout.readline(), 10)).decode().strip()
    process.stdin.close()
    await process.wait()
    return said


async def opened():
    return await SharedAddress.open(lambda place, context: ServedTrial(context), lambda place: {})


@pytest.mark.slow
@pytest.mark.parametrize("below", [False, True])
async def test_each_process_is_served_as_the_trial_it_belongs_to(below):
    shared_address = await opened()
    one, two = await started(shared_address, below=below), await started(shared_address, below=below)
    with (
        shared_address.serve_trial(FakeContext(id="111111111111")) as first,
        shared_address.serve_trial(FakeContext(id="222222222222")) as second,
    ):
        first(one.pid)
        second(two.pid)
        assert await asyncio.gather(read_report(two), read_report(one)) == ["222222222222", "111111111111"]
    await shared_address.close()


async def test_a_process_of_no_trial_gets_503():
    shared_address = await opened()
    stranger = await started(shared_address)
    with shared_address.serve_trial(FakeContext()) as begun:
        begun(os.getpid() + 1_000_000)
        assert await read_report(stranger) == "503"
    await shared_address.close()


async def test_a_process_may_connect_before_it_is_known():
    shared_address = await opened()
    early = await started(shared_address)
    with shared_address.serve_trial(FakeContext(id="333333333333")) as begun:
        asking = asyncio.create_task(read_report(early))
        await asyncio.sleep(0.1)
        begun(early.pid)
        assert await asking == "333333333333"
    await shared_address.close()


def test_nobody_owns_a_connection_that_is_not_there():
    assert find_owner(("127.0.0.1", 1), 2, [os.getpid()]) is None


async def test_the_end_of_a_trial_stops_whoever_answers_its_process():
    stopped = []

    class Slow(ServedTrial):
        async def serve_model(self, exchange, provider, path):
            try:
                await asyncio.sleep(60)
            finally:
                stopped.append(provider)

    shared_address = await SharedAddress.open(lambda place, context: Slow(context), lambda place: {})
    asking = await started(shared_address)
    with shared_address.serve_trial(FakeContext()) as begun:
        begun(asking.pid)
        asking.stdin.write(b"go\n")
        while not any(not one.requests.is_idle for one in shared_address.listener.connections):
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
    await asyncio.sleep(0.05)
    assert stopped == ["openai"]
    await asking.communicate()
    await shared_address.close()


async def test_the_end_of_a_trial_cuts_a_connection_that_was_taken_over():
    class Tunnelling(ServedTrial):
        async def serve_web(self, exchange):
            inner = serve_plain(await exchange.take_over(), lambda asked: asked.respond(200, body=b"in"))
            await inner.wait_closed()

    shared_address = await SharedAddress.open(lambda place, context: Tunnelling(context), lambda place: {})
    password = base64.b64encode(f"holdfast:{shared_address.token}".encode()).decode()

    async def tunnelled():
        reader, writer = await asyncio.open_connection("127.0.0.1", shared_address.port)
        writer.write(f"CONNECT a.test:80 HTTP/1.1\r\nproxy-authorization: Basic {password}\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        assert (await reader.readuntil(b"in")).endswith(b"in")
        return reader, writer

    with shared_address.serve_trial(FakeContext()) as begun:
        begun(os.getpid())
        lines = [
            await tunnelled(),
            await tunnelled(),
        ]  # the second makes the shared address look who is still there
    for reader, writer in lines:
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()
    await shared_address.close()


async def test_a_client_that_binds_another_loopback_address_is_known_too():
    shared_address = await opened()
    with shared_address.serve_trial(FakeContext(id="444444444444")) as begun:
        begun(os.getpid())
        reader, writer = await asyncio.open_connection("127.0.0.1", shared_address.port, local_addr=("127.0.0.7", 0))
        writer.write(f"GET /{shared_address.token}/openai/v1/models HTTP/1.1\r\nconnection: close\r\n\r\n".encode())
        assert b"444444444444" in await asyncio.wait_for(reader.read(), 10)
        writer.close()
    await shared_address.close()
