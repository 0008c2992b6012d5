"""A stored run that somebody changed: the file and the line are named, and it is nobody's bug."""

from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path

import pytest
from cli import forget_end
from files1 import SPEC, project, tell

from golden_words import Golden
from holdfast.store.lines import JsonLines, Seal
from holdfast.store.rundir import RunDir

RUN = Path(".holdfast") / "runs" / "0001"
COMMANDS = {
    "report": ("report", "0001"),
    "judge": ("judge", "0001"),
    "resume": ("contract", "run", "--resume", "0001"),
}
WRONG = {
    "no-json": b"what is this\n",
    "blank": b"\n",
    "another-type": b'{"trial":7,"id":7}\n',
    "not-utf8": b'{"trial":"\xff\xff","id":"\xff"}\n',
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    project(tmp_path, SPEC)
    assert tell(tmp_path, "contract", "run").code == 0
    forget_end(tmp_path / RUN)  # a run that was killed has no seal, and is taken as it is
    return tmp_path


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("file", ["trials.jsonl", "observations-0.jsonl"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_malformed_line_is_named_with_file_and_line(run: Path, command: str, file: str, wrong: str) -> None:
    path = run / RUN / file
    number = len(path.read_bytes().splitlines()) + 1
    path.write_bytes(path.read_bytes() + WRONG[wrong])
    told = tell(run, *COMMANDS[command])
    assert (told.code, "bug" in told.err) == (4, False), told.err
    assert f"{RUN / file}:{number}: " in told.err
    assert "[run-damaged]" in told.err


def test_a_malformed_verdict_is_named_with_file_and_line(run: Path) -> None:
    path = run / RUN / "verdicts-1.jsonl"
    path.write_bytes(path.read_bytes() + b"{}\n")
    told = tell(run, "report", "0001")
    assert (told.code, f"{RUN / 'verdicts-1.jsonl'}:2: not a record" in told.err) == (4, True), told.err


@pytest.mark.parametrize("file", ["run.json", "ended.json"])
def test_a_malformed_manifest_is_named(run: Path, file: str) -> None:
    (run / RUN / file).write_text("{")
    told = tell(run, "report", "0001")
    assert (told.code, (f"{RUN / file}: " in told.err and "[run-damaged]" in told.err)) == (4, True), told.err


def test_a_record_that_is_only_spaced_otherwise_is_read_as_it_is(run: Path) -> None:
    path = run / RUN / "observations-0.jsonl"
    path.write_bytes(path.read_bytes().replace(b'{"trial":"', b'{ "trial": "'))
    told = tell(run, "report", "0001", "--json")
    assert told.code == 0
    assert len(told.trial("cites")["id"]) == 12


def test_a_run_whose_disk_was_full_at_its_end_has_not_passed_and_can_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(lines: JsonLines) -> tuple[Seal, str]:
        raise OSError(errno.ENOSPC, "No space left on device")

    project(tmp_path, SPEC)
    with monkeypatch.context() as full:
        full.setattr(JsonLines, "seal", refuse)
        told = tell(tmp_path, "contract", "run")
        assert (told.code, "[file-unusable]" in told.err) == (3, True), told.err
    assert tell(tmp_path, "show", "0001", "--json").json["exit_code"] == 2
    assert tell(tmp_path, "contract", "run", "--resume", "0001").code == 0


def test_a_file_that_is_gone_is_called_so(tmp_path: Path) -> None:
    project(tmp_path, SPEC)
    for _ in range(2):
        assert tell(tmp_path, "contract", "run").code == 0
    for gone in (tmp_path / RUN).glob("observations-*.jsonl"):
        gone.unlink()
    for gone in ("trials.jsonl", "verdicts-1.jsonl"):
        (tmp_path / RUN / gone).unlink()
    for command in (("show", "0001"), ("compare", "0001", "0002")):
        told = tell(tmp_path, *command)
        assert told.code == 4
        assert "observations-0.jsonl, trials.jsonl, verdicts-1.jsonl are missing" in told.err
        assert "forged" not in told.err


def test_a_run_without_its_copy_of_the_spec_says_so(run: Path) -> None:
    (run / RUN / "spec.yaml").unlink()
    told = tell(run, "show", "0001")
    assert told.code == 4
    assert "spec.yaml" in told.err
    assert "[run-unusable]" in told.err
    assert "spec.yaml" in told.err
    assert "holdfast init" not in told.err


@pytest.mark.parametrize("file", ["run.json", "spec.yaml"])
@pytest.mark.parametrize("command", [("show", "0001"), ("judge", "0001"), ("compare", "0001", "0002")])
def test_what_the_run_is_and_was_made_of_is_sealed(tmp_path: Path, file: str, command: tuple[str, ...]) -> None:
    project(tmp_path, SPEC)
    for _ in range(2):
        assert tell(tmp_path, "contract", "run").code == 0
    path = tmp_path / RUN / file
    path.write_bytes(path.read_bytes() + b"\n")
    told = tell(tmp_path, *command)
    assert told.code == 4
    assert "[run-tampered]" in told.err
    assert file in told.err


def test_the_overall_verdict_of_a_ci_run_is_sealed(tmp_path: Path, golden: Golden) -> None:
    project(tmp_path, SPEC.replace("source", "no such word"))
    assert tell(tmp_path, "ci").code == 1
    path = tmp_path / RUN / "overall.json"
    honest = path.read_text()
    assert '"passed":false' in honest
    assert tell(tmp_path, "show", "0001").code == 0
    for forged in (
        honest.replace('"passed":false', '"passed":true').replace('"exit_code":1', '"exit_code":0'),
        honest.replace('"score":0.0', '"score":100.0'),
    ):
        assert forged != honest
        path.write_text(forged)
        told = tell(tmp_path, "show", "0001")
        assert told.code == 4
        assert "[run-tampered]" in told.err
        assert "overall.json" in told.err
        (row,) = [one for one in json.loads(tell(tmp_path, "runs", "--json").out)["runs"] if one["id"] == "0001"]
        assert not row["passed"]
        golden(row["note"])
    path.write_text(honest)
    parts = tmp_path / RUN / "parts"
    shutil.move(parts / "contract", tmp_path / "elsewhere")
    assert "[run-tampered]" in tell(tmp_path, "show", "0001").err
    shutil.move(tmp_path / "elsewhere", parts / "contract")
    path.write_text(forged)
    assert tell(tmp_path, "ci").code == 1  # one that is forged is no baseline, and ends no other run
    assert tell(tmp_path, "ci", "--baseline", "latest").code == 1
    assert tell(tmp_path, "ci", "--resume", "0001").code == 1
    assert tell(tmp_path, "show", "0001").code == 0


MUTATION = """
invariants: [{type: completes}]
mutations: {count: 1, types: [noise]}
"""


@pytest.fixture
def ci_run(tmp_path: Path) -> Path:
    """A run of two parts, of which the contract failed."""
    project(tmp_path, SPEC.replace("source", "no such word") + MUTATION)
    assert tell(tmp_path, "ci").code == 1
    assert {path.name for path in (tmp_path / RUN / "parts").iterdir()} == {"contract", "mutation"}
    return tmp_path


@pytest.mark.parametrize("swapped", ["overall.json", "parts/contract"])
def test_a_ci_run_with_files_of_another_run_is_refused_everywhere(ci_run: Path, swapped: str) -> None:
    project(ci_run, SPEC + MUTATION)
    assert tell(ci_run, "ci").code == 0
    assert tell(ci_run, "runs").code == 0  # the index knows both as they were
    path = ci_run / RUN / swapped
    shutil.move(path, ci_run / "elsewhere")
    other = ci_run / RUN.with_name("0002") / swapped
    _ = shutil.copytree(other, path) if other.is_dir() else shutil.copy(other, path)
    for command in (("show", "0001"), ("report", "0001"), ("compare", "0001", "0002")):
        refused = tell(ci_run, *command)
        assert (refused.code, "[run-tampered]" in refused.err) == (4, True), (command, refused.err)
    rows = {one["id"]: one for one in json.loads(tell(ci_run, "runs", "--json").out)["runs"]}
    assert (rows["0001"]["passed"], bool(rows["0001"]["note"])) == (False, True)
    project(ci_run, SPEC.replace("source", "no such word") + MUTATION)
    resumed = tell(ci_run, "ci", "--resume", "0001")
    assert (resumed.code, "[run-tampered]" in resumed.err) == ((1, False) if swapped == "overall.json" else (4, True))


@pytest.mark.parametrize("overall", ["missing", "of another run", "never written"])
def test_a_part_that_links_to_another_run_is_run_again_when_no_seal_covers_it(tmp_path: Path, overall: str) -> None:
    agent = "import pathlib\n\ndef answer(prompt):\n    return pathlib.Path(__file__).with_name('answer').read_text()\n"
    project(tmp_path, SPEC + MUTATION, agent)
    for words, code in (("I do not know", 1), ("the source: 5", 0)):
        (tmp_path / "answer").write_text(words)
        assert tell(tmp_path, "ci").code == code
    (tmp_path / "answer").write_text("I do not know")
    failed, green = (tmp_path / RUN.with_name(name) for name in ("0001", "0002"))
    shutil.rmtree(failed / "parts/contract")
    (failed / "parts/contract").symlink_to(green / "parts/contract")
    (failed / "overall.json").unlink()
    if overall == "of another run":
        shutil.copy(green / "overall.json", failed)
    elif overall == "never written":
        manifest = json.loads((failed / "run.json").read_text())
        (failed / "run.json").write_text(json.dumps({**manifest, "concluded": []}))
    assert tell(tmp_path, "ci", "--resume", "0001").code == 1
    assert not (failed / "parts/contract").is_symlink()
    assert tell(tmp_path, "show", "0001").code == 0
    assert json.loads((green / "overall.json").read_text())["passed"]


@pytest.mark.parametrize("file", ["part.json", "verdicts-1.jsonl", "observations-0.jsonl"])
def test_the_index_notices_a_change_of_every_sealed_file(ci_run: Path, file: str) -> None:
    assert tell(ci_run, "runs").code == 0
    path = ci_run / RUN / "parts/mutation" / file
    path.write_bytes(path.read_bytes() + b"\n")
    rows = {one["id"]: one for one in json.loads(tell(ci_run, "runs", "--json").out)["runs"]}
    assert file in rows["0001/mutation"]["note"]


@pytest.mark.parametrize("gone", ["parts/contract", "parts/contract/run.json"])
def test_a_ci_run_without_its_failed_part_is_refused_everywhere(ci_run: Path, gone: str) -> None:
    path = ci_run / RUN / gone
    shutil.move(path, ci_run / "elsewhere")
    for with_overall in (True, False):
        told = (("judge", "0001"), ("show", "0001"), ("report", "0001"), ("compare", "0001", "0001"))
        for command in (*told, ("ci", "--resume", "0001")):
            refused = tell(ci_run, *command)
            assert (refused.code, "[run-tampered]" in refused.err) == (4, True), (command, refused.err)
        if with_overall:
            (ci_run / RUN / "overall.json").unlink()
    forced = tell(ci_run, "ci", "--resume", "0001", "--force")
    assert (forced.code, "[run-damaged]" in forced.err) == ((4, True) if path.name == "run.json" else (1, False))


def test_a_ci_run_without_its_overall_verdict_is_refused_until_it_is_resumed(ci_run: Path) -> None:
    (ci_run / RUN / "overall.json").unlink()
    for command in (("judge", "0001"), ("show", "0001"), ("report", "0001")):
        refused = tell(ci_run, *command)
        assert (refused.code, "[run-tampered]" in refused.err) == (4, True), (command, refused.err)
    rows = {one["id"]: one for one in json.loads(tell(ci_run, "runs", "--json").out)["runs"]}
    assert not any(row["passed"] for row in rows.values())
    assert "overall.json" in rows["0001"]["note"]
    assert tell(ci_run, "ci", "--resume", "0001").code == 1
    assert tell(ci_run, "show", "0001").code == 0


@pytest.mark.parametrize("is_sealed_again", [False, True])
@pytest.mark.parametrize("keys", [("sealed",), ("sealed", "seal")])
def test_a_run_whose_seal_was_removed_is_refused_everywhere(
    tmp_path: Path, keys: tuple[str, ...], is_sealed_again: bool
) -> None:
    project(tmp_path, SPEC)
    for _ in range(2):
        assert tell(tmp_path, "contract", "run").code == 0
    path = tmp_path / RUN / "ended.json"
    ended = json.loads(path.read_bytes())
    path.write_text(json.dumps({name: value for name, value in ended.items() if name not in keys}))
    if is_sealed_again:  # the seal of ended.json is a plain digest, which anybody can compute
        run = RunDir(path.parent)
        run.write_end(run.read_end())
    for command in (
        ("report", "0001"), ("show", "0001"), ("judge", "0001"), ("compare", "0001", "0002"),
        ("contract", "score", "--resume", "0001"), ("contract", "run", "--resume", "0001"),
    ):  # fmt: skip
        refused = tell(tmp_path, *command)
        assert (refused.code, "[run-tampered]" in refused.err) == (4, True), command
    listed = json.loads(tell(tmp_path, "runs", "--json").out)["runs"]
    assert [bool(row["note"]) for row in listed] == [False, True]
    assert "run 0001: ended.json changed" in tell(tmp_path, "trend").err


def test_what_failed_last_is_not_read_from_a_run_that_was_changed(tmp_path: Path, golden: Golden) -> None:
    project(tmp_path, SPEC.replace("value:", "value: never-said-", 1))
    for _ in range(2):
        assert tell(tmp_path, "contract", "run").code == 1
    path = tmp_path / RUN.with_name("0002") / "verdicts-1.jsonl"
    path.write_text(path.read_text().replace('"fail"', '"pass"'))
    again = tell(tmp_path, "contract", "run", "--lf")
    assert again.code == 1
    golden([line for line in again.err.splitlines() if "--lf" in line])
