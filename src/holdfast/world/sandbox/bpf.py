"""Filters on system calls, as programs for the kernel: what no sandbox may call, and what is told to us."""

from __future__ import annotations

import errno
import platform
import socket
import struct
from collections.abc import Collection, Mapping
from functools import cache

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_AT, _THIRD_AT = 0, 4, 16, 32
_ALLOW, _REFUSE, _TELL = 0x7FFF0000, 0x00050000, 0x7FC00000
_X32 = 0x40000000
"""Numbers from here on are those of a second table on x86_64."""

FAMILIES = (int(socket.AF_UNIX), int(socket.AF_INET), int(socket.AF_INET6))
_NETLINK, _NETLINK_ROUTE = 16, 0
BANNED = ("io_uring_setup", "add_key", "request_key", "keyctl", "bpf", "perf_event_open", "userfaultfd")
"""io_uring can open sockets behind a filter's back; keys are shared with the host; the rest only serve attacks."""

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
NUMBERS: Mapping[str, Mapping[str, int]] = {
    "x86_64": {
        "socket": 41,
        "socketpair": 53,
        "execve": 59,
        "execveat": 322,
        "exit_group": 231,
        "io_uring_setup": 425,
        "add_key": 248,
        "request_key": 249,
        "keyctl": 250,
        "bpf": 321,
        "perf_event_open": 298,
        "userfaultfd": 323,
    },
    "aarch64": {
        "socket": 198,
        "socketpair": 199,
        "execve": 221,
        "execveat": 281,
        "exit_group": 94,
        "io_uring_setup": 425,
        "add_key": 217,
        "request_key": 218,
        "keyctl": 219,
        "bpf": 280,
        "perf_event_open": 241,
        "userfaultfd": 282,
    },
}


def known(machine: str = "") -> bool:
    """Whether filters can be built for this machine."""
    return (machine or platform.machine()) in NUMBERS


@cache
def guard(machine: str = "") -> bytes:
    """What holds in every sandbox: native calls only, no banned ones, sockets of the usual families."""
    machine = machine or platform.machine()
    numbers = NUMBERS[machine]
    return b"".join(
        [
            _step(_LOAD, _ARCHITECTURE_AT),
            _step(_EQUAL, ARCHITECTURES[machine], no=0, yes=1),
            _refuse(errno.ENOSYS),
            _step(_LOAD, _NUMBER_AT),
            *([_step(_AT_LEAST, _X32, yes=0, no=1), _refuse(errno.ENOSYS)] if machine == "x86_64" else []),
            *(part for name in BANNED for part in (_step(_EQUAL, numbers[name], yes=0, no=1), _refuse(errno.ENOSYS))),
            _step(_EQUAL, numbers["socket"], yes=2, no=0),
            _step(_EQUAL, numbers["socketpair"], yes=1, no=0),
            _step(_RETURN, _ALLOW),
            *_families(),
        ]
    )


def program_calls(machine: str = "") -> tuple[int, int, int]:
    """The numbers of execve, execveat and exit_group."""
    numbers = NUMBERS[machine or platform.machine()]
    return numbers["execve"], numbers["execveat"], numbers["exit_group"]


def tell_of_programs(machine: str = "", more: Collection[int] = ()) -> bytes:
    """Every attempt to execute a program, every exit and `more` are told before they are made; all else passes."""
    machine = machine or platform.machine()
    numbers = sorted({*program_calls(machine), *more})
    return b"".join(
        [
            _step(_LOAD, _ARCHITECTURE_AT),
            _step(_EQUAL, ARCHITECTURES[machine], yes=0, no=len(numbers) + 1),
            _step(_LOAD, _NUMBER_AT),
            *(_step(_EQUAL, number, yes=len(numbers) - n, no=0) for n, number in enumerate(numbers)),
            _step(_RETURN, _ALLOW),
            _step(_RETURN, _TELL),
        ]
    )


def _families() -> list[bytes]:
    """The family is the first argument; netlink is for asking after addresses only."""
    steps = [_step(_LOAD, _FIRST_AT)]
    for family in FAMILIES:
        steps += [_step(_EQUAL, family, yes=0, no=1), _step(_RETURN, _ALLOW)]
    return [
        *steps,
        _step(_EQUAL, _NETLINK, yes=1, no=0),
        _refuse(errno.EAFNOSUPPORT),
        _step(_LOAD, _THIRD_AT),
        _step(_EQUAL, _NETLINK_ROUTE, yes=1, no=0),
        _refuse(errno.EPROTONOSUPPORT),
        _step(_RETURN, _ALLOW),
    ]


def _step(code: int, value: int, *, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)


def _refuse(number: int) -> bytes:
    return _step(_RETURN, _REFUSE | number)
