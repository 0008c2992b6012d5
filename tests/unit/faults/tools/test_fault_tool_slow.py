from holdfast.faults.tools.slow import Slow


def test_slow_gives_the_real_reply_late(meeting):
    m = meeting(Slow(delay_ms=300), value := {"a": 1})
    assert m.run() is value
    assert (m.slept_ms, m.forwarded) == (300, 1)


def test_slow_waits_two_seconds_by_default():
    assert Slow().delay_ms == 2000
