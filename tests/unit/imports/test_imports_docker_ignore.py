"""Which files a .dockerignore keeps from an image."""

from __future__ import annotations

from pathlib import Path

import pytest

from error_code import has_code
from holdfast.errors import UserError
from holdfast.imports.dockerfile import load_dockerignore


@pytest.mark.parametrize(
    ("lines", "path", "left_out"),
    [
        ("notes", "notes/a/b.txt", True),
        ("/notes/", "notes/a", True),
        ("notes", "other/notes", False),  # Docker's patterns begin at the top, unlike git's
        ("**/notes", "other/notes/a", True),
        ("**/notes", "notes", True),
        ("*.key", "a.key", True),
        ("*.key", "deep/a.key", False),
        ("*/a.key", "deep/a.key", True),
        ("a?.k[e-f]y", "ab.key", True),
        ("a[^b]", "ac", True),
        ("a[^b]", "ab", False),
        ("**", "x/y", True),
        ("*\n!keep.txt", "keep.txt", False),
        ("!keep.txt\n*", "keep.txt", True),
        ("# notes\n\n!", "notes", False),
        (r"a\*b", "axb", False),
        ("a.b", "axb", False),
    ],
)
def test_what_is_left_out(tmp_path: Path, lines: str, path: str, left_out: bool) -> None:
    (tmp_path / ".dockerignore").write_text(lines + "\n")
    assert load_dockerignore(tmp_path, tmp_path / "Dockerfile")(path) is left_out


def test_the_file_of_the_dockerfile_alone_comes_first(tmp_path: Path) -> None:
    (tmp_path / ".dockerignore").write_text("a\n")
    (tmp_path / "Dockerfile.dockerignore").write_text("b\n")
    ignored = load_dockerignore(tmp_path, tmp_path / "Dockerfile")
    assert (ignored("a"), ignored("b")) == (False, True)
    assert not load_dockerignore(tmp_path / "nowhere", None)("a")
    (tmp_path / ".dockerignore").write_text("[z-a]\n")
    with pytest.raises(UserError, check=has_code("task-invalid")):
        load_dockerignore(tmp_path, None)
