"""Lines are found where they start, and a line that is not a record is named."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from error_code import has_code
from holdfast.errors import UserError
from holdfast.model.codec import create_decoder, encode
from holdfast.store.lines import read_lines, read_records

ROW = create_decoder(dict[str, int])
ONE_LINE_TOO_MANY_AND_ONE_TOO_FEW = (
    b'{"a":1}{"b":2}\n\n',
    b'{"a":1}{"b":2}\n{"a":\n1}\n',
    b'\n{"a":1}{"b":2}\n',
    b'{"a":1} {"b":2}\n \n',
)


def read(path: Path) -> list[tuple[int, dict[str, int]]]:
    return list(read_records(path, ROW.decode))


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
    found = read_records(tmp_path / "rows", ROW.decode)
    assert [row["n"] for _, row in islice(found, len(lines))] == list(range(len(lines)))
    with pytest.raises(UserError, match="rows:20001: ", check=has_code("run-damaged")):
        next(found)


def test_a_record_with_spaces_around_it_is_one(tmp_path: Path) -> None:
    (tmp_path / "rows").write_bytes(b' {"a": 1} \n{"b": 2}\r\n')
    assert read(tmp_path / "rows") == [(0, {"a": 1}), (11, {"b": 2})]


def test_what_is_written_while_a_torn_line_is_read_is_left_for_the_next_time(tmp_path: Path) -> None:
    file = tmp_path / "rows"
    file.write_bytes(b'{"a":1}\n{"a":2}\n{"a":')
    found = read_records(file, ROW.decode)
    first = next(found)
    with open(file, "ab") as more:
        more.write(b'3}\n{"a":4}\n')
    assert [row["a"] for _, row in [first, *found]] in ([1, 2], [1, 2, 3, 4])
    assert [row["a"] for _, row in read(file)] == [1, 2, 3, 4]
