"""What every sandbox sees of the machine: read-only programs and libraries, and a small /etc of its own.

Standard library only: holders use it.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

USER, HOME = "agent", "/workspace"
ID = 1000
"""The agent's user and group, as seen inside."""

_TOP = ("/usr", "/opt", "/nix")
_LIBRARIES = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Links into /usr on most machines, folders on some."""
_ETC_FOLDERS = ("alternatives", "crypto-policies", "fonts", "java", "pki", "ssl")
_ETC_FILES = ("ld.so.cache", "localtime", "magic", "mime.types", "os-release", "protocols", "services", "timezone")
"""Of the machine's /etc: what programs need to work, nothing that says who uses the machine."""


@dataclass(frozen=True)
class System:
    """What is shared with every sandbox."""

    folders: tuple[str, ...] = ()
    """At the same path, read-only."""
    links: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Copied: small, and there are many."""


def shared() -> System:
    """What this machine has of it, read once."""
    top = [path for path in (*_TOP, *_LIBRARIES) if os.path.isdir(path) and not os.path.islink(path)]
    etc = [f"/etc/{name}" for name in _ETC_FOLDERS if os.path.isdir(f"/etc/{name}")]
    links = {path: os.readlink(path) for path in _LIBRARIES if os.path.islink(path)}
    return System((*top, *etc), links, {f"/etc/{name}": data for name in _ETC_FILES if (data := _public(name))})


def own_files(hosts: Mapping[str, str]) -> dict[str, str]:
    """The files that are the sandbox's own."""
    names: dict[str, list[str]] = {"127.0.0.1": ["localhost", "holdfast"]}
    for name, address in hosts.items():
        names.setdefault(address, []).append(name)
    return {
        "/etc/hosts": "".join(f"{address} {' '.join(all)}\n" for address, all in names.items()) + "::1 localhost\n",
        "/etc/passwd": f"{USER}:x:{ID}:{ID}::{HOME}:/bin/sh\nnobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n",
        "/etc/group": f"{USER}:x:{ID}:\nnogroup:x:65534:\n",
        "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n",
        "/etc/resolv.conf": "",
        "/etc/hostname": "holdfast\n",
    }


def interpreters() -> dict[str, Path]:
    """The folders of the Python that runs Holdfast, where they are no part of the system."""
    found = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    return {path: Path(path) for path in sorted(found) if path != "/" and not in_system(path)}


def in_system(path: str) -> bool:
    """Whether every sandbox sees it anyway."""
    return _within(path, (*_TOP, *_LIBRARIES))


def _public(name: str) -> bytes:
    """A file of /etc that everybody may read; nothing if there is none."""
    try:
        with open(f"/etc/{name}", "rb") as file:
            return file.read() if os.fstat(file.fileno()).st_mode & stat.S_IROTH else b""
    except OSError:
        return b""


def _within(path: str, folders: Sequence[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)
