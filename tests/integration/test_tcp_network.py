"""Faults of the network on connections to services, real sockets on both sides."""

import asyncio
import socket
import time

import pytest
from tcp_kit import carried, place, redis, serving, through

TEXT = bytes(range(256)) * 40


async def echo(reader, writer):
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()


async def sends(reader, writer):
    await reader.readexactly(1)
    writer.write(TEXT)
    await writer.drain()


def meet(*injections, talk=echo, client=None, **more):
    """What a client meets, and the plane; the client is a coroutine of a reader and a writer."""

    async def run():
        async with serving(talk) as upstream, carried(upstream, "", *injections, service="s", **more) as one:
            reader, writer = await asyncio.open_connection("127.0.0.1", one.port)
            try:
                result = await asyncio.wait_for(client(reader, writer), 10)
            finally:
                writer.close()
        return result, one

    return asyncio.run(run())


async def whole(reader, writer):
    """All that comes, and how long it took."""
    began = time.monotonic()
    writer.write(b"x")
    data = await reader.read()
    return data, time.monotonic() - began


async def turn(reader, writer):
    """A word and its echo: how long it took."""
    began = time.monotonic()
    writer.write(b"word")
    assert await reader.readexactly(4) == b"word"
    return time.monotonic() - began


def test_bytes_pass_unchanged_both_ways_and_each_direction_ends_by_itself():
    async def client(reader, writer):
        writer.write(TEXT * 100)
        writer.write_eof()
        return await reader.read()

    data, one = meet(client=client)
    assert data == TEXT * 100
    assert one.context.weather.calls == {"service:s": 1}


def test_a_reader_that_stops_stops_the_sender():
    sent = []

    async def floods(reader, writer):
        try:
            while True:
                writer.write(b"x" * 65_536)
                sent.append(65_536)
                await asyncio.wait_for(writer.drain(), 1)
        except TimeoutError:
            writer.transport.abort()

    async def client(reader, writer):
        reader._transport.pause_reading()
        await asyncio.sleep(1.5)

    meet(talk=floods, client=client)
    assert sum(sent) < 30_000_000


def test_latency_is_felt_on_every_answer():
    async def client(reader, writer):
        return [await turn(reader, writer) for _ in range(3)]

    took, one = meet(place("s", "latency", delay_ms=80), client=client)
    assert all(0.08 <= each < 1 for each in took)
    assert one.met == [("latency", 1, "met")]
    assert "80 ms" in one.context.ledger[0].got


def test_latency_does_not_slow_a_stream():
    (data, took), _ = meet(place("s", "latency", delay_ms=100), talk=sends, client=whole)
    assert data == TEXT
    assert took < 1


def test_a_steady_latency_is_no_fault():
    took, one = meet(client=turn, latency_ms=60)
    assert took >= 0.06
    assert one.met == []


def test_bandwidth_holds_bytes_back_both_ways():
    (data, took), one = meet(place("s", "bandwidth", rate=50), talk=sends, client=whole)
    assert data == TEXT
    assert took >= len(TEXT) / 50_000 * 0.9
    assert one.met == [("bandwidth", 1, "met")]


def test_limit_data_closes_after_so_many_bytes():
    (data, _), one = meet(place("s", "limit_data", bytes=100), talk=sends, client=whole)
    assert data == TEXT[:100]
    assert one.met == [("limit_data", 1, "met")]


def test_limit_data_that_is_not_reached_is_not_met():
    _, one = meet(place("s", "limit_data", bytes=100), client=turn)
    assert one.met == [("limit_data", 1, "no_effect")]


def test_slicer_cuts_and_loses_nothing():
    (data, _), one = meet(place("s", "slicer", average_size=100, size_variation=20), talk=sends, client=whole)
    assert data == TEXT
    assert one.met == [("slicer", 1, "met")]


def test_slow_close_holds_the_end_back():
    (data, took), one = meet(place("s", "slow_close", delay_ms=150), talk=sends, client=whole)
    assert data == TEXT
    assert took >= 0.15
    assert one.met == [("slow_close", 1, "met")]


async def leaves(reader, writer):
    """A client that has its answer and closes first."""
    await turn(reader, writer)
    writer.close()
    await asyncio.sleep(0.2)


def test_slow_close_is_not_met_by_a_client_that_closes_first():
    _, one = meet(place("s", "slow_close", delay_ms=20), client=leaves)
    assert one.met == [("slow_close", 1, "no_effect")]
    assert one.context.ledger[0].note


async def at_the_end(reader, writer):
    """Answers when nothing more is asked."""
    await reader.read()
    writer.write(TEXT)
    await writer.drain()


def half_closed(*injections):
    """A client that says that it has no more to say, and waits for the answer and the end."""

    async def client(reader, writer):
        writer.write(b"x")
        writer.write_eof()
        return await reader.read()

    return meet(*injections, talk=at_the_end, client=client)


@pytest.mark.parametrize(
    "fault",
    [
        place("s", "slow_close", delay_ms=50),
        place("s", "latency", delay_ms=50),
        place("s", "bandwidth", rate=100),
        place("s", "slicer", average_size=100),
    ],
    ids=lambda fault: fault.mode,
)
def test_a_client_that_only_has_no_more_to_say_still_waits(fault):
    data, one = half_closed(fault)
    assert data == TEXT
    assert one.met == [(fault.mode, 1, "met")]


def test_a_client_that_only_has_no_more_to_say_is_cut_off():
    data, one = half_closed(place("s", "limit_data", bytes=100))
    assert data == TEXT[:100]
    assert one.met == [("limit_data", 1, "met")]


@pytest.mark.parametrize(
    "fault",
    [
        place("s", "slow_close", delay_ms=50),
        place("s", "latency", delay_ms=50),
        place("s", "bandwidth", rate=100),
        place("s", "slicer", average_size=5_000),
        place("s", "limit_data", bytes=100),
    ],
    ids=lambda fault: fault.mode,
)
def test_a_client_that_is_gone_before_the_answer_meets_nothing(fault):
    async def client(reader, writer):
        writer.write(b"x")
        await writer.drain()
        writer.close()
        await asyncio.sleep(0.4)

    _, one = meet(fault, talk=at_the_end, client=client)
    assert one.met == [(fault.mode, 1, "no_effect")]


@pytest.mark.parametrize("mode", ["latency", "bandwidth", "slicer", "limit_data", "slow_close"])
def test_a_connection_on_which_nothing_is_said_meets_nothing(mode):
    async def client(reader, writer):
        await asyncio.sleep(0.1)

    _, one = meet(place("s", mode), client=client)
    assert one.met == [(mode, 1, "no_effect")]


def test_a_slow_close_that_outlasts_the_trial_is_met():
    async def client(reader, writer):
        writer.write(b"x")
        return await reader.readexactly(len(TEXT)), await asyncio.sleep(0.1)

    _, one = meet(place("s", "slow_close", delay_ms=60_000), talk=sends, client=client)
    assert one.met == [("slow_close", 1, "met")]


def test_down_closes_without_a_byte():
    (data, _), one = meet(place("s", "down"), talk=sends, client=whole)
    assert data == b""
    assert one.met == [("down", 1, "met")]


def test_reset_peer_resets():
    async def client(reader, writer):
        with pytest.raises(ConnectionResetError):
            await reader.read()

    _, one = meet(place("s", "reset_peer", delay_ms=20), client=client)
    assert one.met == [("reset_peer", 1, "met")]


@pytest.mark.parametrize("mode", ["partition", "timeout"])
def test_nothing_passes_and_nothing_closes(mode):
    async def client(reader, writer):
        writer.write(b"x")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(), 0.2)

    _, one = meet(place("s", mode), talk=sends, client=client)
    assert one.met == [(mode, 1, "met")]


def test_timeout_closes_after_its_delay():
    (data, took), _ = meet(place("s", "timeout", delay_ms=100), talk=sends, client=whole)
    assert data == b""
    assert took >= 0.1


def test_a_client_that_gives_up_and_comes_again_is_not_two_at_once():
    async def client(reader, writer):
        writer.close()
        await asyncio.sleep(0.1)

    async def run():
        async with serving(sends) as upstream, carried(upstream, "", place("s", "timeout", delay_ms=5_000),
                                                       service="s") as one:  # fmt: skip
            for _ in range(2):
                reader, writer = await asyncio.open_connection("127.0.0.1", one.port)
                await asyncio.sleep(0.05)
                await client(reader, writer)
            began = time.monotonic()
        return one, time.monotonic() - began

    one, took = asyncio.run(run())
    assert one.met == [("timeout", 1, "met"), ("timeout", 2, "met")]
    assert not one.context.concurrent
    assert took < 2


def test_connections_at_the_same_time_are_noticed():
    async def run():
        async with serving(sends) as upstream, carried(upstream, "", place("s", "timeout", delay_ms=200),
                                                       service="s") as one:  # fmt: skip
            ways = [await asyncio.open_connection("127.0.0.1", one.port) for _ in range(2)]
            for reader, writer in ways:
                await reader.read()
                writer.close()
        return one.context.concurrent

    assert asyncio.run(run())


def test_tls_error_meets_a_client_that_begins_with_tls_and_no_other():
    import ssl

    def client(port):
        context = ssl.create_default_context()
        with (
            pytest.raises(ssl.SSLError) as raised,
            socket.create_connection(("127.0.0.1", port)) as sock,
            context.wrap_socket(sock, server_hostname="s"),
        ):
            pass
        with socket.create_connection(("127.0.0.1", port)) as sock:
            sock.sendall(b"PING\r\n")
            plain = sock.recv(100)
        return raised.value.reason, plain

    with redis() as upstream:
        (reason, plain), one = through(upstream, "", [place("db", "tls_error")], client)
    assert plain == b"+PONG\r\n"
    assert "ALERT_HANDSHAKE_FAILURE" in reason
    assert one.met == [("tls_error", 1, "met")]


def test_down_at_start_heals_after_some_connections():
    def client(port):
        heard = []
        for _ in range(4):
            with socket.create_connection(("127.0.0.1", port)) as sock:
                try:
                    sock.sendall(b"PING\r\n")
                    heard.append(sock.recv(100))
                except ConnectionError:
                    heard.append(b"")
        return heard

    with redis() as upstream:
        heard, one = through(upstream, "", [place("db", "down_at_start", connections=2)], client)
    assert heard == [b"", b"", b"+PONG\r\n", b"+PONG\r\n"]
    assert [effect for _, _, effect in one.met] == ["met", "met", "no_effect", "no_effect"]


def test_down_at_start_heals_after_some_time():
    def client(port):
        began = time.monotonic()
        while True:
            with socket.create_connection(("127.0.0.1", port)) as sock:
                try:
                    sock.sendall(b"PING\r\n")
                    if sock.recv(100):
                        return time.monotonic() - began
                except ConnectionError:
                    pass
            time.sleep(0.02)

    with redis() as upstream:
        took, _ = through(upstream, "", [place("db", "down_at_start", for_ms=300)], client)
    assert 0.1 < took < 5


def test_a_schedule_counts_connections():
    def client(port):
        heard = []
        for _ in range(4):
            with socket.create_connection(("127.0.0.1", port)) as sock:
                try:
                    sock.sendall(b"PING\r\n")
                    heard.append(sock.recv(100))
                except ConnectionError:
                    heard.append(b"")
        return [bool(each) for each in heard]

    with redis() as upstream:
        heard, _ = through(upstream, "", [place("db", "down", after_calls=1, times=2)], client)
    assert heard == [True, False, False, True]


def test_two_faults_compose():
    async def client(reader, writer):
        return await turn(reader, writer)

    took, one = meet(place("s", "latency", delay_ms=50), place("s", "latency", delay_ms=50), client=client)
    assert took >= 0.1
    assert len(one.met) == 2


def test_a_service_that_is_not_there_is_our_failure():
    def client(port):
        with socket.create_connection(("127.0.0.1", port)) as sock:
            return sock.recv(10)

    with socket.create_server(("127.0.0.1", 0)) as sock:
        nobody = sock.getsockname()
    data, one = through(nobody, "", [], client)
    assert data == b""
    assert " service db " in one.context.troubles[0]


def test_a_unix_socket_is_an_upstream(tmp_path):
    async def run():
        async def answer(reader, writer):
            writer.write(b"hello")
            writer.close()

        path = str(tmp_path / "s")
        server = await asyncio.start_unix_server(answer, path)
        async with carried(path, "") as one:
            reader, writer = await asyncio.open_connection("127.0.0.1", one.port)
            data = await reader.read()
            writer.close()
        server.close()
        await server.wait_closed()
        return data

    assert asyncio.run(run()) == b"hello"


async def test_closing_the_plane_ends_what_is_under_way():
    async with serving(echo) as upstream:
        async with carried(upstream, "", place("db", "partition")) as one:
            reader, writer = await asyncio.open_connection("127.0.0.1", one.port)
            await asyncio.sleep(0.05)
        assert await reader.read() == b""
        writer.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", one.port)


def test_what_passes_by_slow_and_by_fast_clients_is_not_mixed():
    """Connections share the place that bytes are read into; what a slow client has not taken must stay as it was."""
    size = 8_000_000

    async def answer(reader, writer):
        name = await reader.readexactly(1)
        for n in range(size // 1_000):
            writer.write(name * 996 + n.to_bytes(4))
        await writer.drain()

    def client(port):
        with (
            socket.create_connection(("127.0.0.1", port)) as slow,
            socket.create_connection(("127.0.0.1", port)) as fast,
        ):
            slow.sendall(b"s")
            fast.sendall(b"f")
            got = {slow: bytearray(), fast: bytearray()}
            for one, most in ((slow, 100_000), (fast, size), (slow, size)):
                while len(got[one]) < most and (data := one.recv(65_536)):
                    got[one] += data
            return bytes(got[slow]), bytes(got[fast])

    async def run():
        async with serving(answer) as upstream, carried(upstream, "", wrote=lambda said: None) as one:
            return await asyncio.wait_for(asyncio.to_thread(client, one.port), 30)

    expected = [b"".join(name * 996 + n.to_bytes(4) for n in range(size // 1_000)) for name in (b"s", b"f")]
    assert list(asyncio.run(run())) == expected
