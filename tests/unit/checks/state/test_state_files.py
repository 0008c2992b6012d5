"""The checks of files: what is there, what is not, what is in it, what has changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from error_code import has_code
from holdfast.checks.state import file_content, paths
from holdfast.checks.state.file_absent import FileAbsent
from holdfast.checks.state.file_content import FileContent
from holdfast.checks.state.file_exists import FileExists
from holdfast.checks.state.files_changed_only import FilesChangedOnly
from holdfast.errors import HarnessError
from holdfast.model.verdict import Finding
from holdfast.model.world import Evidence
from holdfast.protocols.sandbox import FileChange
from world_kit import FakeWorld, gathered, shown


def judged(check: Any, folder: Path) -> Finding:
    finding: Finding = check.decide(gathered(check, FakeWorld(folder)))
    return finding


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "out.json").write_text('{"status": "success"}\nSubject: Renewal')
    (tmp_path / "folder").mkdir()
    (tmp_path / "away").symlink_to("/etc/passwd")
    return tmp_path


@pytest.mark.parametrize(("path", "there"), [("out.json", True), ("folder", True), ("nothing", False)])
def test_a_file_or_folder_is_there_or_not(place: Path, path: str, there: bool) -> None:
    assert judged(FileExists(path), place).passed is there
    assert judged(FileAbsent(path), place).passed is not there


@pytest.mark.parametrize("path", ["dangling", "folder/dangling"])
def test_a_link_to_nothing_is_no_file_but_not_nothing_either(place: Path, path: str) -> None:
    (place / path).symlink_to("gone")
    assert judged(FileExists(path), place).code == "file-missing"
    assert judged(FileContent(path, not_contains="x"), place).code == "file-missing"
    found = judged(FileAbsent(path), place)
    assert (found.passed, found.code, found.key) == (False, "file-there", ("dangling link",))


def test_a_link_out_of_the_workspace_fails_every_check(place: Path) -> None:
    for check in (FileExists("away"), FileAbsent("away"), FileContent("away", not_contains="x")):
        found = judged(check, place)
        assert (found.passed, found.code) == (False, "path-outside")


@pytest.mark.parametrize(
    ("settings", "passed"),
    [
        ({"contains": '"status": "success"'}, True),
        ({"contains": "Success"}, False),
        ({"not_contains": "console.log"}, True),
        ({"not_contains": "status"}, False),
        ({"pattern": "Renewal$"}, True),
        ({"pattern": "^Subject"}, False),
        ({"pattern": "(?m)^Subject: Renewal\\b"}, True),
        ({"pattern": "status.*Renewal"}, False),
        ({"contains": "status", "not_contains": "x", "pattern": "Ren"}, True),
        ({"contains": "status", "not_contains": "success"}, False),
        ({"contains": "status", "pattern": "zzz"}, False),
    ],
)
def test_all_that_is_asked_of_a_content_must_be_true(place: Path, settings: dict[str, str], passed: bool) -> None:
    assert judged(FileContent("out.json", **settings), place).passed is passed


@pytest.mark.parametrize("settings", [{"contains": "x"}, {"not_contains": "x"}, {"pattern": "x"}])
@pytest.mark.parametrize("path", ["nothing", "folder"])
def test_a_missing_file_or_a_folder_fails_whatever_is_asked(place: Path, path: str, settings: dict[str, str]) -> None:
    assert judged(FileContent(path, **settings), place).passed is False


def test_beyond_our_limit_nothing_is_proven_that_may_stand_there(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "KEPT", 10)
    monkeypatch.setattr(file_content, "KEPT", 10)
    assert judged(FileContent("out.json", contains="status"), place).passed is True
    assert judged(FileContent("out.json", contains="Renewal"), place).passed is None
    assert judged(FileContent("out.json", not_contains="Renewal"), place).passed is None
    assert judged(FileContent("out.json", not_contains="status"), place).passed is False


def test_bytes_that_are_not_text_are_read_anyway(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"\xff\xfeok\x00")
    assert judged(FileContent("b", contains="ok"), tmp_path).passed


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_text_is_read_in_the_encoding_that_it_has(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.txt").write_bytes("user: eve\npassword: hunter2 – kept\n".encode(encoding))
    assert judged(FileContent("a.txt", not_contains="hunter2"), tmp_path).passed is False
    assert judged(FileContent("a.txt", contains="hunter2 – kept", pattern="^user"), tmp_path).passed is True


def test_a_mark_of_another_encoding_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xff\xfe" + b"password: hunter2")
    assert judged(FileContent("a.txt", not_contains="hunter2"), tmp_path).passed is False


def test_nul_bytes_alone_make_no_other_encoding(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"hunter2\0\0\0rest")
    assert judged(FileContent("a.bin", not_contains="hunter2"), tmp_path).passed is False


@pytest.mark.parametrize("check", [FileExists("a"), FileAbsent("a"), FileContent("a", contains="x")])
def test_what_was_not_recorded_is_an_error_and_never_a_guess(check: Any, tmp_path: Path) -> None:
    with pytest.raises(HarnessError, check=has_code("check-not-recorded")):
        check.decide(shown(None))
    with pytest.raises(HarnessError, check=has_code("check-not-recorded")):
        check.decide(shown(Evidence(error="disk full")))
    with pytest.raises(HarnessError, check=has_code("check-not-recorded")):
        check.decide(gathered(type(check)(path="b", **({"contains": "x"} if "Content" in str(type(check)) else {})), FakeWorld(tmp_path)))  # noqa: E501  # fmt: skip


def test_evidence_that_is_damaged_is_an_error(tmp_path: Path) -> None:
    check = FileExists("a")
    good = gathered(check, FakeWorld(tmp_path)).evidence
    assert good is not None
    with pytest.raises(HarnessError, check=has_code("check-not-recorded")):
        check.decide(shown(Evidence({**good.data, "found": {"kind": "nonsense"}})))


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../b"])
def test_paths_of_a_spec_stay_inside(path: str) -> None:
    for check in (
        FileExists(path),
        FileAbsent(path),
        FileContent(path, contains="x"),
        FilesChangedOnly((path,)),
        FilesChangedOnly(ignore=(path,)),
    ):
        assert any("inside the workspace" in message for _, message in check.problems())


def test_content_needs_something_to_look_for_and_a_pattern_that_is_one() -> None:
    assert [message for _, message in FileContent("a").problems()]
    assert next(iter(FileContent("a", pattern="(").problems()))[0] == "pattern"
    assert not list(FileContent("a", pattern="^x$").problems())


CHANGES = (FileChange("README.md", "modified", 3), FileChange("src/a.py", "created", 1), FileChange("src/b", "deleted"))


@pytest.mark.parametrize(
    ("allowed", "passed", "named"),
    [
        (("src", "README.md"), True, ""),
        (("src/", "*.md"), True, ""),
        (("**",), True, ""),
        (("src/*.py",), False, "modified README.md, deleted src/b"),
        (("src", "READ"), False, "modified README.md"),
        ((), False, "modified README.md, created src/a.py, deleted src/b"),
    ],
)
def test_only_what_is_allowed_may_change(tmp_path: Path, allowed: tuple[str, ...], passed: bool, named: str) -> None:
    check = FilesChangedOnly(allowed)
    found = check.decide(gathered(check, FakeWorld(tmp_path, changes=CHANGES)))
    assert found.passed is passed
    assert named in found.reason


CACHES = (
    FileChange("__pycache__/a.cpython-312.pyc", "created"),
    FileChange("src/pkg/__pycache__", "created"),
    FileChange("src/pkg/__pycache__/b.pyc", "modified"),
    FileChange(".pytest_cache/v/cache/lastfailed", "created"),
    FileChange("web/node_modules/.cache/babel/x.json", "deleted"),
)


def test_caches_are_ignored_and_listed(tmp_path: Path) -> None:
    check = FilesChangedOnly(("README.md",))
    found = check.decide(gathered(check, FakeWorld(tmp_path, changes=(CHANGES[0], *CACHES))))
    assert found.passed
    assert found.details == {"ignored": [f"{one.op} {one.path}" for one in CACHES]}
    both = check.decide(gathered(check, FakeWorld(tmp_path, changes=(*CHANGES, *CACHES))))
    assert both.passed is False
    assert both.details["changes"] == ["created src/a.py", "deleted src/b"]
    assert len(both.details["ignored"]) == len(CACHES)


@pytest.mark.parametrize(
    ("ignore", "passed"),
    [
        ((), False),
        (("src",), True),
        (("*.py", "b"), True),
        (("a.py",), False),
        (("rc",), False),
        (("src/a.py", "b"), True),
    ],
)
def test_what_is_ignored_can_be_chosen(tmp_path: Path, ignore: tuple[str, ...], passed: bool) -> None:
    check = FilesChangedOnly(("README.md",), ignore)
    assert check.decide(gathered(check, FakeWorld(tmp_path, changes=CHANGES))).passed is passed
    cache = check.decide(gathered(check, FakeWorld(tmp_path, changes=CACHES[:1])))
    assert cache.passed is False


@pytest.mark.parametrize(
    "path", ["node_modules/a.js", "src/my__pycache__/x", ".pytest_cache.txt", "cache/x", "pycache"]
)
def test_what_only_looks_like_a_cache_counts(tmp_path: Path, path: str) -> None:
    check = FilesChangedOnly()
    assert check.decide(gathered(check, FakeWorld(tmp_path, changes=(FileChange(path, "created"),)))).passed is False


def test_the_reason_names_whole_files_and_counts_the_rest(tmp_path: Path) -> None:
    names = [f"tests/a_rather_long_folder_name/test_number_{n}.py" for n in range(5)]
    check = FilesChangedOnly(("b",))
    changes = tuple(FileChange(name, "created") for name in names)
    found = check.decide(gathered(check, FakeWorld(tmp_path, changes=changes)))
    assert found.reason == f"created {names[0]} (and 4 more)"


@pytest.mark.slow
def test_more_changes_than_are_kept_prove_nothing_unless_one_is_wrong(tmp_path: Path) -> None:
    many = tuple(FileChange(f"a/{n:06}", "created") for n in range(20_001))
    world = FakeWorld(tmp_path, changes=many)
    assert FilesChangedOnly(("a",)).decide(gathered(FilesChangedOnly(), world)).passed is None
    wrong = FilesChangedOnly(("b",)).decide(gathered(FilesChangedOnly(), world))
    assert (wrong.passed, len(wrong.details["changes"])) == (False, 20)


def test_a_pattern_that_can_never_match_leaves_the_file_unproven_unless_something_else_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("some $12.50 here")
    world = FakeWorld(tmp_path)
    for more, passed in (({}, None), ({"not_contains": "some"}, False), ({"contains": "none"}, False)):
        check = FileContent("a", pattern=r"\\$\\d+", **more)
        finding = check.decide(gathered(check, world))
        assert finding.passed is passed
    assert [code for code, *_ in FileContent("a", pattern=r"\\$\\d+").lint()] == ["lint-never-matches"]
