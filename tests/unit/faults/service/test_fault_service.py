"""The faults of services, one firing at a time."""

import asyncio
from random import Random

import pytest

from holdfast import plugins
from holdfast.protocols.fault import Call, Dropped, Failed, FaultContext, Reply, read_traits


class Met:
    """One firing: what came of it, how often the call was made, how long it slept."""

    def __init__(self, mode, n=1, arguments=(), **settings):
        self.forwarded = 0
        self.slept = []
        self.fault = plugins.find("faults.service", mode)(**settings)
        self.ctx = FaultContext(Random(0), self._sleep, n, {})
        self.call = Call("service", "db", dict(arguments), n)

    def run(self):
        return asyncio.run(self.fault.apply(self.call, self._forward, self.ctx))

    def fails(self, kind):
        with pytest.raises(kind) as raised:
            self.run()
        return raised.value.kind

    async def _forward(self, call):
        self.forwarded += 1
        return Reply("INSERT 0 1")

    async def _sleep(self, ms):
        self.slept.append(ms)


def test_latency_is_put_on_the_connection():
    reply = Met("latency", delay_ms=80, jitter_ms=5).run()
    (lag,) = reply.delivery.lags
    assert (lag.delay_ms, lag.jitter_ms) == (80, 5)
    assert Met("latency", delay_ms=0).run().delivery.lags == ()


def test_down_at_start_counts_connections():
    assert Met("down_at_start", n=3).fails(Dropped) == "closed"
    assert Met("down_at_start", n=4).run().value == "INSERT 0 1"
    assert Met("down_at_start", n=2, connections=1).run()


def test_down_at_start_looks_at_the_time():
    early, late = {"since_ms": 99.0}, {"since_ms": 100.0}
    assert Met("down_at_start", n=9, arguments=early, for_ms=100).fails(Dropped) == "closed"
    assert Met("down_at_start", n=1, arguments=late, for_ms=100).run()


@pytest.mark.parametrize(
    ("settings", "ends", "forwarded"),
    [
        ({"at": "write"}, False, 1),
        ({"at": "write"}, True, 0),
        ({"at": "commit"}, True, 0),
        ({"at": "commit", "outcome": "done"}, True, 1),
    ],
)
def test_killed_mid_transaction_sends_what_its_outcome_needs(settings, ends, forwarded):
    met = Met("killed_mid_transaction", arguments={"ends": ends}, **settings)
    assert met.fails(Dropped) == "closed"
    assert (met.forwarded, read_traits(met.fault).step) == (forwarded, settings["at"])


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        ("connections_exhausted", "too_many_connections"),
        ("lock_wait", "lock_timeout"),
        ("read_only", "read_only"),
        ("serialization_failure", "serialization_failure"),
    ],
)
def test_refusals_name_their_kind_and_ask_nobody(mode, kind):
    met = Met(mode)
    assert met.fails(Failed) == kind
    assert met.forwarded == 0


def test_waits_come_before_what_follows():
    slow = Met("slow_query", delay_ms=70)
    assert slow.run().value == "INSERT 0 1"
    assert (slow.slept, slow.forwarded) == ([70], 1)
    lock = Met("lock_wait", delay_ms=30)
    lock.fails(Failed)
    assert lock.slept == [30]


STEPS = {
    "dns_failure": "name",
    "tls_error": "tls",
    "slow_query": "statement",
    "lock_wait": "write",
    "read_only": "write",
    "killed_mid_transaction": "write",
    "serialization_failure": "commit",
}


@pytest.mark.parametrize(("mode", "plugin"), list(plugins.list_plugins("faults.service")))
def test_every_fault_acts_at_its_step(mode, plugin):
    assert read_traits(plugin()).step == STEPS.get(mode, "connect")
