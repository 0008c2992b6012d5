"""What every sandbox sees of the machine: read-only programs and libraries, and a small /etc of its own.

Standard library only: supervisors use it.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.world.supervisors.conventions import HOME, hosts_file

USER = "agent"
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
    return {
        "/etc/hosts": hosts_file(hosts),
        "/etc/passwd": f"{USER}:x:{ID}:{ID}::{HOME}:/bin/sh\nnobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n",
        "/etc/group": f"{USER}:x:{ID}:\nnogroup:x:65534:\n",
        "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n",
        "/etc/resolv.conf": "",
        "/etc/hostname": "holdfast\n",
    }


def interpreters() -> dict[str, Path]:
    """The folders of the Python that runs Holdfast, where they are no part of the system."""
    found = present([sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix])
    return {path: real for path, real in found.items() if not in_system(path)}


def interpreter_links() -> dict[str, str]:
    """The links that lead to the Python that runs Holdfast: it finds its own folders by following them."""
    return {at: says for at, says, _ in links_on(sys.executable)} if os.path.exists(sys.executable) else {}


def present(paths: Iterable[str], without: Sequence[str] = ()) -> dict[str, Path]:
    """What there is to show of these paths: where each is, by the path it is to be seen at.

    A path that is not there is left out: a Python names folders that nobody made. One that is a link, or lies behind
    one, is seen where the link leads, too, or a link to it would lead nowhere inside. What lies in another, or in
    `without`, is seen there.
    """
    found = {place: Path(os.path.realpath(path)) for path in paths if os.path.exists(path) for place in _places(path)}
    kept: dict[str, Path] = {}
    for place in sorted(found):  # a folder before what lies in it
        if place != "/" and not _within(place, (*without, *kept)):
            kept[place] = found[place]
    return kept


def in_system(path: str) -> bool:
    """Whether every sandbox sees it anyway."""
    linked = [path for path in _TOP if os.path.islink(path)]  # unlike the libraries, not shown as the links they are
    return _within(path, (*_TOP, *_LIBRARIES)) and not _within(path, linked)


def _places(path: str) -> Iterator[str]:
    """The path without dots, and every further one that its links lead through."""
    yield os.path.abspath(path)
    yield from (os.path.abspath(beyond) for _, _, beyond in links_on(path))


def links_on(path: str) -> Iterator[tuple[str, str, str]]:
    """Each link on the way to what a path names: where it is, what it says, and the whole path with it followed."""
    place, at = os.path.abspath(path), ""
    for name in place.split("/")[1:]:
        at = f"{at}/{name}"
        if os.path.islink(at):
            says = os.readlink(at)
            beyond = os.path.join(os.path.dirname(at), says) + place[len(at) :]
            yield at, says, beyond
            yield from links_on(beyond)
            return


def _public(name: str) -> bytes:
    """A file of /etc that everybody may read; nothing if there is none."""
    try:
        with open(f"/etc/{name}", "rb") as file:
            return file.read() if os.fstat(file.fileno()).st_mode & stat.S_IROTH else b""
    except OSError:
        return b""


def _within(path: str, folders: Sequence[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)
