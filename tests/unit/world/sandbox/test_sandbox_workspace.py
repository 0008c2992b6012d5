"""Changes, read from a layer that overlayfs would have left."""

import os
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from example_counts import examples
from holdfast.errors import OutsideError
from holdfast.world.sandbox.differences import find_differences
from holdfast.world.sandbox.workspace import compare_trees, list_entries, resolve
from refused import refused


@pytest.fixture
def both(tmp_path):
    for name in ("upper", "before"):
        (tmp_path / name).mkdir()
    return tmp_path / "upper", tmp_path / "before"


def write(root, files):
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def whiteout(path):
    try:
        os.mknod(path, 0o20000, os.makedev(0, 0))
    except PermissionError:
        pytest.skip("this kernel lets only root make whiteouts")


def found(both):
    return [(one.path, one.op) for one in find_differences(*map(str, both))]


def test_what_is_only_above_is_new(both):
    write(both[0], {"a": "1", "d/b": "22"})
    assert [tuple(one) for one in find_differences(*map(str, both))] == [("a", "created", 1), ("d/b", "created", 2)]


def test_a_whiteout_deletes_all_below_it(both):
    write(both[1], {"d/x": "1", "d/e/y": "1", "f": "1"})
    whiteout(both[0] / "d")
    whiteout(both[0] / "f")
    assert found(both) == [("d/e/y", "deleted"), ("d/x", "deleted"), ("f", "deleted")]


def test_a_whiteout_of_nothing_is_not_a_change(both):
    whiteout(both[0] / "never")
    assert found(both) == []


def test_an_opaque_folder_hides_what_was_there(both):
    write(both[1], {"d/x": "1", "d/same": "s", "d/e/y": "1"})
    write(both[0], {"d/new": "1", "d/same": "s"})
    try:
        os.setxattr(both[0] / "d", "user.overlay.opaque", b"y")
    except OSError:
        pytest.skip("this file system keeps no user attributes")
    assert found(both) == [("d/e/y", "deleted"), ("d/new", "created"), ("d/x", "deleted")]


def test_a_copy_that_is_the_same_is_not_a_change(both):
    write(both[1], {"same": "s", "mode": "m", "text": "t"})
    write(both[0], {"same": "s", "mode": "m", "text": "T"})
    os.utime(both[0] / "same", (1, 1))
    (both[0] / "mode").chmod(0o755)
    assert found(both) == [("mode", "modified"), ("text", "modified")]


def test_a_file_in_place_of_a_folder_and_back(both):
    write(both[1], {"was_file": "1", "was_folder/x": "1"})
    write(both[0], {"was_file/x": "1", "was_folder": "1"})
    assert found(both) == [
        ("was_file", "deleted"),
        ("was_file/x", "created"),
        ("was_folder", "created"),
        ("was_folder/x", "deleted"),
    ]


def test_links_are_compared_by_where_they_lead(both):
    for root, target in zip(both, ("new", "old"), strict=True):
        (root / "link").symlink_to(target)
        (root / "same").symlink_to("same")
    assert found(both) == [("link", "modified")]


names = st.sampled_from(["a", "a-b", "a/b", "a/b/c", "ab", "b", "b.c/d", "b/d"])
trees = st.dictionaries(names, st.sampled_from(["1", "2", "333"]), max_size=6)


@settings(max_examples=examples(60))
@given(before=trees, now=trees)
def test_two_folders_compare_as_their_files_do(tmp_path_factory, before, now):
    """Sorted by path, each change once: for a folder that was copied."""
    roots = []
    for files in (before, now):
        root = tmp_path_factory.mktemp("t")
        kept = {p: t for p, t in files.items() if not any(o.startswith(f"{p}/") for o in files)}
        write(root, kept)
        roots.append((str(root), kept))
    (old, was), (new, has) = roots
    told = [(one.path, one.op) for one in compare_trees(list_entries(old), list_entries(new))]
    expected = {p: "deleted" for p in was if p not in has} | {p: "created" for p in has if p not in was}
    expected |= {p: "modified" for p in has if p in was and has[p] != was[p]}
    assert told == sorted(expected.items())


def deep(root: Path, levels: int, name: str, content: bytes) -> str:
    """A file below so many long names, made step by step; its path."""
    fd = os.open(root, os.O_RDONLY)
    for _ in range(levels):
        with suppress(FileExistsError):
            os.mkdir("d" * 200, dir_fd=fd)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644, dir_fd=fd)
    os.write(file, content)
    os.close(file)
    os.close(fd)
    return "/".join(["d" * 200] * levels + [name])


@pytest.mark.parametrize("levels", [1, 15, 19, 20, 21, 45])
def test_a_folder_deeper_than_a_path_can_name_is_seen(tmp_path: Path, levels: int) -> None:
    upper, before = tmp_path / "upper", tmp_path / "before"
    upper.mkdir()
    before.mkdir()
    try:
        made = deep(upper, levels, "made", b"now")
        ((path, op, _),) = find_differences(str(upper), str(before))
        assert op == "created"
        assert path == made if levels < 17 else made.startswith(f"{path}/")
        (change,) = compare_trees(list_entries(str(before)), list_entries(str(upper)))
        assert (change.path, change.op) == (path, op)
        deep(before, levels, "made", b"then")
        ((path, op, _),) = find_differences(str(upper), str(before))
        assert op == "modified"
        assert path == made if levels < 17 else made.startswith(f"{path}/")
    finally:
        subprocess.run(["rm", "-rf", str(upper), str(before)], check=True)


# Paths of a workspace that an agent has filled with links.


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
