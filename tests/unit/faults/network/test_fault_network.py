"""The faults of the network, one firing at a time."""

import asyncio
from random import Random

import pytest
from msgspec.structs import replace

from golden_words import Golden
from holdfast import plugins
from holdfast.model.delivery import Delivery
from holdfast.protocols.fault import Call, Dropped, Failed, FaultContext, Reply, TimedOut

CALL = Call("http", "https://api.example.com/v1", {}, 1)


class Met:
    """One firing: what came of it, how often the call was made, how long it slept."""

    def __init__(self, mode, size=5_000, seed=0, **settings):
        self.forwarded = 0
        self.slept = []
        self.reply = Reply("x" * size, Delivery(size=size))
        self.fault = plugins.find("faults.http", mode)(**settings)
        self.ctx = FaultContext(Random(seed), self._sleep, 1, {})

    def run(self):
        return asyncio.run(self.fault.apply(CALL, self._forward, self.ctx))

    async def _forward(self, call):
        self.forwarded += 1
        return self.reply

    async def _sleep(self, ms):
        self.slept.append(ms)


def test_latency_delays_the_reply_after_the_call():
    met = Met("latency", delay_ms=300)
    assert met.run() is met.reply
    assert (met.forwarded, met.slept) == (1, [300])


def test_latency_jitter_is_bounded_and_seeded():
    waits = []
    for seed in range(50):
        met = Met("latency", seed=seed, delay_ms=100, jitter_ms=40)
        met.run()
        waits += met.slept
    assert all(60 <= wait <= 140 for wait in waits)
    assert len(set(waits)) > 20
    again = Met("latency", seed=0, delay_ms=100, jitter_ms=40)
    again.run()
    assert again.slept == waits[:1]


def test_latency_never_waits_less_than_nothing():
    met = Met("latency", seed=3, delay_ms=0, jitter_ms=10)
    met.run()
    assert met.slept[0] >= 0


def test_bandwidth_only_slows_the_bytes():
    reply = Met("bandwidth", rate=10).run()
    assert reply.delivery.rate == 10_000
    assert reply.value == "x" * 5_000


def test_the_narrowest_of_two_bandwidths_counts():
    met = Met("bandwidth", rate=10)
    met.reply = replace(met.reply, delivery=Delivery(size=5, rate=3_000.0))
    assert met.run().delivery.rate == 3_000


@pytest.mark.parametrize(
    ("mode", "size", "settings"),
    [
        ("bandwidth", 0, {}),
        ("slicer", 64, {}),
        ("limit_data", 1_024, {}),
        ("slow_close", 10, {"delay_ms": 0}),
    ],
)
def test_settings_without_effect_return_the_same_reply(mode, size, settings):
    met = Met(mode, size=size, **settings)
    assert met.run() == met.reply


@pytest.mark.parametrize(
    ("mode", "settings", "error", "kind", "slept"),
    [
        ("down", {}, Dropped, "closed", []),
        ("timeout", {"delay_ms": 700}, TimedOut, "", [700]),  # it hangs, and then closes
        ("timeout", {}, TimedOut, "hang", []),
        ("reset_peer", {"delay_ms": 50}, Dropped, "", [50]),
        ("partition", {}, TimedOut, "hang", []),
        ("dns_failure", {}, Failed, "dns", []),
        ("tls_error", {}, Failed, "tls", []),
    ],
)
def test_a_call_that_fails_is_not_forwarded(mode, settings, error, kind, slept):
    met = Met(mode, **settings)
    with pytest.raises(error) as raised:
        met.run()
    assert (raised.value.kind, met.slept, met.forwarded) == (kind, slept, 0)
    if mode == "dns_failure":
        assert raised.value.status == 502  # what a proxy says


def test_slicer_pieces_are_seeded():
    reply = Met("slicer", average_size=10, size_variation=3, delay_ms=2).run()
    slices = reply.delivery.slices
    assert (slices.average, slices.variation, slices.delay_ms) == (10, 3, 2)
    assert Met("slicer", average_size=10).run() == Met("slicer", average_size=10).run()


def test_limit_data_closes_after_so_many_bytes():
    assert Met("limit_data", bytes=100).run().delivery.limit == 100
    tighter = Met("limit_data", bytes=100)
    tighter.reply = replace(tighter.reply, delivery=Delivery(size=5_000, limit=40))
    assert tighter.run().delivery.limit == 40


def test_slow_close_holds_the_end_back():
    assert Met("slow_close", delay_ms=250).run().delivery.close_ms == 250


def test_settings_are_named_as_for_services():
    import dataclasses

    for mode, plugin in plugins.list_plugins("faults.http"):
        service = plugins.find("faults.service", mode)
        assert [f.name for f in dataclasses.fields(plugin)] == [f.name for f in dataclasses.fields(service)]


def test_the_delivery_describes_what_the_receiver_meets(golden: Golden):
    golden([str(Met("bandwidth").run().delivery), str(Met("limit_data", bytes=3).run().delivery)])
