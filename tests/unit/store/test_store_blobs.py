from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.observation import FaultMet, Observation, Turn
from holdfast.store.blobs import LIMIT, LOST, pack, unpack


def test_a_small_observation_needs_no_blob(tmp_path: Path) -> None:
    seen = Observation("0123456789ab", turns=(Turn("hi", "there"),), ledger=(FaultMet(0, "tool", "t", "error", 1),))
    assert unpack(pack(seen, tmp_path / "blobs"), tmp_path / "blobs") == seen
    assert not (tmp_path / "blobs").exists()


def test_a_large_answer_is_a_blob_named_by_its_content(tmp_path: Path) -> None:
    seen = Observation("0123456789ab", turns=(Turn("hi", "x" * (LIMIT + 1)),))
    line = pack(seen, tmp_path)
    assert len(line) < 1000
    assert b'"bytes":16001' in line
    assert len(list(tmp_path.iterdir())) == 1
    assert unpack(line, tmp_path) == seen


def test_an_answer_that_looks_like_a_reference_stays_text(tmp_path: Path) -> None:
    seen = Observation("0123456789ab", turns=(Turn('{"blob":"x","bytes":1,"head":""}', '{"blob":"../../etc/passwd"}'),))
    assert unpack(pack(seen, tmp_path), tmp_path) == seen


def test_a_reference_cannot_climb_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    line = b'{"trial":"0123456789ab","turns":[{"asked":"q","text":{"blob":"../secret","bytes":6,"head":"se"}}]}'
    (tmp_path / "blobs").mkdir()
    assert unpack(line, tmp_path / "blobs") == Observation("0123456789ab", error=LOST)


def test_a_missing_blob_makes_it_an_error_so_that_nothing_is_judged_on_its_head(tmp_path: Path) -> None:
    seen = Observation("0123456789ab", output="y" * (LIMIT + 1))
    line = pack(seen, tmp_path)
    next(tmp_path.iterdir()).unlink()
    assert unpack(line, tmp_path) == Observation("0123456789ab", error=LOST)


def test_a_blob_keeps_its_line_ends(tmp_path: Path) -> None:
    seen = Observation("0123456789ab", turns=(Turn("hi", "é\r\n\r" * LIMIT),))
    assert unpack(pack(seen, tmp_path), tmp_path) == seen


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
def test_every_observation_round_trips(asked: str, text: str) -> None:
    seen = Observation("0123456789ab", turns=(Turn(asked, text),), output=text)
    assert unpack(pack(seen, Path("unused")), Path("unused")) == seen
