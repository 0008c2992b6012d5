"""The file that steers a clock, and what programs are told of it."""

import struct
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.world.world_clock import CONTROL, OFFSET, SIZE, Clock, build_clock_environ, to_nanoseconds

YEAR_NS = 365 * 86_400 * 10**9


class Real:
    """A real clock that stands where it is put."""

    def __init__(self, now_ns=1_800_000_000 * 10**9):
        self.now_ns = now_ns

    def __call__(self):
        return self.now_ns


@pytest.fixture
def real():
    return Real()


@pytest.fixture
def clock(tmp_path, real):
    clock = Clock(tmp_path / "clock", now_ns=real)
    yield clock
    clock.close()


def in_file(tmp_path):
    return struct.unpack("=qqq", (tmp_path / "clock").read_bytes())[:2]


def test_a_new_clock_shows_the_real_time(clock, real, tmp_path):
    assert clock.time_ns == real()
    assert in_file(tmp_path) == (0, 0)
    assert (tmp_path / "clock").stat().st_size == SIZE
    assert (tmp_path / "clock").stat().st_mode & 0o777 == 0o644


def test_a_jump_goes_on_from_there(clock, real):
    clock.jump(5 * YEAR_NS)
    real.now_ns += 7
    assert clock.time_ns == 5 * YEAR_NS + 7
    assert not clock.is_frozen


def test_a_frozen_clock_stands_until_it_is_set(clock, real, tmp_path):
    clock.set(1000)
    clock.freeze()
    stood = clock.time_ns
    real.now_ns += 50
    assert clock.is_frozen
    assert clock.time_ns == stood
    assert in_file(tmp_path) == (1000, stood)
    clock.set(20)
    assert clock.time_ns == real() + 20
    assert in_file(tmp_path) == (20, 0)


def test_a_clock_can_stand_at_1970(clock):
    clock.freeze(0)
    assert clock.is_frozen
    assert clock.time_ns == 1


def test_what_no_clock_can_hold_is_held_as_near_as_can_be(clock, tmp_path):
    clock.jump(2**80)
    assert in_file(tmp_path)[0] == 2**62
    clock.freeze(-(2**80))
    assert in_file(tmp_path)[1] == -(2**62)


def test_a_file_that_is_there_is_not_taken(tmp_path):
    (tmp_path / "clock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        Clock(tmp_path / "clock")
    assert not (tmp_path / "elsewhere").exists()


@given(st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)), st.integers(-14 * 60, 14 * 60))
def test_a_moment_is_the_same_in_every_zone(moment, minutes):
    """Exactly: no float is in between."""
    there = timezone(timedelta(minutes=minutes))
    here = moment.replace(tzinfo=UTC)
    assert to_nanoseconds(moment) == to_nanoseconds(here) == to_nanoseconds(here.astimezone(there))
    assert here - datetime(1970, 1, 1, tzinfo=UTC) == timedelta(microseconds=to_nanoseconds(moment) / 1000)


def test_the_environment_says_how_far_away_the_start_is():
    starts = datetime(2026, 1, 1, tzinfo=UTC)
    now = starts.timestamp() + 100
    assert build_clock_environ("/c.so", starts, now, None) == {"LD_PRELOAD": "/c.so", OFFSET: str(-100 * 10**9)}
    assert build_clock_environ("/c.so", starts, now, "/run/clock")[CONTROL] == "/run/clock"


def test_each_change_has_a_number_of_its_own(clock, tmp_path):
    clock.set(5)
    assert struct.unpack("=qqq", (tmp_path / "clock").read_bytes()) == (5, 0, 0)
    assert [clock.mark_change(), clock.mark_change()] == [1, 2]
    assert struct.unpack("=qqq", (tmp_path / "clock").read_bytes()) == (5, 0, 2)
