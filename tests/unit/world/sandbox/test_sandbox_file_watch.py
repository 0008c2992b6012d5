"""When a call on a file is one that a fault makes fail."""

import stat
from dataclasses import replace
from types import SimpleNamespace

import pytest

from holdfast.world.sandbox.file_watch import FileWatch, is_blocked
from holdfast.world.sandbox.stopped_calls import FileUse
from holdfast.world.supervisors.messages import WatchOrder, read_order, write_order

LOOK = FileUse(0, 0, exists=True)
READ = FileUse(0, 0, exists=True, opens=True)
WRITE = FileUse(0, 0, exists=True, opens=True, writes=True, keeps=True)
CREATE = FileUse(0, 0, opens=True, writes=True, makes=True)
MAKE = FileUse(0, 0, makes=True, follows=False)
REMOVE = FileUse(0, 0, exists=True, removes=True, follows=False)
FILE, FOLDER = stat.S_IFREG, stat.S_IFDIR


class View:
    """Files by path in the workspace, with their modes."""

    def __init__(self, **modes):
        self.modes = {b"/workspace": FOLDER | 0o755}
        self.modes |= {f"/workspace/{name}".replace("__", "/").encode(): mode for name, mode in modes.items()}

    def lstat(self, path):
        mode = self.modes.get(path)
        return None if mode is None else SimpleNamespace(st_mode=mode, st_size=5)


def fault(kind, path, *spared):
    return WatchOrder.from_workspace(kind, path, spared, 1)


def met(watch, use, path, **modes):
    return is_blocked(watch, use, b"/workspace/" + path, View(**modes))


def test_what_is_gone_cannot_be_used():
    for path in [b"d", b"d/f", b"d/e/../f"]:
        for use in [LOOK, READ, WRITE, REMOVE]:
            assert met(fault("gone", "d"), use, path), (path, use)
            assert not met(fault("gone", "d"), use, path, d=FOLDER | 0o755), (path, use)
            assert not met(fault("gone", "other"), use, path), (path, use)
            assert not met(fault("gone", "d/f/g"), use, path), (path, use)


def test_what_is_gone_can_be_made_again_but_nothing_in_it():
    for use in (MAKE, CREATE):
        assert not met(fault("gone", "d"), use, b"d")
        assert met(fault("gone", "d"), use, b"d/f")
    assert not met(fault("gone", "d"), LOOK, b"data")


def test_a_file_without_permissions_can_be_looked_at_and_not_opened():
    denied = fault("denied", "f")
    assert met(denied, READ, b"f", f=FILE)
    assert met(denied, CREATE, b"f", f=FILE)
    assert not met(denied, LOOK, b"f", f=FILE)
    assert not met(denied, REMOVE, b"f", f=FILE)
    assert not met(denied, READ, b"f", f=FILE | 0o400)
    assert not met(denied, READ, b"f")
    assert not met(fault("denied", "f", "f"), READ, b"f", f=FILE)


@pytest.mark.parametrize("use", [LOOK, READ, MAKE, REMOVE])
def test_nothing_in_a_folder_without_permissions_can_be_reached(use):
    assert met(fault("denied", "d"), use, b"d/f", d=FOLDER)
    assert not met(fault("denied", "d"), use, b"d/f", d=FOLDER | 0o700)


def test_what_is_read_only_can_be_read():
    sealed = {"d": FOLDER | 0o555, "d__f": FILE | 0o444}
    watch = fault("read_only", "d")
    assert [met(watch, use, b"d/f", **sealed) for use in (LOOK, READ, WRITE, CREATE, REMOVE)] == [False] * 2 + [
        True
    ] * 3
    assert [met(watch, use, b"d/new", **sealed) for use in (LOOK, WRITE, CREATE, MAKE, REMOVE)] == [
        False,
        False,
        True,
        True,
        False,
    ]
    assert not met(watch, MAKE, b"d/f", **sealed)  # it is there already, so that is the error
    assert not met(watch, REMOVE, b"d", **sealed)  # the folder that it is in is as it was


def test_what_was_read_only_before_is_not_the_faults_doing():
    sealed = {"d": FOLDER | 0o555, "d__f": FILE | 0o444, "d__g": FILE | 0o444}
    watch = fault("read_only", ".", "d/f", "d")
    assert not met(watch, WRITE, b"d/f", **sealed)
    assert not met(watch, MAKE, b"d/new", **sealed)
    assert met(watch, WRITE, b"d/g", **sealed)


def test_a_file_that_must_be_copied_does_not_fit_on_a_full_disk(tmp_path, monkeypatch):
    monkeypatch.setattr("holdfast.world.sandbox.file_watch.count_free_pages", lambda path: 0)
    watch = replace(WatchOrder.from_workspace("full", ".", (), 1), upper=str(tmp_path))
    assert met(watch, WRITE, b"f", f=FILE | 0o644)
    assert not met(watch, READ, b"f", f=FILE | 0o644)
    assert not met(watch, CREATE, b"f", f=FILE | 0o644)  # it is emptied
    assert not met(watch, WRITE, b"f")
    (tmp_path / "f").touch()
    assert not met(watch, WRITE, b"f", f=FILE | 0o644)
    monkeypatch.setattr("holdfast.world.sandbox.file_watch.count_free_pages", lambda path: 1)
    assert not met(watch, WRITE, b"g", g=FILE | 0o644)


def test_our_own_processes_count_for_nothing(tmp_path):
    """This process is in the name space of whoever watches."""
    import ctypes
    import os

    from holdfast.world.sandbox.stopped_calls import list_path_calls

    watch = FileWatch(b"/bin/sh")
    watch.watches.append(WatchOrder.from_workspace("gone", "f", (), 1))
    name = ctypes.create_string_buffer(b"/workspace/f")
    openat = next(n for n, paths in list_path_calls().items() if paths[0].kind == "open" and paths[0].folder == 0)
    assert watch.find_hits(os.getpid(), openat, [0, ctypes.addressof(name), 0, 0, 0, 0]) == []
    assert watch.find_hits(2**22 + 1, openat, [0, 0, 0, 0, 0, 0]) == []


def test_an_order_is_handed_over_whole():
    order = WatchOrder.from_workspace("read_only", "a/\udcff", (f"p{n}" for n in range(10_000)))
    assert read_order(write_order(order)) == order
