"""Calls on files: their numbers, and what they need."""

import os

import pytest

from holdfast.world.sandbox import stopped_calls
from holdfast.world.sandbox.kernel import NUMBERS
from holdfast.world.sandbox.stopped_calls import (
    AT_CWD,
    list_path_calls,
    list_reported_calls,
    list_uses,
    list_write_calls,
)

MACHINES = list(NUMBERS)


def number(name):
    """Of a call that both machines have, or only this one."""
    return next(n for n, paths in list_path_calls().items() if paths is stopped_calls._CALLS[name].paths)


def only(name, *arguments):
    (found,) = list_uses(number(name), [*arguments, *[0] * (6 - len(arguments))])
    return found


@pytest.mark.parametrize("machine", MACHINES)
def test_no_two_calls_share_a_number(machine):
    at = MACHINES.index(machine)
    named = [call.numbers[at] for call in stopped_calls._CALLS.values() if call.numbers[at] is not None]
    everything = [*named, *list_write_calls(machine)]
    assert len(everything) == len(set(everything))
    assert len(list_path_calls(machine)) == len(named)
    assert {NUMBERS[machine][name] for name in ("execve", "execveat")} <= set(named)


def test_only_what_is_watched_is_reported():
    assert list_reported_calls(()) == frozenset()
    assert not list_reported_calls(("paths",)) & set(list_write_calls())
    assert number("openat") in list_reported_calls(("disk",))
    assert number("newfstatat") not in list_reported_calls(("disk",))


@pytest.mark.parametrize(
    ("flags", "needs"),
    [
        (os.O_RDONLY, {"exists", "opens", "follows"}),
        (os.O_PATH, {"exists", "follows"}),
        (os.O_PATH | os.O_NOFOLLOW, {"exists"}),
        (os.O_WRONLY, {"exists", "opens", "writes", "follows", "keeps"}),
        (os.O_RDONLY | os.O_TRUNC, {"exists", "opens", "writes", "follows"}),
        (os.O_RDWR | os.O_CREAT | os.O_TRUNC, {"opens", "writes", "makes", "follows"}),
        (os.O_WRONLY | os.O_CREAT | os.O_APPEND, {"opens", "writes", "makes", "follows", "keeps"}),
        (os.O_WRONLY | os.O_CREAT | os.O_EXCL, {"makes", "keeps"}),
    ],
)
def test_what_opening_needs(flags, needs):
    found = only("openat", 7, 4711, flags)
    assert (found.folder, found.name) == (7, 4711)
    assert {name for name, value in found._asdict().items() if value is True} == needs


def test_access_needs_what_it_asks_for():
    assert not only("faccessat", AT_CWD, 1, os.F_OK).opens
    assert only("faccessat", AT_CWD, 1, os.R_OK).opens
    assert not only("faccessat", AT_CWD, 1, os.R_OK).writes
    assert only("faccessat", AT_CWD, 1, os.W_OK).writes


def test_a_call_without_a_folder_starts_at_the_working_one():
    assert only("chdir", 4711).folder == AT_CWD
    assert only("openat", 2**64 - 100, 4711, 0).folder == AT_CWD


def test_to_rename_is_to_remove_and_to_make():
    old, new = list_uses(number("renameat"), [3, 30, 4, 40, 0, 0])
    assert (old.folder, old.name, old.removes, old.makes) == (3, 30, True, False)
    assert (new.folder, new.name, new.removes, new.makes) == (4, 40, False, True)


def test_a_call_on_no_path_needs_nothing():
    assert [*list_uses(100_000, [0] * 6)] == []
