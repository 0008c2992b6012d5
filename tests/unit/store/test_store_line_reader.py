"""Any line is read by where it starts, in any order, however long it is."""

from __future__ import annotations

from contextlib import closing
from random import Random

from holdfast.store.lines import LineReader


def test_lines_of_any_length_in_any_order(tmp_path):
    rng = Random(1)
    lines = [b"x" * rng.choice((0, 1, 100, 70_000, 200_000)) + b"%d" % n for n in range(60)]
    file = tmp_path / "x"
    file.write_bytes(b"".join(line + b"\n" for line in lines))
    starts, at = [], 0
    for line in lines:
        starts.append(at)
        at += len(line) + 1
    order = [*range(60), *rng.sample(range(60), 60)]
    with closing(LineReader(file)) as reader:
        assert all(reader.read_line(starts[n]) == lines[n] for n in order)


def test_a_last_line_without_a_newline_is_one_too(tmp_path):
    (tmp_path / "x").write_bytes(b"a\nb")
    with closing(LineReader(tmp_path / "x")) as reader:
        assert reader.read_line(2) == b"b"
