"""The system calls that build a sandbox, and the seccomp filters on them. Linux; standard library only."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import socket
import struct
from collections.abc import Collection, Mapping
from functools import cache

NEWNS, NEWUSER, NEWNET = 0x20000, 0x10000000, 0x40000000
RDONLY, NOSUID, NODEV, NOEXEC = 1, 2, 4, 8
BIND, REC, SLAVE = 0x1000, 0x4000, 1 << 19

_OPEN_TREE, _MOVE_MOUNT, _OPENAT2, _MOUNT_SETATTR = 428, 429, 437, 442
"""System call numbers that are the same on every architecture."""
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_AT_FDCWD, _AT_EMPTY_PATH = -100, 0x1000
_TREE_CLONE, _TREE_CLOEXEC = 1, os.O_CLOEXEC
_MOVE_EMPTY_PATH = 4
_RESOLVE_IN_ROOT = 0x10
_AT_RECURSIVE = 0x8000
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV, _ATTR_NOSYMFOLLOW, _ATTR_IDMAP = 1, 2, 4, 0x200000, 0x100000
_SIOCSIFFLAGS, _IFF_UP_RUNNING = 0x8914, 0x41
_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38
_SET_FILTER, _NEW_LISTENER, _WAIT_KILLABLE = 1, 1 << 3, 1 << 5


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


@cache
def _load_libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, call: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), call)
    return result


def _call_kernel(number: int, *arguments: int | bytes | ctypes._Pointer[_Filter]) -> int:
    call = _load_libc().syscall
    call.restype = ctypes.c_long
    long = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return int(call(ctypes.c_long(number), *long))


def unshare(flags: int) -> None:
    """Move this process into new namespaces of these kinds."""
    _check(_load_libc().unshare(flags), "unshare")


def map_self(uid: int, gid: int) -> None:
    """Map this user and group to themselves in a new user namespace; there are no others."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """Call mount(2)."""
    encoded = (os.fsencode(source), os.fsencode(target), kind.encode() or None)
    done = _load_libc().mount(*encoded, ctypes.c_ulong(flags), os.fsencode(data) or None)
    _check(done, f"mount {kind or 'bind'} at {target}")


def unmount(target: str) -> None:
    """Detach a mount immediately; the kernel drops it when nobody uses it any more."""
    _check(_load_libc().umount2(os.fsencode(target), 2), f"unmount {target}")


def clone_tree(path: str) -> int:
    """Return a detached mount of this path; the caller closes it. Needs root."""
    return _check(_call_kernel(_OPEN_TREE, _AT_FDCWD, os.fsencode(path), _TREE_CLONE | _TREE_CLOEXEC), path)


def change_owner(tree: int, mapping: int) -> None:
    """Map the owners of a cloned tree's files by a user namespace, and make the tree read-only."""
    attributes = struct.pack("=QQQQ", _ATTR_IDMAP | _ATTR_RDONLY, 0, 0, mapping)
    _check(_call_kernel(_MOUNT_SETATTR, tree, b"", _AT_EMPTY_PATH, attributes, len(attributes)), "mount_setattr")


def seal(path: str, *, below: bool = False, links: bool = True) -> None:
    """Make a mount read-only, without devices or setuid, with all mounts `below` it; `links` follows links."""
    flags = _ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV | (0 if links else _ATTR_NOSYMFOLLOW)
    attributes = struct.pack("=QQQQ", flags, 0, 0, 0)
    _check(
        _call_kernel(_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(path), _AT_RECURSIVE if below else 0, attributes, 32),
        f"seal {path}",
    )


def place_tree(tree: int, target: str) -> None:
    """Mount a cloned tree."""
    _check(_call_kernel(_MOVE_MOUNT, tree, b"", _AT_FDCWD, os.fsencode(target), _MOVE_EMPTY_PATH), target)


def open_in_root(root: int, path: bytes) -> int:
    """Open a path as seen from that root, with O_PATH; the caller closes the descriptor."""
    how = struct.pack("=QQQ", os.O_PATH | os.O_CLOEXEC, 0, _RESOLVE_IN_ROOT)
    return _check(_call_kernel(_OPENAT2, root, path, how, len(how)), "openat2")


def raise_loopback() -> None:
    """Bring `lo` up in this network namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", _IFF_UP_RUNNING))


def make_dumpable() -> None:
    """Make this process's /proc entries accessible again after a change of user."""
    _load_libc().prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)


def forgo_privileges() -> None:
    """Keep this process and its children from gaining privileges by executing a program."""
    _check(_load_libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")


def filter_calls(program: bytes) -> None:
    """Install a filter on this process and its children."""
    _filter(program, 0)


def listen_to_calls(program: bytes) -> int:
    """Install a filter and return the descriptor that reports the calls it selects.

    From Linux 5.19 on, a signal does not interrupt a call while it is examined; it may do so before that.
    """
    # Newer kernels keep the filtered call waiting through signals. Older ones reject the flag with EINVAL.
    try:
        return _filter(program, _NEW_LISTENER | _WAIT_KILLABLE)
    except OSError as refused:
        if refused.errno != errno.EINVAL:
            raise
    return _filter(program, _NEW_LISTENER)


def _filter(program: bytes, flags: int) -> int:
    number = _SECCOMP.get(platform.machine())
    if number is None:
        raise OSError(38, "no seccomp number is known", platform.machine())
    filter_program = ctypes.pointer(_Filter(len(program) // 8, program))
    return _check(_call_kernel(number, _SET_FILTER, flags, filter_program), "seccomp")


_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_AT, _THIRD_AT = 0, 4, 16, 32
_ALLOW, _REFUSE, _NOTIFY = 0x7FFF0000, 0x00050000, 0x7FC00000
_X32 = 0x40000000
"""Numbers from here on belong to the x32 table of x86_64."""

FAMILIES = (int(socket.AF_UNIX), int(socket.AF_INET), int(socket.AF_INET6))
_NETLINK, _NETLINK_ROUTE = 16, 0
BANNED = ("io_uring_setup", "add_key", "request_key", "keyctl", "bpf", "perf_event_open", "userfaultfd")
"""io_uring can open sockets that the filter does not see; keys are shared with the host; the rest only serve attacks.
"""

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_NUMBERS = {  # on x86_64 and aarch64
    "socket": (41, 198),
    "socketpair": (53, 199),
    "execve": (59, 221),
    "execveat": (322, 281),
    "exit_group": (231, 94),
    "io_uring_setup": (425, 425),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
}
NUMBERS: Mapping[str, Mapping[str, int]] = {
    machine: {name: numbers[column] for name, numbers in _NUMBERS.items()}
    for column, machine in enumerate(ARCHITECTURES)
}


def can_filter(machine: str = "") -> bool:
    """Return whether filters can be built for this architecture."""
    return (machine or platform.machine()) in NUMBERS


@cache
def build_guard(machine: str = "") -> bytes:
    """Return the filter of every sandbox: native calls only, no banned ones, sockets of the usual families."""
    machine = machine or platform.machine()
    numbers = NUMBERS[machine]
    return b"".join(
        [
            # The architecture is checked first: a 32-bit call has other numbers, so comparing numbers alone would let a
            # banned call pass under its 32-bit number. A refused call returns ENOSYS, as on a kernel without it:
            # programs then fall back instead of crashing.
            _encode_step(_LOAD, _ARCHITECTURE_AT),
            _encode_step(_EQUAL, ARCHITECTURES[machine], no=0, yes=1),
            _encode_refusal(errno.ENOSYS),
            _encode_step(_LOAD, _NUMBER_AT),
            *(
                [_encode_step(_AT_LEAST, _X32, yes=0, no=1), _encode_refusal(errno.ENOSYS)]
                if machine == "x86_64"
                else []
            ),
            *(
                part
                for name in BANNED
                for part in (_encode_step(_EQUAL, numbers[name], yes=0, no=1), _encode_refusal(errno.ENOSYS))
            ),
            # Jumps are relative. `yes=2` skips the next two instructions to the checks of the socket family, and
            # everything else reaches the `allow`.
            _encode_step(_EQUAL, numbers["socket"], yes=2, no=0),
            _encode_step(_EQUAL, numbers["socketpair"], yes=1, no=0),
            _encode_step(_RETURN, _ALLOW),
            *_filter_families(),
        ]
    )


def get_program_calls(machine: str = "") -> tuple[int, int, int]:
    """Return the numbers of execve, execveat and exit_group."""
    numbers = NUMBERS[machine or platform.machine()]
    return numbers["execve"], numbers["execveat"], numbers["exit_group"]


def build_report_filter(machine: str = "", more: Collection[int] = ()) -> bytes:
    """Return a filter that reports every exec, every exit and `more` before they happen; all other calls pass."""
    machine = machine or platform.machine()
    numbers = sorted({*get_program_calls(machine), *more})
    return b"".join(
        [
            _encode_step(_LOAD, _ARCHITECTURE_AT),
            _encode_step(_EQUAL, ARCHITECTURES[machine], yes=0, no=len(numbers) + 1),
            _encode_step(_LOAD, _NUMBER_AT),
            # A match jumps over the remaining comparisons and the `allow` to the last instruction, which reports the
            # call.
            *(_encode_step(_EQUAL, number, yes=len(numbers) - n, no=0) for n, number in enumerate(numbers)),
            _encode_step(_RETURN, _ALLOW),
            _encode_step(_RETURN, _NOTIFY),
        ]
    )


def _filter_families() -> list[bytes]:
    """Filter sockets by family, the first argument; netlink is limited to asking for addresses."""
    steps = [_encode_step(_LOAD, _FIRST_AT)]
    for family in FAMILIES:
        steps += [_encode_step(_EQUAL, family, yes=0, no=1), _encode_step(_RETURN, _ALLOW)]
    return [
        *steps,
        _encode_step(_EQUAL, _NETLINK, yes=1, no=0),
        _encode_refusal(errno.EAFNOSUPPORT),
        _encode_step(_LOAD, _THIRD_AT),
        _encode_step(_EQUAL, _NETLINK_ROUTE, yes=1, no=0),
        _encode_refusal(errno.EPROTONOSUPPORT),
        _encode_step(_RETURN, _ALLOW),
    ]


def _encode_step(code: int, value: int, *, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)


def _encode_refusal(number: int) -> bytes:
    return _encode_step(_RETURN, _REFUSE | number)
