"""Where somebody else's code failed, in the words of an error."""

from __future__ import annotations

import json
from pathlib import Path

from holdfast.errors import format_error_place
from holdfast.model.codec import create_decoder


def _raised(source: str, file: Path) -> Exception:
    file.write_text(source)
    try:
        exec(compile(source, str(file), "exec"), {"json": json, "decoder": create_decoder})
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def test_the_place_is_the_last_line_that_is_neither_ours_nor_the_standard_librarys(tmp_path: Path) -> None:
    file = tmp_path / "plugin.py"
    assert format_error_place(_raised("x = 1\n1 / 0\n", file)) == f" ({file}:2)"
    assert format_error_place(_raised("def f():\n    json.loads('{')\n\nf()\n", file)) == f" ({file}:2)"
    assert format_error_place(_raised("\n\ndecoder(int).decode(b'x')\n", file)) == f" ({file}:3)"


def test_a_file_that_cannot_be_read_as_python_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "plugin.py"
    assert format_error_place(_raised("x = 1\ndef (:\n", file)) == f" ({file}:2)"


def test_an_error_that_nobody_raised_has_no_place() -> None:
    assert format_error_place(ValueError("x")) == ""
