"""A gateway hands its socket to a run and takes it back."""

import asyncio
import os
import stat
import sys

import pytest
from served_trial import ServedTrial

from error_code import has_code
from golden_words import Golden
from holdfast.errors import AgentUnavailable, UserError
from holdfast.planes.handover import Standby, build_variables, format_exports, load_address, take_socket
from holdfast.planes.trial_address import TrialAddress
from planes_kit import FakeContext


async def status(place) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", place.port)
    writer.write(f"GET /{place.token}/openai/v1/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode())
    line = await asyncio.wait_for(reader.readline(), 5)
    writer.close()
    return int(line.split()[1])


@pytest.mark.parametrize("depth", [0, 3])
async def test_a_run_takes_the_socket_and_returns_it(tmp_path, depth):
    tmp_path /= "/".join(["a project in a folder with a long name"] * depth)  # longer than a socket's address may be
    tmp_path.mkdir(parents=True, exist_ok=True)

    place = load_address(tmp_path)
    standby = Standby(tmp_path, place)
    await standby.open()
    assert await status(place) == 503
    for _ in range(2):  # and again for the next run
        taken = await asyncio.to_thread(take_socket, tmp_path)
        assert taken.handed.token == place.token
        address = await TrialAddress.open(
            lambda _, context: ServedTrial(context), lambda _: {}, sock=taken.listening, token=taken.handed.token
        )
        with address.serve_trial(FakeContext()):
            assert await status(place) == 200
        await address.close()
        taken.give_back()
        await asyncio.sleep(0.05)
        assert await status(place) == 503
    await standby.close()


def test_the_place_stays_the_same_after_a_restart(tmp_path):
    place = load_address(tmp_path)
    assert load_address(tmp_path) == place
    assert load_address(tmp_path, place.port) == place
    other = load_address(tmp_path, place.port + 1)
    assert other.port == place.port + 1
    assert other.token != place.token
    assert stat.S_IMODE(os.stat(tmp_path / "gateway.json").st_mode) == 0o600


def test_only_its_owner_can_open_the_line(tmp_path):
    async def main():
        standby = Standby(tmp_path, load_address(tmp_path))
        await standby.open()
        modes = [stat.S_IMODE(os.stat(path).st_mode) for path in (tmp_path, tmp_path / "gateway.sock")]
        await standby.close()
        return modes

    tmp_path.chmod(0o755)
    assert asyncio.run(main()) == [0o700, 0o600]
    assert not (tmp_path / "gateway.sock").exists()
    assert not (tmp_path / "gateway").exists()


def test_a_missing_gateway_is_reported_with_the_command_to_start_one(tmp_path):
    with pytest.raises(AgentUnavailable, check=has_code("gateway-missing")) as refused:
        take_socket(tmp_path)
    assert "holdfast gateway" in refused.value.hint


async def test_a_second_run_is_told_that_the_gateway_is_taken_and_its_owner_who_came(tmp_path, golden: Golden):
    reported = []

    standby = Standby(tmp_path, load_address(tmp_path), reported.append)
    await standby.open()
    first = await asyncio.to_thread(take_socket, tmp_path)
    with pytest.raises(AgentUnavailable, check=has_code("gateway-busy")):
        await asyncio.to_thread(take_socket, tmp_path)
    first.give_back()
    await asyncio.sleep(0.05)
    await standby.close()
    who = f"process {os.getpid()}" if sys.platform == "linux" else "a process"
    assert reported[0].startswith(f"taken by {who}")
    assert reported[1].startswith(f"refused to {who}")
    golden(reported[1].rpartition(": ")[2])
    assert reported[2:] == ["given back"]


async def test_a_gateway_that_is_ended_during_a_run_ends_quietly(tmp_path):
    complaints = []

    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    standby = Standby(tmp_path, load_address(tmp_path))
    await standby.open()
    taken = await asyncio.to_thread(take_socket, tmp_path)
    await asyncio.wait_for(standby.close(), 5)
    taken.give_back()
    await asyncio.sleep(0.02)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert complaints == []


async def test_a_port_that_is_taken_is_named(tmp_path):
    place = load_address(tmp_path)
    standby = Standby(tmp_path, place)
    try:
        with pytest.raises(UserError, match=str(place.port)):
            Standby(tmp_path, place)
    finally:
        await standby.close()


def test_variables_lead_every_client_to_the_gateway(tmp_path):
    place = load_address(tmp_path)
    found = build_variables(tmp_path, place, {"OPENAI_API_KEY": "mine"})
    assert found["OPENAI_BASE_URL"] == f"http://127.0.0.1:{place.port}/{place.token}/openai/v1"
    assert found["HTTPS_PROXY"].startswith("http://holdfast:")
    assert "OPENAI_API_KEY" not in found
    assert found["ANTHROPIC_API_KEY"]
    assert format_exports({"A": "b c"}) == "export A='b c'\n"
