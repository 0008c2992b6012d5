"""A run's files are put back as the run wrote them when the agents are gone, and sealed."""

import os
import shutil
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from example_counts import examples
from golden_words import Golden
from holdfast.errors import UserError
from holdfast.model.codec import RUN_DIRECTORY
from holdfast.model.observation import Observation
from holdfast.model.trace import TraceEvent
from holdfast.plan import RunOptions
from holdfast.store.lines import LOST, NOT_SEALED, PUT_BACK, JsonLines, compute_seal
from holdfast.store.record import RunRecord, read_observations
from holdfast.store.rundir import (
    Manifest,
    RunDir,
    RunEnd,
    list_record_files,
    list_verdict_files,
    seal_documents,
    write_json,
)
from holdfast.store.seal_check import check

OURS = (b'{"a":1}', b'{"b":2}', b'{"c":3}')
WHOLE = b"".join(line + b"\n" for line in OURS)


def written(path: Path, *between) -> str:
    """Our lines in a file, with what somebody does before each and after the last."""
    lines = JsonLines(path)
    for n, line in enumerate(OURS):
        if n < len(between):
            between[n](path)
        lines.write(line)
    for last in between[len(OURS) :]:
        last(path)
    _, said = lines.seal()
    lines.close()
    return said


def appends(path: Path) -> None:
    with open(path, "ab") as file:
        file.write(b'{"forged":true}\n')


def replaces(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(b'{"forged":true}\n')
    other.replace(path)


def nothing(path: Path) -> None:
    return


def test_a_file_that_nobody_touched_is_sealed_as_it_is(tmp_path):
    said = written(tmp_path / "x.jsonl")
    assert said == ""
    assert (tmp_path / "x.jsonl").read_bytes() == WHOLE
    assert compute_seal(tmp_path / "x.jsonl").lines == 3


@pytest.mark.parametrize(
    "between",
    [
        (appends,), (nothing, appends), (nothing, nothing, nothing, appends), (appends, appends, appends, appends),
        (replaces,), (nothing, replaces), (nothing, nothing, nothing, replaces), (appends, replaces, nothing, appends),
        (nothing, nothing, nothing, os.unlink), (nothing, os.unlink),
    ],
)  # fmt: skip
def test_what_others_wrote_is_taken_out_again(tmp_path, between):
    said = written(tmp_path / "x.jsonl", *between)
    assert said == f"x.jsonl: {PUT_BACK}"
    assert (tmp_path / "x.jsonl").read_bytes() == WHOLE
    assert os.stat(tmp_path / "x.jsonl").st_mode & 0o077 == 0
    assert [path.name for path in tmp_path.iterdir() if path.name != "other"] == ["x.jsonl"]


def overwrites(path: Path) -> None:
    with open(path, "r+b") as file:
        file.write(b'{"z"')


@pytest.mark.parametrize("between", [(nothing, nothing, overwrites), (nothing, nothing, nothing, overwrites)])
def test_what_was_overwritten_cannot_be_put_back_and_that_is_said(tmp_path, between):
    said = written(tmp_path / "x.jsonl", *between)
    assert said == f"x.jsonl: {LOST}"


def test_a_file_that_was_cut_short_is_noticed(tmp_path):
    said = written(tmp_path / "x.jsonl", nothing, nothing, lambda path: os.truncate(path, 3))
    assert said == f"x.jsonl: {LOST}"


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.binary(min_size=1, max_size=30)), max_size=20))
def test_whoever_appends_in_whatever_order_our_lines_are_what_is_left(tmp_path_factory, writes):
    path = tmp_path_factory.mktemp("sealed") / "x.jsonl"
    lines = JsonLines(path)
    ours = b""
    with open(path, "ab", buffering=0) as other:
        for is_ours, data in writes:
            if is_ours:
                line = data.replace(b"\n", b" ")  # a record is one line
                lines.write(line)
                ours += line + b"\n"
            else:
                other.write(data)
        seal, _ = lines.seal()
    lines.close()
    assert path.read_bytes() == ours
    assert seal == compute_seal(path)


def test_a_run_that_is_resumed_goes_on_with_what_was_there(tmp_path):
    written(tmp_path / "x.jsonl")
    again = JsonLines(tmp_path / "x.jsonl")
    again.write(b"{}")
    appends(tmp_path / "x.jsonl")
    seal, _ = again.seal()
    again.close()
    assert (tmp_path / "x.jsonl").read_bytes() == WHOLE + b"{}\n"
    assert (seal.lines, seal) == (4, compute_seal(tmp_path / "x.jsonl"))


@pytest.fixture
def run(tmp_path):
    made = RunDir.create(tmp_path)
    record = RunRecord(made)
    event = TraceEvent(0.1, "llm_call", "m", "llm", 1)
    record.write_event("0123456789ab", event)
    record.write_observation(Observation("0123456789ab", trace=(event,), output="x" * 20_000))
    sealed, said = record.seal()
    record.close()
    assert said == ()
    manifest = Manifest(
        RUN_DIRECTORY, made.id, "1", "now", "s.yaml", "/s.yaml", "/", "d", "d", 0, RunOptions(part="scenario")
    )
    write_json(made.path / "run.json", manifest)
    (made.path / "spec.yaml").write_text("version: 1\n")
    made.write_end(RunEnd(True, 1.0, sealed=sealed | seal_documents(made)))
    (made.path / "score.json").write_text("{}\n")
    return made


def test_a_run_as_it_was_sealed_is_taken(run):
    assert check(run) == ""


def test_a_run_that_was_killed_is_taken_and_its_missing_seal_reported(run):
    run.write_end(RunEnd(False, 0.0))
    assert check(run) == NOT_SEALED
    for name in ("ended.json", "score.json"):
        (run.path / name).unlink()
    assert check(run) == NOT_SEALED


def test_a_complete_run_without_seals_is_refused_even_if_its_end_was_sealed_again(run):
    run.write_end(replace(run.read_end(), sealed={}))
    with pytest.raises(UserError, match=r"ended\.json") as refused:
        check(run)
    assert refused.value.code == "run-tampered"


def test_a_changed_part_is_resumed_with_its_whole_run(run, tmp_path):
    part = RunDir(tmp_path / "0009" / "parts" / "scenario")
    shutil.copytree(run.path, part.path)
    (part.path / "spec.yaml").write_text("version: 2\n")
    with pytest.raises(UserError) as refused:
        check(part)
    assert f"holdfast ci --resume {tmp_path / '0009'} --force" in refused.value.hint


def edited(**changes):
    def edit(path: Path) -> None:
        ended = msgspec.json.decode(path.read_bytes())
        path.write_bytes(msgspec.json.encode({k: v for k, v in (ended | changes).items() if v is not None}))

    return edit


@pytest.mark.parametrize(
    "edit",
    [
        *(edited(**{key: None}) for key in ("sealed", "seal")), edited(sealed={}), edited(complete=False),
        edited(sealed=None, complete=False), edited(notes=[{"code": "unsealed", "text": "x"}]), edited(stateful=True),
        edited(duration_s=2.0), edited(sealed=None, seal=None), os.unlink,
    ],
)  # fmt: skip
def test_a_run_that_ended_is_refused_if_its_end_was_edited_or_removed(run, edit):
    edit(run.path / "ended.json")
    with pytest.raises(UserError, match=r"ended\.json") as refused:
        check(run)
    assert refused.value.code == "run-tampered"


def test_every_file_that_the_run_sealed_is_missed_and_its_edit_noticed(run):
    sealed = run.read_end().sealed
    assert set(sealed) == {path.name for path in list_record_files(run)}
    for name in sealed:
        before = (run.path / name).read_bytes()
        for change in (lambda path: path.write_bytes(path.read_bytes() + b"\n"), os.unlink):
            change(run.path / name)
            assert name in check(run, force=True) or name == "run.json"
            (run.path / name).write_bytes(before)
    assert check(run) == ""


@pytest.mark.parametrize(
    "name", ["trials.jsonl", "observations-0.jsonl", "verdicts-1.jsonl", "observations-7.jsonl", "spec.yaml"]
)
def test_a_run_that_was_changed_after_its_seal_is_refused_and_says_which_file(run, name):
    with open(run.path / name, "ab") as file:
        file.write(b'{"forged":true}\n')
    with pytest.raises(UserError, match=name) as refused:
        check(run)
    assert f"holdfast run --resume {run.path} --force" in refused.value.hint
    assert name in check(run, force=True)


def test_a_file_of_the_run_that_is_gone_is_missed(run):
    (run.path / "observations-0.jsonl").unlink()
    with pytest.raises(UserError, match="observations-0"):
        check(run)


def test_a_trace_or_a_large_value_that_was_exchanged_is_not_believed(run, golden: Golden):
    (seen,) = read_observations(run)
    assert (len(seen.trace), len(seen.output), seen.error) == (1, 20_000, "")
    file = run.path / "traces" / "0123456789ab.jsonl"
    before = file.read_bytes()
    file.write_bytes(before.replace(b'"m"', b'"n"'))
    (seen,) = read_observations(run)
    assert seen.trace == ()
    golden(seen.error)
    file.write_bytes(before)
    (blob,) = (run.path / "blobs").iterdir()
    blob.write_bytes(b"y" * 20_000)
    (seen,) = read_observations(run)
    assert (seen.output, seen.trial) == ("", "0123456789ab")
    assert "large value" in seen.error


def test_pipes_that_somebody_put_in_the_place_of_files_do_not_hold_us_up(run):
    for name in ("observations-0.jsonl", "ended.json", "traces/0123456789ab.jsonl"):
        (run.path / name).unlink()
        os.mkfifo(run.path / name)
    os.mkfifo(run.path / "observations-3.jsonl")
    assert list(read_observations(run)) == []
    assert run.read_end() is None
    (run.path / "verdicts-x.jsonl").touch()
    (run.path / "verdicts-2.jsonl").touch()
    assert [path.name for path in list_verdict_files(run)] == ["verdicts-1.jsonl", "verdicts-2.jsonl"]
