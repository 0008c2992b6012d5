"""`llm_as_judge` on what an agent leaves in a real world: the mail that a mock got, the files that it changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from world_runs import BACKENDS, Ran, ran, spec_of

from judge_kit import judging, parted, rating

SMTP = {"name": "smtp", "type": "http_mock", "record": True, "routes": [{"method": "POST", "path": "/send"}]}
MAIL = """python3 -c '
import os, urllib.request
url = "http://" + os.environ["SMTP_HOST"] + ":" + os.environ["SMTP_PORT"] + "/send"
urllib.request.urlopen(urllib.request.Request(url, data=b"Dear all, the total is 12."))
print("sent")
'"""


def play(folder: Path, command: str, *, backend: str = "bubblewrap", **more: Any) -> Ran:
    folder.mkdir(exist_ok=True)
    return ran(folder, spec_of(command, **more), backend=backend)


def verdict(found: Ran) -> tuple[str, str]:
    """Outcome and reason of the only rule, as they are stored."""
    (line,) = (Path(str(found.folder)) / "verdicts-1.jsonl").read_text().splitlines()
    told = json.loads(line)
    return told["outcome"], told["reason"]


def rule(**settings: Any) -> dict[str, Any]:
    check = {"type": "llm_as_judge", "model": "paragon-fast", "criteria": "Professional, accurate", **settings}
    return {"quality": {"description": "It is well made", "weight": 0.2, "check": check}}


def sections(url: str, **settings: Any) -> dict[str, Any]:
    models = {"paragon-fast": {"provider": "anthropic", "name": "small", "base_url": url}}
    return {"invariants": rule(**settings), "models": models, "advanced": {"retries": 0}}


@BACKENDS
@pytest.mark.parametrize(("score", "status"), [(0.9, "pass"), (0.3, "fail")])
def test_a_mail_that_a_mock_got_is_judged(tmp_path: Path, backend: str, score: float, status: str) -> None:
    with judging(lambda got: rating(score)) as server:
        asked = sections(server.url, input_from="smtp.last_request.body", pass_threshold=0.7)
        found = play(tmp_path, MAIL, backend=backend, services=[SMTP], **asked)
    assert found.case.status == status, found.seen
    assert found.case.composite == pytest.approx(score)
    (got,) = server.seen
    assert got.path == "/v1/messages"
    assert parted(got.prompt)[1] == "Dear all, the total is 12."


@BACKENDS
def test_changed_files_are_judged_and_what_was_there_before_is_not(tmp_path: Path, backend: str) -> None:
    with judging(lambda got: rating(1)) as server:
        setup = {"files": [{"path": "old.txt", "content": "was here"}, {"path": "gone.txt", "content": "was here"}]}
        command = "rm gone.txt; echo the report > report.md; ln -s /etc/passwd leak; echo done"
        found = play(tmp_path, command, backend=backend, setup=setup, **sections(server.url, input_from="workspace"))
    assert found.case.status == "pass", found.seen
    text = parted(server.seen[0].prompt)[1]
    assert "=== created: report.md (11 bytes)\nthe report\n" in text
    assert "=== deleted: gone.txt" in text
    assert "was here" not in text
    assert "root:" not in text, "a link that leaves the workspace is not followed"


def test_an_agent_that_left_nothing_fails_without_a_call(tmp_path: Path) -> None:
    with judging(lambda got: rating(1)) as server:
        for source in ("workspace", "smtp.last_request.body"):
            found = play(tmp_path / source, "echo idle", services=[SMTP], **sections(server.url, input_from=source))
            assert found.case.status == "fail"
            assert verdict(found) == ("fail", f"nothing to judge: {source} is empty")
    assert not server.seen


def test_a_judge_that_is_down_leaves_the_case_in_error(tmp_path: Path) -> None:
    found = play(tmp_path, "echo hello", **sections("http://127.0.0.1:9", input_from="stdout"))
    assert found.case.status == "error"
    assert found.case.composite is None
    assert "127.0.0.1:9" in verdict(found)[1]


def test_all_that_a_command_printed_is_its_stdout(tmp_path: Path) -> None:
    with judging(lambda got: rating(1)) as server:
        play(tmp_path, "echo hello; echo careful >&2", **sections(server.url, input_from="stdout"))
    assert parted(server.seen[0].prompt)[1] == "hello\ncareful\n"
