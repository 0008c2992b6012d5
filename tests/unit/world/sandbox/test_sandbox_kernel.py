"""The filters, run by a small interpreter of their own."""

import errno
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.world.sandbox import kernel
from holdfast.world.sandbox.stopped_calls import list_reported_calls

ALLOW, REFUSE, TELL = 0x7FFF0000, 0x00050000, 0x7FC00000
MACHINES = list(kernel.NUMBERS)


def verdict(program, machine, number, *arguments, architecture=None):
    data = struct.pack(
        "=iIQ6Q", number, architecture or kernel.ARCHITECTURES[machine], 0, *arguments, *[0] * (6 - len(arguments))
    )
    steps = list(struct.iter_unpack("=HBBI", program))
    held, at = 0, 0
    while True:
        code, yes, no, value = steps[at]
        at += 1
        if code == 0x20:
            held = struct.unpack_from("=I", data, value)[0]
        elif code == 0x06:
            return value
        else:
            at += yes if (held == value if code == 0x15 else held >= value) else no


@pytest.mark.parametrize("machine", MACHINES)
@given(family=st.integers(0, 100), call=st.sampled_from(["socket", "socketpair"]))
def test_only_usual_families_pass(machine, family, call):
    got = verdict(kernel.build_guard(machine), machine, kernel.NUMBERS[machine][call], family, 1, 0)
    assert got == (ALLOW if family in (1, 2, 10, 16) else REFUSE | errno.EAFNOSUPPORT)


@pytest.mark.parametrize("machine", MACHINES)
@given(protocol=st.integers(1, 50))
def test_netlink_is_for_addresses_only(machine, protocol):
    got = verdict(kernel.build_guard(machine), machine, kernel.NUMBERS[machine]["socket"], 16, 3, protocol)
    assert got == REFUSE | errno.EPROTONOSUPPORT


@pytest.mark.parametrize("machine", MACHINES)
def test_banned_calls_and_foreign_ones_are_refused(machine):
    guard = kernel.build_guard(machine)
    for name in kernel.BANNED:
        assert verdict(guard, machine, kernel.NUMBERS[machine][name]) == REFUSE | errno.ENOSYS
    assert verdict(guard, machine, 1, architecture=0x40000003) == REFUSE | errno.ENOSYS


def test_the_second_table_of_x86_is_refused():
    assert verdict(kernel.build_guard("x86_64"), "x86_64", 0x40000000 + 41, 40) == REFUSE | errno.ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
@given(number=st.integers(0, 1000))
def test_programs_are_reported_and_all_else_passes(machine, number):
    executing = {kernel.NUMBERS[machine][name] for name in ("execve", "execveat", "exit_group")}
    assert verdict(kernel.build_report_filter(machine), machine, number) == (TELL if number in executing else ALLOW)
    refused = {kernel.NUMBERS[machine][name] for name in (*kernel.BANNED, "socket", "socketpair")}
    if number not in refused:
        assert verdict(kernel.build_guard(machine), machine, number) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("watched", [("paths",), ("disk",), ("paths", "disk")])
def test_calls_on_files_are_told_where_they_are_watched(machine, watched):
    more = list_reported_calls(watched, machine)
    program = kernel.build_report_filter(machine, more)
    told = {number for number in range(600) if verdict(program, machine, number) == TELL}
    assert told == {*more, *kernel.get_program_calls(machine)}
    assert verdict(program, machine, min(more), architecture=0x40000003) == ALLOW


def test_a_machine_without_numbers_is_not_known():
    assert not kernel.can_filter("riscv64")
