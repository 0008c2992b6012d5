"""The documents of a page: what one of a very large run holds, bounded values, what an agent did, files it changed."""

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
from report_cases_sample import alone
from report_sample import sample, trial, whole

from holdfast.model.observation import Observation, Turn
from holdfast.model.run import CaseRow, CellRow, ReplicaRow, Run, TrialRow
from holdfast.model.scenario import Scenario
from holdfast.model.score import Case, Cell, Replica
from holdfast.model.spec import Invariant
from holdfast.model.world import AuditEvent, FileTexts
from holdfast.report.page import inlined
from holdfast.report.page.html import Html
from holdfast.report.page.hunt import build_map
from holdfast.report.page.inlined import DocumentPack
from holdfast.report.page.run import build_run
from holdfast.report.page.trial import DEED, list_file_changes
from holdfast.report.page.values import ITEMS, TEXT, fit_value, shorten_value
from page_documents import documents

RULES = 50
TRIAL = "a" * 12


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

    rules = tuple(Invariant(f"r{n}", "regex") for n in range(RULES))
    scenarios = tuple(Scenario(f"s{n}") for n in range(-(-cells // RULES)))
    return replace(sample(), id="0007", invariants=rules, scenarios=scenarios, cells=[row(n) for n in range(cells)])


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that a test can reach: room for about 500 passed and 600 failed trials."""
    size = DocumentPack().add(f"run/trial/{'0' * 12}", page_of(run_of(1))[f"run/trial/{'0' * 12}"])
    monkeypatch.setattr(inlined, "CELLS", 2_000)
    monkeypatch.setattr(inlined, "HELD_TEXT", 500 * size)
    monkeypatch.setattr(inlined, "TEXT", 600 * size)
    Trials.read = 0


def page_of(run: Run) -> dict[str, Any]:
    return documents(whole(Html(), run).decode())


def outcomes(page: dict[str, Any]) -> Counter[int]:
    return Counter(page["run/matrix"]["outcome"])


def trials_in(page: dict[str, Any]) -> set[int]:
    return {int(name.removeprefix("run/trial/"), 16) for name in page if name.startswith("run/trial/")}


# -- how much of a run a page holds -------------------------------------------------------------
def test_a_run_within_the_limits_is_whole_and_nothing_is_said() -> None:
    page = page_of(run_of(400, [3]))
    assert len(trials_in(page)) == 400
    assert page["run/matrix"]["lacks"] == ""


def test_a_large_run_keeps_its_matrix_its_failures_and_some_trials() -> None:
    failing = [1, 700, 1999]
    page = page_of(run_of(2_000, failing))
    assert outcomes(page) == {0: 1997, 1: 3}
    kept, lacks = trials_in(page), page["run/matrix"]["lacks"]
    assert set(failing) <= kept
    assert 450 <= len(kept) <= 550
    assert Trials.read <= len(kept) + 3 * len(failing)  # those of the causes are read again: in text, and as a document
    assert f"of {len(kept - set(failing))} of the 1997 cells" in lacks
    assert lacks.endswith("holdfast report 0007 -o run.json")
    assert " of 2000 cells" not in lacks
    cells = {name for name in page if name.startswith("run/cell/")}
    assert cells == {f"run/cell/{n % RULES}/{n // RULES}" for n in kept}


def test_a_very_large_run_has_the_cells_that_did_not_pass_and_the_page_says_so() -> None:
    page = page_of(run_of(10_000, range(0, 10_000, 100)))
    assert outcomes(page) == {1: 100}
    assert page["run/matrix"]["lacks"].startswith("100 of 10000 cells ")


def test_failures_without_end_are_counted_not_shown() -> None:
    page = page_of(run_of(10_000, range(10_000)))
    assert outcomes(page)[1] == 2_000
    shown = len(trials_in(page))
    assert 500 <= shown <= 700
    assert f"8000 cells and {2_000 - shown} trials" in page["run/matrix"]["lacks"]
    causes = page["run/causes"]
    assert (sum(cause["count"] for cause in causes["causes"]), causes["cells"]) == (10_000, 10_000)


def test_a_trial_is_in_the_page_once_whatever_rules_judged_it() -> None:
    shared = trial("c" * 12, "fail", "it is $12")
    rows = [CellRow(Cell(f"r{n}", "s0", "low", 1.0, "fail", fails=1, reason="r"), [shared]) for n in range(3)]
    again = replace(rows[2], trials=[replace(shared, again="holdfast contract run --scenario s0")])
    page = page_of(replace(run_of(50), cells=[*rows[:2], again]))
    assert [name for name in page if name.startswith("run/trial/")] == [f"run/trial/{'c' * 12}"]
    assert [page[f"run/cell/{n}/0"]["trials"][0].get("again", "") for n in range(3)] == ["", "", again.trials[0].again]


def test_packed_documents_have_no_sign_that_could_end_their_script() -> None:
    """The page has them as they are, not escaped."""
    hostile = "</script><!-- & 'a' \"b\" é"
    for size in range(40):  # of any rest that base64 pads
        packed = DocumentPack()
        packed.add("run", {hostile[:size]: hostile})
        text = "".join(packed.encode_pieces())
        assert re.fullmatch(r"[A-Za-z0-9+/]+={0,2}", text)
        name, _, line = gzip.decompress(b64decode(text)).decode().partition("\t")
        assert (name, *json.loads(line)) == ("run", hostile[:size])


# -- what an agent did --------------------------------------------------------------------------
def replica_in_page(*audit: AuditEvent, turns: tuple[Turn, ...] = ()) -> dict[str, Any]:
    """What the page has of the one trial of a case."""
    replica = Replica(TRIAL, "pass", 1.0)
    row = ReplicaRow(replica, "go", Observation(TRIAL, turns, audit=audit), (), "holdfast run")
    run: Run = replace(alone(), cases=[CaseRow(Case("s", "pass", "go", replicas=(replica,)), [row])])
    found: dict[str, Any] = page_of(run)[f"run/trial/{TRIAL}"]
    return found


def command(*argv: str, code: int | None = 0, took_ms: float | None = 1.0) -> AuditEvent:
    return AuditEvent(1.0, 1, "command", {"argv": [*argv], "cwd": "/", "exit_code": code, "duration_ms": took_ms})


@pytest.mark.parametrize(
    ("code", "took_ms", "end", "bad"),
    [
        (0, 1.0, "exit 0", False),
        (1, 1.0, "exit 1", True),
        (None, 1.0, "ended by a signal", True),
        (None, None, "end not known", False),
    ],
)
def test_a_command_has_its_end(code: int | None, took_ms: float | None, end: str, bad: bool) -> None:
    (event,) = replica_in_page(command("sh", "-c", "a b", code=code, took_ms=took_ms))["audit"]
    assert (event["deed"], event["end"], event["bad"]) == ("$ sh -c 'a b'", end, bad)


def test_a_long_command_keeps_its_end_and_other_deeds_have_none() -> None:
    written = AuditEvent(1.0, 2, "file_write", {"path": "a", "op": "created", "bytes": 1})
    long, other = replica_in_page(command("echo", "x" * 5_000, code=7), written)["audit"]
    assert (len(long["deed"]), long["end"]) == (DEED, "exit 7")
    assert (other["deed"], "end" in other) == ("created a", False)


def test_many_turns_calls_and_a_long_end_are_cut() -> None:
    found = replica_in_page(turns=(Turn("a", None, 1.0, "crashed", "x" * 90_000),) * 500)
    assert len(found["turns"]) == inlined.INLINED.events
    assert max(len(turn["detail"]) for turn in found["turns"]) < inlined.INLINED.text + 100


def test_a_case_that_is_unproven_is_not_an_error() -> None:
    replica = Replica(TRIAL, "error", None, 0, "the attack was not put whole")
    row = ReplicaRow(replica, "go", Observation(TRIAL, ()), (), "holdfast run")
    case = Case("s", "error", "go", unproven_only=True, replicas=(replica,))
    (found,) = page_of(replace(alone(), cases=[CaseRow(case, [row])]))["run"]["cases"]
    assert (found["status"], found["replicas"][0]["outcome"]) == ("unproven", "unproven")


def test_a_case_counts_the_replicas_that_it_does_not_list() -> None:
    outcomes = ["pass"] * 150 + ["fail"] * 50
    case = Case("s", "fail", "go", replicas=tuple(Replica(TRIAL, one, None, 0, "") for one in outcomes))  # type: ignore[arg-type]
    (found,) = build_run(replace(alone(), cases=[CaseRow(case, [])]))["cases"]
    assert (found["passes"], found["runs"], len(found["replicas"])) == (150, 200, 100)


# -- values -------------------------------------------------------------------------------------
def test_what_is_too_large_becomes_the_beginning_of_its_json() -> None:
    assert fit_value({"rows": [1, 2]}, 100) == {"rows": [1, 2]}
    assert fit_value({"rows": [1] * 900}, 20).startswith('{"rows":[1,1,1,1,1,1\n[cut here: ')
    assert fit_value("x" * 30, 20).startswith("x" * 20 + "\n[cut here: 10 more")


def test_what_is_recorded_has_a_bound_and_says_what_is_left_out() -> None:
    assert shorten_value({"rows": list(range(ITEMS + 5))})["rows"][-1] == "[5 more are left out]"
    assert shorten_value({str(n): n for n in range(ITEMS + 2)})["…"] == "[2 more are left out]"
    assert shorten_value("x" * (TEXT + 3)).endswith("[cut here: 3 more characters]")
    assert shorten_value([2**53, -(2**60), 7, True, None, 1.5]) == [str(2**53), str(-(2**60)), 7, True, None, 1.5]
    deep: object = "end"
    for _ in range(40):
        deep = [deep]
    assert "left out" in str(shorten_value(deep))


def change(before: str | None = None, after: str | None = None) -> AuditEvent:
    return AuditEvent(0.0, 1, "file_write", {"path": "a.txt", "op": "modified", "bytes": 9}, FileTexts(before, after))


def test_a_file_that_was_changed_has_its_difference() -> None:
    (found,) = list_file_changes([change(before="one\ntwo\n", after="one\n2\n")])
    assert found["diff"].splitlines() == ["--- a/a.txt", "+++ b/a.txt", "@@ -1,2 +1,2 @@", " one", "-two", "+2"]
    (made,) = list_file_changes([change(after="new\n")])
    assert made["diff"].endswith("+new")
    (unknown,) = list_file_changes([change()])
    assert (unknown["diff"], unknown["before"], unknown["bytes"]) == ("", None, 9)
    assert list_file_changes([AuditEvent(0.0, 1, "command", {"argv": ["ls"]})]) == []


def test_the_map_of_a_hunt_counts_the_points_of_the_hunt() -> None:
    mapped = {
        "sites": [{"plane": "tool", "target": "pay", "on_call": 1, "write": True, "feeds": [], "prompt": "Pay."}],
        "coverage": {
            "total": 2, "held": 1, "failed": 0, "not_met": 0, "open": 1,
            "rows": [{"plane": "tool", "target": "pay", "on_call": 1, "modes": {
                "error": {"state": "held", "n": 1}, "slow": {"state": "open"}, "own": {"state": "held", "extra": True},
            }}],
        },
    }  # fmt: skip
    count = {"total": 3, "held": 0, "failed": 1, "infeasible": 1, "open": 1}
    states = {"error": "failed", "error (lasting)": "infeasible", "slow": "open"}
    matrix = [{"plane": "tool", "target": "pay", "on_call": 1, "states": states}]
    lists = dict.fromkeys(("causes", "fixed", "flaky", "gave_up"), ())
    hunt = {"format": 1, "trials": 9, "stopped": "done", "coverage": {"points": count, "pairs": count}, **lists}
    (alone,) = build_map(mapped)["prompts"]
    (hunted,) = build_map(mapped, {**hunt, "matrix": matrix})["prompts"]
    assert alone["sites"][0]["counts"] == {"held": 1, "open": 1}
    assert hunted["sites"][0]["counts"] == {"failed": 1, "infeasible": 1, "open": 1}
    assert "coverage" not in build_map(mapped, {**hunt, "matrix": matrix})
