"""The parts of the machine that every sandbox sees: read-only programs and libraries, and a small /etc of its own.

Standard library only: supervisors use it.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from glob import glob
from pathlib import Path

from holdfast.world.supervisors.messages import HOME, format_hosts_file

USER = "agent"
ID = 1000
"""The agent's user and group id inside the sandbox."""

_TOP = ("/usr", "/opt", "/nix")
_LIBRARIES = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Links into /usr on most machines, folders on some."""
_ETC_FOLDERS = ("alternatives", "crypto-policies", "fonts", "java", "java-*", "pki", "R", "ssl", "texmf")
"""Folders of the machine's /etc without which distributions' programs do not start; Debian's Java has `java-*`."""
_ETC_FILES = ("ld.so.cache", "localtime", "magic", "mime.types", "os-release", "protocols", "services", "timezone")
"""Files of the machine's /etc that programs need and that do not identify the machine's users."""


@dataclass(frozen=True)
class System:
    """What is shared with every sandbox."""

    folders: tuple[str, ...] = ()
    """Folders mounted read-only at the same path."""
    links: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Files that are copied, because they are small and many."""


def find_shared() -> System:
    """Find out once what this machine has."""
    top = [path for path in (*_TOP, *_LIBRARIES) if os.path.isdir(path) and not os.path.islink(path)]
    etc = [folder for name in _ETC_FOLDERS for folder in sorted(glob(f"/etc/{name}")) if os.path.isdir(folder)]
    links = {path: os.readlink(path) for path in _LIBRARIES if os.path.islink(path)}
    return System((*top, *etc), links, {f"/etc/{name}": data for name in _ETC_FILES if (data := _read_public(name))})


def build_own_files(hosts: Mapping[str, str]) -> dict[str, str]:
    """Return the files that Holdfast writes for the sandbox."""
    return {
        "/etc/hosts": format_hosts_file(hosts),
        "/etc/passwd": f"{USER}:x:{ID}:{ID}::{HOME}:/bin/sh\nnobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n",
        "/etc/group": f"{USER}:x:{ID}:\nnogroup:x:65534:\n",
        "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n",
        "/etc/resolv.conf": "",
        "/etc/hostname": "holdfast\n",
    }


def list_interpreters() -> dict[str, Path]:
    """Return the folders of the Python that runs Holdfast, where they are outside the system's."""
    folders = select_mounts([sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix])
    return {path: real for path, real in folders.items() if not is_in_system(path)}


def list_interpreter_links() -> dict[str, str]:
    """Return the links to the Python that runs Holdfast, which finds its own folders by following them."""
    return {at: target for at, target, _ in list_links(sys.executable)} if os.path.exists(sys.executable) else {}


def select_mounts(paths: Iterable[str], without: Sequence[str] = ()) -> dict[str, Path]:
    """Return the paths to mount, each with its source.

    A missing path is left out: a Python may list folders that do not exist. A path that is a link, or behind one, is
    also mounted where the link leads, so that links to it work inside. A path within another one, or within `without`,
    needs no mount of its own.
    """
    sources = {
        place: Path(os.path.realpath(path)) for path in paths if os.path.exists(path) for place in _list_places(path)
    }
    mounts: dict[str, Path] = {}
    for place in sorted(sources):  # a folder before its contents
        if place != "/" and not _is_within(place, (*without, *mounts)):
            mounts[place] = sources[place]
    return mounts


def is_in_system(path: str) -> bool:
    """Return whether every sandbox sees this path already."""
    linked = [path for path in _TOP if os.path.islink(path)]  # unlike the libraries, these are not shown as links
    return _is_within(path, (*_TOP, *_LIBRARIES)) and not _is_within(path, linked)


def _list_places(path: str) -> Iterator[str]:
    """Yield the path without dots, and every other path that its links lead through."""
    yield os.path.abspath(path)
    yield from (os.path.abspath(target_path) for _, _, target_path in list_links(path))


def list_links(path: str) -> Iterator[tuple[str, str, str]]:
    """Yield each link on the way to a path: its location, its target, and the complete path after following it."""
    place, at = os.path.abspath(path), ""
    for name in place.split("/")[1:]:
        at = f"{at}/{name}"
        if os.path.islink(at):
            target = os.readlink(at)
            target_path = os.path.join(os.path.dirname(at), target) + place[len(at) :]
            yield at, target, target_path
            yield from list_links(target_path)
            return


def _read_public(name: str) -> bytes:
    """Return a file of /etc that everybody may read; empty if there is none."""
    try:
        with open(f"/etc/{name}", "rb") as file:
            return file.read() if os.fstat(file.fileno()).st_mode & stat.S_IROTH else b""
    except OSError:
        return b""


def _is_within(path: str, folders: Sequence[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)
