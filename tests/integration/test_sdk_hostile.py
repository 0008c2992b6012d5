"""Who may use a address, and when; trials that do not see each other; the same weather twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from time import sleep
from typing import Any

import httpx
import openai
import pytest
from gateway_kit import FOUND, TEXT, Place
from sdk_conversations import HOWS, say, use
from sdk_voices import Chat, OllamaChat

from holdfast.model.scenario import Injection, Schedule

pytestmark = pytest.mark.usefixtures("quick_retries")
NOBODY = "no trial is running"


def test_a_request_outside_of_a_trial_is_turned_away_and_billed_to_none(place: Place) -> None:
    got = say(place.client(Chat), [], "How did ACME do?")
    assert type(got.error) is openai.InternalServerError
    assert (got.error.status_code, NOBODY in str(got.error)) == (503, True)
    with place.sail(Injection("llm", "*", "garbage", {}, Schedule(on_call=1))) as served:
        assert say(place.client(Chat), [], "How did ACME do?").text != TEXT
    assert [(e.n, e.retry) for e in served.calls] == [(1, 0)]  # it counts from its own beginning
    assert served.met == [("llm", "gpt-4o", 1, 0, "garbage", "met")]


def test_a_call_under_way_when_its_trial_ends_is_cut_off_and_told_of(place: Place) -> None:
    with ThreadPoolExecutor(1) as pool:
        with place.sail(Injection("llm", "*", "timeout", {"delay_ms": 20_000})) as served:
            late = pool.submit(say, place.client(OllamaChat), [], "How did ACME do?")
            while not served.context.ledger:
                sleep(0.001)
        assert type(late.result(5).error) in (httpx.RemoteProtocolError, httpx.ReadError)
    assert [(e.phase, e.fault, e.failed) for e in served.calls] == [("unfinished", "timeout", True)]


def test_two_addresses_do_not_see_each_others_traffic(place: Place) -> None:
    other = place.loop.run(place.open_address())
    try:
        with (
            place.sail(Injection("llm", "*", "garbage")) as here,
            place.sail(address=other, id="ba9876543210") as there,
            closing(Chat(there.environ)) as calm,
        ):
            assert say(place.client(Chat), [], "How did ACME do?").text != TEXT
            assert say(calm, [], "How did ACME do?").text == TEXT
            crossed = httpx.post(f"http://127.0.0.1:{other.port}/{place.address.token}/openai/v1/responses", json={})
    finally:
        place.loop.run(other.close())
    assert crossed.status_code == 404
    assert (len(here.met), len(here.calls), len(there.met), len(there.calls)) == (1, 1, 0, 1)


# -- the same weather twice ---------------------------------------------------------------------------
STORM = (
    Injection("llm", "*", "rate_limit", {"retry_after_s": None}, Schedule(probability=0.4)),
    Injection("llm", "*", "garbage", {}, Schedule(probability=0.3)),
    Injection("tool", "forecast", "wrong_value", {}, Schedule(probability=0.5)),
    Injection("llm", "gpt-*", "truncated_response", {"max_tokens": 3}, Schedule(every=3)),
)
Weathered = list[tuple[Any, ...]]


def _ledger(place: Place, seed: int, *, own: bool = False) -> Weathered:
    """What a talk of some turns meets, in order, with the words that it got."""
    address = place.loop.run(place.open_address()) if own else None
    with place.sail(*STORM, address=address, seed=seed, id=f"{seed:012x}") as served:
        client = Chat(served.environ) if own else place.client(Chat)
        history: list[Any] = []
        for turn in range(6):
            asked = say(client, history, f"Will it rain on day {turn}?", HOWS[turn % 2], tools=True)
            if asked.calls:
                client.answered(history, use(client, history, asked, [{**FOUND, "turn": turn}]))
    if own:
        client.close()
    if address is not None:
        place.loop.run(address.close())
    return [(f.plane, f.target, f.call, f.mode, f.effect, f.got) for f in served.context.ledger]


def test_the_same_seed_gives_the_same_ledger_twice_and_at_16_at_once(place: Place) -> None:
    alone = {seed: _ledger(place, seed) for seed in range(4)}
    assert all(len(ledger) > 2 for ledger in alone.values())
    assert len({str(ledger) for ledger in alone.values()}) == 4
    assert _ledger(place, 2) == alone[2]
    seeds = [n % 4 for n in range(16)]
    with ThreadPoolExecutor(16) as pool:
        crowded = list(pool.map(lambda seed: _ledger(place, seed, own=True), seeds))
    assert crowded == [alone[seed] for seed in seeds]
