"""What the page of a very large run holds, and that it says so."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from report_sample import sample, trial, whole

from holdfast.model.run import CellRow, Run, TrialRow
from holdfast.model.score import Cell
from holdfast.report import page_data, page_limits
from holdfast.report.html import Html
from holdfast.report.page_tables import NOT_HERE, PageTables, packed

RULES = 50


class Trials(Sequence[TrialRow]):
    """One trial, counted when it is read."""

    read = 0

    def __init__(self, n: int, outcome: str) -> None:
        self._row = trial(f"{n:012x}", outcome, f"answer {n}")

    def __len__(self) -> int:
        return 1

    def __getitem__(self, at: Any) -> Any:
        return [self._row][at]

    def __iter__(self) -> Iterator[TrialRow]:
        Trials.read += 1
        yield self._row


def run_of(cells: int, failing: Sequence[int] = ()) -> Run:
    def row(n: int) -> CellRow:
        outcome = "fail" if n in failing else "pass"
        counts = {"fails": 1, "reason": "it lacks a source"} if outcome == "fail" else {"passes": 1}
        found = Cell(f"r{n % RULES}", f"s{n // RULES}", "low", 1.0, outcome, **counts)  # type: ignore[arg-type]
        return CellRow(found, Trials(n, outcome))

    return replace(sample(), id="0007", cells=[row(n) for n in range(cells)])


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that a test can reach."""
    monkeypatch.setattr(page_limits, "CELLS", 2_000)
    monkeypatch.setattr(page_limits, "HELD", 500)
    monkeypatch.setattr(page_limits, "TRIALS", 600)
    Trials.read = 0


def outcomes(page: PageTables) -> Counter[int]:
    return Counter(page.tables["cells"]["outcome"])


def test_a_run_within_the_limits_is_whole_and_nothing_is_said() -> None:
    page = PageTables(run_of(500, [3]))
    assert len(page.tables["trials"]["id"]) == 500
    assert page.lacks == ""
    assert "This page has the trials" not in whole(Html(), run_of(500)).decode()


def test_a_large_run_keeps_its_matrix_its_failures_and_a_sample_of_trials() -> None:
    failing = [1, 700, 1999]
    page = PageTables(run_of(2_000, failing))
    assert outcomes(page) == {0: 1997, 1: 3}
    kept = {int(id, 16) for id in page.tables["trials"]["id"]}
    assert set(failing) <= kept
    assert 480 <= len(kept) <= 520
    assert Trials.read == len(kept)
    assert f"of {len(kept - set(failing))} of the 1997 cells that did." in page.lacks
    assert page.lacks.endswith("holdfast report 0007 -o run.json")
    assert "are in the matrix" not in page.lacks


def test_the_sample_is_of_every_rule() -> None:
    page = PageTables(run_of(2_000))
    of_rules = Counter(int(id, 16) % RULES for id in page.tables["trials"]["id"])
    assert len(of_rules) == RULES


def test_a_cell_without_its_trials_says_where_to_look() -> None:
    tables = PageTables(run_of(2_000)).tables
    texts = [tables["strings"][n] for n in tables["cells"]["next"]]
    firsts = [*tables["cells"]["first"], len(tables["trials"]["id"])]
    for n, text in enumerate(texts):
        assert text == ("" if firsts[n + 1] > firsts[n] else NOT_HERE)


def test_a_very_large_run_has_a_sample_of_cells_too_and_the_page_says_so() -> None:
    failing = range(0, 10_000, 100)
    run = run_of(10_000, failing)
    page = PageTables(run)
    assert outcomes(page)[1] == 100
    assert 480 <= outcomes(page)[0] <= 520
    assert page.lacks.startswith(f"{sum(outcomes(page).values())} of 10000 cells are in the matrix.")
    assert page.lacks in whole(Html(), run).decode()


def test_failures_without_end_are_counted_not_shown() -> None:
    page = PageTables(run_of(10_000, range(10_000)))
    assert outcomes(page)[1] == 2_000
    assert len(page.tables["trials"]["id"]) == 600
    assert "There was no room for 8000 cells and 1400 trials more." in page.lacks
    assert (sum(cause.cells for cause in page.causes), page.troubled) == (10_000, 10_000)
    assert sum(map(len, page.tables["causes"])) <= 2_000


def test_texts_are_cut_when_all_of_them_would_be_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_data, "HELD_TEXT", 50)
    monkeypatch.setattr(page_data, "SHORT", 5)
    strings = PageTables(run_of(500, [499])).tables["strings"]
    assert "answer 0" in strings
    assert "answe\n[cut here: 5 more characters are in the run directory]" in strings
    assert "answer 499" in strings


def test_packed_data_has_no_sign_that_could_end_its_script() -> None:
    """The page has it as it is, not escaped."""
    hostile = "</script><!-- & 'a' \"b\" é"
    for size in range(40):  # of any rest that base64 pads, and of lists that are written in pieces
        tables = {hostile: [hostile[:size], *range(size * 1000)]}
        text = "".join(packed(tables))
        assert re.fullmatch(r"[A-Za-z0-9+/]+={0,2}", text)
        assert json.loads(gzip.decompress(b64decode(text))) == tables
