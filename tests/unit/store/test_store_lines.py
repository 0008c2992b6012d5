"""Records are decoded a block at a time, and are the same as line by line."""

from __future__ import annotations

from contextlib import closing
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from error_code import has_code
from holdfast.errors import UserError
from holdfast.model.codec import create_decoder, encode
from holdfast.store.lines import LineReader, read_lines, read_records

ROW = create_decoder(dict[str, int])
ONE_LINE_TOO_MANY_AND_ONE_TOO_FEW = (
    b'{"a":1}{"b":2}\n\n',
    b'{"a":1}{"b":2}\n{"a":\n1}\n',
    b'\n{"a":1}{"b":2}\n',
    b'{"a":1} {"b":2}\n \n',
)


def read(path: Path) -> list[tuple[int, dict[str, int]]]:
    return list(read_records(path, ROW.decode, ROW.decode_lines))


@given(st.lists(st.integers(0, 10**30), max_size=20), st.integers(0, 12))
def test_every_record_is_found_where_it_starts_and_a_torn_one_is_dropped(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[int], torn: int
) -> None:
    file = tmp_path_factory.mktemp("lines") / "rows.jsonl"
    lines = [encode({"a": number % 2**62, "b" * (number % 9_000): 1}) + b"\n" for number in numbers for _ in range(9)]
    file.write_bytes(b"".join(lines) + b'{"a":1234567}\n'[:torn])
    found = read(file)
    assert [row for _, row in found] == [ROW.decode(line) for line in lines]
    assert [start for start, _ in found] == [sum(map(len, lines[:n])) for n in range(len(lines))]
    assert list(read_lines(file)) == lines


@pytest.mark.parametrize("data", ONE_LINE_TOO_MANY_AND_ONE_TOO_FEW)
def test_a_line_of_two_records_is_refused_though_another_has_none(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "rows").write_bytes(data)
    with pytest.raises(UserError, match=r"rows:\d: ", check=has_code("run-damaged")):
        read(tmp_path / "rows")


@pytest.mark.parametrize("bad", [b"\n", b"{}x\n", b'{"a":"text"}\n', b"[]\n", b"{\n"])
def test_a_bad_line_in_a_later_block_is_named_after_all_before_it_were_given(tmp_path: Path, bad: bytes) -> None:
    lines = [encode({"n": n}) + b"\n" for n in range(20_000)]
    (tmp_path / "rows").write_bytes(b"".join([*lines, bad, *lines]))
    found = read_records(tmp_path / "rows", ROW.decode, ROW.decode_lines)
    assert [row["n"] for _, row in islice(found, len(lines))] == list(range(len(lines)))
    with pytest.raises(UserError, match="rows:20001: ", check=has_code("run-damaged")):
        next(found)


def test_a_record_with_spaces_around_it_is_one(tmp_path: Path) -> None:
    (tmp_path / "rows").write_bytes(b' {"a": 1} \n{"b": 2}\r\n')
    assert read(tmp_path / "rows") == [(0, {"a": 1}), (11, {"b": 2})]


def test_what_is_written_while_a_torn_line_is_read_is_left_for_the_next_time(tmp_path: Path) -> None:
    file = tmp_path / "rows"
    file.write_bytes(b'{"a":1}\n{"a":2}\n{"a":')
    found = read_records(file, ROW.decode, ROW.decode_lines)
    first = next(found)
    with open(file, "ab") as more:
        more.write(b'3}\n{"a":4}\n')
    assert [first, *found] == [(0, {"a": 1}), (8, {"a": 2})]
    assert [row["a"] for _, row in read(file)] == [1, 2, 3, 4]


# Any line is read by where it starts, in any order, however long it is.


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
