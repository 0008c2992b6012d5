"""The paths of a process, and its writes: tried on this one."""

import ctypes
import os
import struct
from contextlib import ExitStack
from tempfile import TemporaryDirectory, TemporaryFile
from types import SimpleNamespace

import pytest

from holdfast.world.sandbox.file_watch import InsideView, count_needed_pages, is_out_of_room
from holdfast.world.sandbox.stopped_calls import AT_CWD, FileUse

MUCH = 2**50


@pytest.fixture
def view():
    view = InsideView(os.getpid())
    yield view
    view.close()


@pytest.fixture
def top(tmp_path):
    real = tmp_path.resolve()
    (real / "d").mkdir()
    (real / "d" / "f").write_text("x")
    return os.fsencode(real)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (b"d/f", b"d/f"),
        (b"d/../d/./f", b"d/f"),
        (b"d/none", b"d/none"),
        (b"none/more/f", b"none/more/f"),
        (b"d//f/", b"d/f"),
        (b"", b""),
    ],
)
def test_a_path_is_followed_as_far_as_there_is_something(view, top, path, found):
    assert view.resolve(top + b"/" + path) == (top + b"/" + found).rstrip(b"/")


@pytest.mark.parametrize(
    ("says", "path", "found"),
    [
        ("d/f", b"link", b"d/f"),
        ("d/none", b"link", b"d/none"),
        ("none", b"link/f", b"none/f"),
        ("../{name}/d", b"link/f", b"d/f"),
        ("{top}/none", b"link/f", b"none/f"),
    ],
)
def test_links_are_followed_also_to_where_nothing_is(view, top, says, path, found):
    os.symlink(says.format(top=os.fsdecode(top), name=os.path.basename(os.fsdecode(top))), top + b"/link")
    assert os.path.normpath(view.resolve(top + b"/" + path)) == top + b"/" + found


def test_a_link_itself_is_not_followed(view, top):
    os.symlink("d/f", top + b"/link")
    assert view.resolve(top + b"/link", follows=False) == top + b"/link"
    os.symlink("nowhere", top + b"/loose")
    assert view.resolve(top + b"/loose", follows=False) == top + b"/loose"


def test_links_that_go_round_lead_nowhere(view, top):
    os.symlink("b", top + b"/a")
    os.symlink("a", top + b"/b")
    assert view.resolve(top + b"/a") is None


def test_a_path_is_read_from_memory_and_starts_at_its_folder(view, top):
    fd = os.open(top, os.O_RDONLY)
    try:
        name = ctypes.create_string_buffer(b"d/f")
        assert view.find_target(FileUse(fd, ctypes.addressof(name))) == top + b"/d/f"
        system = ctypes.create_string_buffer(b"/usr/bin/env")
        assert view.find_target(FileUse(AT_CWD, ctypes.addressof(system))) is None
        empty = ctypes.create_string_buffer(b"")
        assert view.find_target(FileUse(fd, ctypes.addressof(empty))) is None
    finally:
        os.close(fd)


def test_a_process_that_is_gone_has_no_view():
    with pytest.raises(FileNotFoundError):
        InsideView(2**22 + 1)


def seen(size, blocks):
    return SimpleNamespace(st_size=size, st_blocks=blocks)


@pytest.mark.parametrize(
    ("size", "blocks", "begin", "more", "pages"),
    [
        (0, 0, 0, 1, 1),
        (6, 8, 6, 10, 0),
        (6, 8, 6, 4096, 1),
        (4096, 8, 4096, 8192, 2),
        (40960, 0, 0, 4096, 0),
        (0, 0, 40960, 1, 1),
        (0, 80, 0, 40960, 0),
    ],
)
def test_how_many_pages_a_write_needs(size, blocks, begin, more, pages):
    assert max(0, count_needed_pages(seen(size, blocks), begin, more)) == pages


@pytest.fixture
def opened():
    """Descriptors of a file on the disk, of one to copy from, and of no file."""
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory(dir="/tmp"))
        file = stack.enter_context(open(f"{folder}/f", "wb"))
        source = stack.enter_context(open(f"{folder}/source", "w+b", buffering=0))
        null = stack.enter_context(open("/dev/null", "wb"))
        source.write(b"x" * 10)
        source.seek(0)
        yield file.fileno(), source.fileno(), null.fileno()


@pytest.fixture
def pieces():
    """Two buffers, as a call has them: a small and a large one."""
    return ctypes.create_string_buffer(struct.pack("=QQQQ", 0, 5, 0, MUCH))


def test_a_write_that_is_too_large_has_no_room(opened, pieces):
    file, at = opened[0], ctypes.addressof(pieces)
    calls = {
        "write": [file, 0, MUCH],
        "pwrite64": [file, 0, MUCH, 0],
        "writev": [file, at, 2],
        "pwritev": [file, at, 2, 0],
        "fallocate": [file, 0, 0, MUCH],
    }
    assert [name for name, words in calls.items() if not is_out_of_room(os.getpid(), name, words)] == []


def test_a_write_that_is_small_has_room(opened, pieces):
    (file, source, null), at = opened, ctypes.addressof(pieces)
    calls = {
        "write": [file, 0, 1],
        "writev": [file, at, 1],
        "fallocate": [file, 3, 0, MUCH],
        "sendfile": [file, source, 0, MUCH],
        "copy_file_range": [source, 0, file, 0, MUCH],
    }
    assert [name for name, words in calls.items() if is_out_of_room(os.getpid(), name, words)] == []
    assert not is_out_of_room(os.getpid(), "write", [null, 0, MUCH])


def test_a_file_elsewhere_is_not_on_the_disk():
    with TemporaryFile(dir="/var/tmp") as file:  # a checkout may lie in /tmp, which is on the disk of a sandbox
        assert not is_out_of_room(os.getpid(), "write", [file.fileno(), 0, MUCH])
