"""Search over what was asked, answered and judged, in files as runs leave them."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.observation import Observation, Turn
from holdfast.store.blobs import pack
from holdfast.store.rundir import RunDir
from holdfast.web.notes import KeptNote
from holdfast.web.search import Needle, search


def make_run(runs: Path, number: int, answers: list[str], reason: str = "held") -> RunDir:
    """A run with so many trials, their ids by number."""
    path = runs / f"{number:04d}"
    path.mkdir(parents=True)
    trials, seen, given = [], [], []
    for at, answer in enumerate(answers):
        id = f"{number:04d}{at:04d}"
        trials.append(
            json.dumps(
                {"id": id, "kind": "contract", "scenario": "calm", "task": {"turns": ["q"]}}, separators=(",", ":")
            )
        )
        seen.append(pack(Observation(id, (Turn("a question", answer),)), path / "blobs").decode())
        verdict = {"trial": id, "invariant": "cites", "outcome": "fail", "score": 0.0, "reason": reason}
        given.append(json.dumps(verdict, separators=(",", ":"), ensure_ascii=False))
    for name, lines in (("trials", trials), ("observations-0", seen), ("verdicts-1", given)):
        (path / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    return RunDir(path)


def find(runs: list[RunDir], text: str, limit: int = 100) -> Any:
    return search(runs, text, limit=limit, notes={})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("says Source", "SOURCE"),
        ('a "quoted" word', '"QUOTED" w'),
        ("back\\slash", "K\\s"),
        ("line\nbreak", "line\nb"),
        ("Straße im Winter", "STRAßE IM"),
        ("İstanbul is large", "large"),
        ("smile 😀 here", "😀 h"),
        ("Ünïcode", "ünÏ"),
    ],
)
def test_words_are_found_whatever_their_case_and_spelling(tmp_path: Path, text: str, words: str) -> None:
    (hit,) = find([make_run(tmp_path, 1, [text])], words)["hits"]
    assert (hit["run"], hit["trial"], hit["where"], hit["column"]) == ("0001", "00010000", "answer", "calm")
    start, end = hit["at"]
    found = hit["text"].encode("utf-16-le")[2 * start : 2 * end].decode("utf-16-le")
    assert found.casefold() == words.casefold()


def test_a_long_answer_lies_in_a_file_of_its_own_and_is_found(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1, ["x" * 40_000 + " needle " + "y" * 40_000])
    assert (run.path / "blobs").is_dir()
    (hit,) = find([run], "NEEDLE")["hits"]
    assert len(hit["text"]) < 300
    assert hit["text"][slice(*hit["at"])] == "needle"


def test_reasons_and_prompts_are_searched_too(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1, ["an answer"], reason="nothing matches über")
    assert [(hit["where"], hit["rule"]) for hit in find([run], "ÜBER")["hits"]] == [("reason", "cites")]
    assert [hit["where"] for hit in find([run], "a question")["hits"]] == ["prompt"]


def test_names_in_the_files_are_no_answers(tmp_path: Path) -> None:
    assert find([make_run(tmp_path, 1, ["an answer"])], "latency_ms")["hits"] == []
    assert find([make_run(tmp_path, 2, ["an answer"])], "invariant")["hits"] == []


def test_it_ends_at_the_limit_and_says_what_was_not_searched(tmp_path: Path) -> None:
    runs = [make_run(tmp_path, number, ["needle"] * 5) for number in (3, 2, 1)]
    found = find(runs, "needle", limit=5)
    assert [hit["run"] for hit in found["hits"]] == ["0003"] * 5
    assert (found["searched"], found["not_searched"], found["more"]) == (1, 2, True)


def test_it_ends_when_its_time_is_over(tmp_path: Path) -> None:
    runs = [make_run(tmp_path, number, ["nothing"]) for number in (2, 1)]
    ticks = count()
    found = search(runs, "needle", limit=10, notes={}, clock=lambda: float(next(ticks)))
    assert found["more"]
    assert found["not_searched"] >= 1


def test_damaged_lines_and_missing_files_are_passed_over(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1, ["needle one", "needle two"])
    path = run.path / "observations-0.jsonl"
    path.write_bytes(b'{"needle":\xff\n' + path.read_bytes())
    (run.path / "trials.jsonl").unlink()
    assert [hit["column"] for hit in find([run, RunDir(tmp_path / "0009")], "needle")["hits"]] == ["", ""]


def test_notes_are_searched_first(tmp_path: Path) -> None:
    notes = {"0001/trial/abc": KeptNote("", "a needle of mine"), "0002": KeptNote("", "other")}
    found = search([make_run(tmp_path, 3, ["needle"])], "needle", limit=10, notes=notes)["hits"]
    assert [(hit["where"], hit["run"], hit["trial"]) for hit in found] == [
        ("note", "0001", "abc"),
        ("answer", "0003", "00030000"),
    ]


def test_a_needle_that_grows_without_its_case_is_placed_right() -> None:
    text, at = Needle("ende").find_excerpt("ß" * 50 + " das ENDE")  # type: ignore[misc]
    assert text[slice(*at)] == "ENDE"


@pytest.mark.parametrize(("answers", "limit", "more"), [(50, 100, False), (51, 100, True), (8, 8, False), (9, 8, True)])
def test_places_that_are_left_out_are_reported(tmp_path: Path, answers: int, limit: int, more: bool) -> None:
    found = find([make_run(tmp_path, 1, ["anvils"] * answers + ["none"] * 300)], "anvils", limit)
    assert (len(found["hits"]), found["more"], found["not_searched"]) == (min(answers, limit, 50), more, 0)
