"""Which files of a folder are sessions, and the sessions of a spec with its sources."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from replay_kit import langsmith, langsmith_run, session, uuid

from error_code import has_code
from holdfast.errors import HarnessError, SpecError, UserError
from holdfast.model.session import ReplaySpec, SessionSource
from holdfast.model.spec import AgentSpec, Spec
from holdfast.replay.session_list import UnreadableSessions, list_sessions, read_path

CACHED = ".holdfast/replays"
NOW = datetime(2026, 11, 12, tzinfo=UTC)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def spec(tmp_path: Path, replays: ReplaySpec | None) -> Spec:
    return Spec(str(tmp_path / "holdfast.yaml"), AgentSpec(), replays=replays)


def test_a_folder_is_read_with_those_in_it_specs_contracts_and_hidden_files_aside(tmp_path: Path) -> None:
    write(tmp_path / "b.yaml", "id: b\ninput: x\n")
    write(tmp_path / "deep/a.json", '[{"id": "a", "input": "x"}, {"id": "c", "input": "y"}]')
    write(tmp_path / "holdfast.yaml", "agent: {}\n")
    write(tmp_path / "rules.yml", "contract: {name: x, invariants: []}\n")
    write(tmp_path / ".holdfast/z.yaml", "id: z\ninput: x\n")
    write(tmp_path / "notes.txt", "nothing")
    assert [one.id for one in read_path(tmp_path)] == ["b", "a", "c"]


def test_what_is_wrong_with_one_file_or_several_is_reported_whole(tmp_path: Path) -> None:
    write(tmp_path / "good.yaml", "id: b\ninput: x\n")
    write(tmp_path / "a.yaml", "id: a\n")
    with pytest.raises(SpecError):
        read_path(tmp_path)
    write(tmp_path / "c.yaml", "input: x\nnme: y\n")
    with pytest.raises(UnreadableSessions) as refused:
        read_path(tmp_path)
    assert [len(one.problems) for one in refused.value.files] == [1, 2]


def test_a_folder_without_sessions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, check=has_code("session-unusable")):
        read_path(tmp_path)


def test_the_sessions_of_a_spec_are_in_its_order(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", "[{id: a, input: x}, {id: b, input: y}]")
    replays = ReplaySpec((session("first"), "a.yaml", session("last")))
    found = list_sessions(spec(tmp_path, replays), {}, NOW).sessions
    assert [one.id for one in found] == ["first", "a", "b", "last"]


def test_a_spec_without_replays_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UserError, check=has_code("session-unusable")) as refused:
        list_sessions(spec(tmp_path, None), {}, NOW)
    assert "holdfast promote" in refused.value.hint


def test_sources_are_fetched_again_where_they_say_so_and_what_is_gone_leaves_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sources = (SessionSource("support", status="all", auto_import=True), SessionSource(run=uuid(9)))
    asked = spec(tmp_path, ReplaySpec((session("own"),), sources))
    with langsmith(*(langsmith_run(n, inputs={"input": f"question {n}"}) for n in (1, 2))) as server:
        found = list_sessions(asked, server.environ, NOW)
        assert [one.id for one in found.sessions] == ["own", uuid(1), uuid(2)]
        del server.runs[0]
        write(tmp_path / CACHED / "langsmith-support" / "mine.txt", "kept")
        list_sessions(asked, server.environ, NOW)
        environ = server.environ
    kept = sorted(path.name for path in (tmp_path / CACHED / "langsmith-support").iterdir())
    assert kept == [f"{uuid(2)}.yaml", "mine.txt"]
    with pytest.raises(HarnessError):
        list_sessions(asked, environ, NOW)
    assert len(list((tmp_path / CACHED / "langsmith-support").glob("*.yaml"))) == 1
