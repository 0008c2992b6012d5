"""Paths of a workspace that an agent has filled with links."""

import os
from contextlib import contextmanager
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from example_counts import examples
from holdfast.errors import OutsideError
from holdfast.world.sandbox.workspace import resolve
from refused import refused


@contextmanager
def opened(folder):
    root = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield root
    finally:
        os.close(root)


@pytest.fixture
def root(tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "file").write_text("x")
    with opened(tmp_path) as fd:
        yield fd


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("d/file", "d/file"),
        ("./d", "d"),
        ("d/../d/file", "d/file"),
        ("/w/d/file", "d/file"),
        ("/w", "."),
        ("none", None),
    ],
)
def test_a_link_inside_is_followed(root, target, found):
    os.symlink(target, "link", dir_fd=root)
    assert resolve(root, "/w", "link") == found


@pytest.mark.parametrize("target", ["/etc/passwd", "..", "d/../../x", "/w/../etc", "link", "/", "/w2/d"])
def test_a_link_out_is_not(root, target):
    os.symlink(target, "link", dir_fd=root)
    with pytest.raises(OutsideError):
        resolve(root, "/w", "link")


def test_what_is_not_a_file_is_not_given(root):
    os.mkfifo("pipe", dir_fd=root)
    with refused("path-outside"):
        resolve(root, "/w", "pipe")


def test_a_chain_of_links_ends(root):
    for n in range(50):
        os.symlink(f"l{n + 1}", f"l{n}", dir_fd=root)
    with pytest.raises(OutsideError):
        resolve(root, "/w", "l0")


parts = st.sampled_from(["a", "b", "..", ".", "", "/w", "/", "/etc", "c"])


@settings(max_examples=examples(150))
@given(
    links=st.dictionaries(st.sampled_from("abc"), st.lists(parts, min_size=1, max_size=5)),
    path=st.lists(parts, max_size=5),
)
def test_whatever_links_there_are_it_stays_inside(links, path):
    """What is given exists, has no link in it, and lies below the folder."""
    with TemporaryDirectory() as folder, opened(folder) as root:
        os.mkdir("b", dir_fd=root)
        for name, target in links.items():
            if name != "b" and "/".join(target):
                os.symlink("/".join(target), name, dir_fd=root)
        try:
            found = resolve(root, "/w", "/".join(path))
        except OutsideError:
            return
        if found is not None:
            real = os.path.realpath(folder)
            assert os.path.realpath(f"{folder}/{found}") == os.path.normpath(f"{real}/{found}")
            assert (os.path.realpath(f"{folder}/{found}") + "/").startswith(f"{real}/")
