"""What programs tell of the changes of their clock."""

import struct

import pytest

from holdfast.world.world_clock import ClockReadings


@pytest.fixture
def readings(tmp_path):
    readings = ClockReadings(tmp_path / "clock.reads")
    yield readings
    readings.close()


def test_nothing_is_reported_at_first(readings):
    assert readings.read_reported() == frozenset()


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
