"""The file that steers a clock, and what programs are told of it."""

import asyncio
import struct
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden_words import Golden
from holdfast.model.world import Isolation
from holdfast.world.compiled import INSTALL_COMMAND, make_name
from holdfast.world.world_clock import (
    CONTROL,
    OFFSET,
    SIZE,
    Clock,
    ClockReadings,
    build_clock_environ,
    find_clock_library,
    to_nanoseconds,
)

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


def test_a_frozen_clock_stands_until_it_is_set(clock, real, tmp_path):
    clock.set(1000)
    clock.freeze()
    stood = clock.time_ns
    real.now_ns += 50
    assert clock.time_ns == stood
    assert in_file(tmp_path) == (1000, stood)
    clock.set(20)
    assert clock.time_ns == real() + 20
    assert in_file(tmp_path) == (20, 0)


def test_a_clock_can_stand_at_1970(clock):
    clock.freeze(0)
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


# What programs tell of the changes of their clock.


@pytest.fixture
def readings(tmp_path):
    readings = ClockReadings(tmp_path / "clock.reads")
    yield readings
    readings.close()


def test_what_was_told_is_kept_also_while_a_program_has_it_open(readings, tmp_path):
    with open(tmp_path / "clock.reads", "wb", buffering=0) as program:
        program.write(struct.pack("=q", 1))
        assert readings.read_reported() == {1}
        program.write(struct.pack("=qq", 1, 3))
    assert readings.read_reported() == {1, 3}
    assert readings.read_reported() == {1, 3}


def test_what_is_not_a_number_is_passed_over(readings, tmp_path):
    with open(tmp_path / "clock.reads", "wb", buffering=0) as program:
        program.write(b"abc")
    assert readings.read_reported() == frozenset()


def test_a_file_that_cannot_be_made_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        ClockReadings(tmp_path / "none" / "clock.reads")


# The library is compiled once, tried, and told of where it is not available.


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "holdfast" / "compiled"


def program(folder, text):
    folder.mkdir()
    path = folder / "cc"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(folder)


def test_it_is_compiled_once(cache, monkeypatch, tmp_path):
    found = asyncio.run(find_clock_library())
    assert isinstance(found, Path), found
    assert [*cache.iterdir()] == [found]
    assert cache.stat().st_mode & 0o777 == 0o700
    monkeypatch.setenv("PATH", str(tmp_path))
    assert asyncio.run(find_clock_library()) == found


def test_without_a_compiler_it_says_what_to_install(cache, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    found = asyncio.run(find_clock_library())
    assert isinstance(found, Isolation)
    assert (found.feature, found.enforced) == ("clock", False)
    assert INSTALL_COMMAND in found.why
    assert [*cache.iterdir()] == []


def test_a_compiler_without_headers_says_what_to_install(cache, monkeypatch, tmp_path):
    path = program(tmp_path / "bin", "echo 'x.c:1: fatal error: dlfcn.h: No such file or directory' >&2; exit 1")
    monkeypatch.setenv("PATH", path)
    found = asyncio.run(find_clock_library())
    assert isinstance(found, Isolation)
    assert "dlfcn.h" in found.why
    assert INSTALL_COMMAND in found.why
    assert [*cache.iterdir()] == []


def test_a_library_that_does_nothing_is_not_kept(cache, monkeypatch, tmp_path, golden: Golden):
    path = program(tmp_path / "bin", 'while [ "$1" != -o ]; do shift; done; : > "$2"')
    monkeypatch.setenv("PATH", path)
    found = asyncio.run(find_clock_library())
    assert isinstance(found, Isolation)
    golden(found.why)
    assert [*cache.iterdir()] == []


def test_a_cache_that_cannot_be_written_is_named(cache, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    found = asyncio.run(find_clock_library())
    assert isinstance(found, Isolation)
    assert str(tmp_path / "file") in found.why
    assert "XDG_CACHE_HOME" in found.why


# What is compiled is kept by what it is made of.


def test_another_source_option_or_machine_is_another_file(tmp_path):
    a, b = tmp_path / "a.c", tmp_path / "b.c"
    a.write_text("int one;")
    first = make_name(a, ["-O2"], "x86_64", ("glibc", "2.36"))
    b.write_text("int two;")
    others = [
        make_name(b, ["-O2"], "x86_64", ("glibc", "2.36")),
        make_name(a, ["-O3"], "x86_64", ("glibc", "2.36")),
        make_name(a, ["-O2"], "aarch64", ("glibc", "2.36")),
        make_name(a, ["-O2"], "x86_64", ("glibc", "2.39")),
    ]
    a.write_text("int three;")
    others.append(make_name(a, ["-O2"], "x86_64", ("glibc", "2.36")))
    assert len({first, *others}) == 6
    assert first.startswith("a-")
