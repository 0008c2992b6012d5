"""The words and signs that all reports share."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from holdfast.model.codes import STATEFUL, RunWarning
from holdfast.model.fingerprint import compute_fingerprint
from holdfast.model.observation import FaultMet
from holdfast.model.run import CellRow, Overall, Run, TrialRow
from holdfast.model.scenario import Injection
from holdfast.model.score import Cell, Interval, Score
from holdfast.report.safe import Paint, to_one_line
from holdfast.spec.references import format_param
from holdfast.store.run_folders import format_resume

SIGNS: Mapping[str, str] = {"pass": "✔", "fail": "✘", "error": "!", "unproven": "?", "n/a": "–"}
ONE_SAMPLE = "1 sample per cell: results may vary, try --replicas 5"
NOT_THROUGH_GATEWAY = "no request of the agent passed the gateway"
GATEWAY_VARIABLES = (
    "start the agent with the gateway's variables (OPENAI_BASE_URL, ANTHROPIC_BASE_URL, HTTPS_PROXY and others): "
    'eval "$(holdfast gateway --print)" in its own shell, then start it'
)
TROUBLE: Mapping[str, int] = {"fail": 0, "error": 1, "unproven": 2}
"""Outcomes that need explaining, worst first."""
_EFFECTS = {"no_effect": "no effect", "erased": "erased"}
FLAGS: Mapping[str, str] = {"≈": "flaky", "c": "fails in calm too", "s": "simulated", "o": "order may differ"}
"""The remarks on a cell, each with its sign in the matrix."""
_MOST_HATS = 10
_VERDICTS = {0: "PASS", 1: "FAIL", 2: "INTERRUPTED", 5: "UNPROVEN"}
VERDICT_SIGNS: Mapping[str, str] = {"PASS": "✔", "FAIL": "✘", "UNPROVEN": "?", "SHARD": "–"}
"""The signs of verdicts; all others, which are harness errors and interrupts, get a !."""


def format_running(paint: Paint) -> str:
    """Replace the verdict of a run that another process is still writing."""
    return f"{paint('RUNNING', 'bold')}   another process is writing it   ·   holdfast view follows it"


def format_verdict(result: Score | Overall) -> str:
    """Return the verdict of a run, or of all parts of one, in one word."""
    return format_exit_code(result.exit_code, is_shard=bool(result.shard))


def format_exit_code(exit_code: int, *, is_shard: bool) -> str:
    """Return the verdict behind an exit code in one word; a shard without failures has no verdict of its own."""
    return "SHARD" if is_shard and not exit_code else _VERDICTS.get(exit_code, "ERROR")


def format_number(value: float | None) -> str:
    """Return a score as it is always printed: two decimals, or – if there is none."""
    return "–" if value is None else f"{value:.2f}"


def round_pass_hat(score: Score) -> dict[str, float]:
    """pass^k for a few k: 1, 2, 5, 10 and so on, and the largest; all if there are few replicas. JSON has every one."""
    every = score.pass_hat
    if len(every) <= _MOST_HATS:
        return every
    selected = {str(digit * 10**power) for power in range(9) for digit in (1, 2, 5)} | {max(every, key=int)}
    return {k: value for k, value in every.items() if k in selected}


def has_matrix(run: Run) -> bool:
    """Return whether there are cells to show: from a contract, or from a file with a chaos matrix."""
    return run.part in ("contract", "chaos") or run.contract is not None


def has_cells(run: Run) -> bool:
    """Return whether its cells decide the run: those of a matrix, or the causes that a hunt found."""
    return has_matrix(run) or run.part == "hunt"


def is_to_come(run: Run, cell: Cell) -> bool:
    """Return whether the cell is undecided because the run continues and some of its trials are missing."""
    return run.running and cell.outcome == "unproven" and cell.code == "not-run"


def format_interval(interval: Interval | None, scale: float = 1.0) -> str:
    """`95 %: 25–87, approximate`; empty if it would say nothing. `scale`: 0.01 next to a number from 0 to 1."""
    if interval is None or not interval.is_shown:
        return ""
    low, high = interval.low * scale, interval.high * scale
    few = f": {format_count(interval.prompts, 'prompt')}" if interval.method == "bootstrap" else ""
    return f"95 %: {_format_ends(low, high)}" + (f", approximate{few}" if interval.approximate else "")


def _format_ends(low: float, high: float) -> str:
    digits = 0 if high - low >= 2 else 2  # a narrow interval must not look like a missing one
    return f"{low + 0.0:.{digits}f}{'–' if low >= 0 else ' to '}{high:.{digits}f}".replace("-0 ", "0 ")


def list_calm_and_chaos(score: Score) -> list[tuple[str, str]]:
    """Return the scores in calm and under chaos, each with its name."""
    both = (("calm", score.calm), ("under chaos", score.chaos))
    return [(name, format_number(value)) for name, value in both if value is not None]


def format_paired(score: Score) -> str:
    """`chaos costs 12.5 points (95 %: 4–21)`: the paired difference; empty with too few prompts.

    The calm and chaos scores cover all rules that count there; this covers those that count in both.
    """
    difference = score.paired
    if difference is None or not difference.interval.is_shown:
        return ""
    cost, low, high = -difference.points, -difference.interval.high, -difference.interval.low
    few = (
        f", approximate: {format_count(difference.interval.prompts, 'prompt')}"
        if difference.interval.approximate
        else ""
    )
    word = f"costs {cost:.1f}" if cost > 0 else f"gains {-cost:.1f}" if cost < 0 else "costs no"
    rules = (
        "rules"
        if difference.rules >= score.rules
        else f"{difference.rules} of {score.rules} rules, which apply in both,"
    )
    return f"chaos {word} points on the same {rules} and prompts (95 %: {_format_ends(low, high)}{few})"


def format_warning(warning: RunWarning) -> str:
    """Return a warning on one line; document 001 prints the one about state with a capital letter."""
    return f"{'Warning' if warning.code == STATEFUL else 'warning'}: {to_one_line(warning.text)}"


def format_count(count: int, noun: str) -> str:
    """`1 cell`, `2 cells`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def format_judged(score: Score) -> str:
    """Format how much of the contract the score covers."""
    absent = score.counts.get("n/a", 0)
    return f"{score.judged} of {format_count(score.total, 'cell')} judged" + (f" ({absent} n/a)" if absent else "")


def format_params(values: Mapping[str, Any]) -> str:
    """`region=eu model=small`, or nothing."""
    return " ".join(f"{name}={format_param(value)}" for name, value in values.items())


def format_head(scenario: str, values: Mapping[str, Any]) -> str:
    """Return the heading of a column of the matrix: a scenario, with its params if it has any."""
    return f"{scenario} [{format_params(values)}]" if values else scenario


def format_column(cell: Cell) -> str:
    """Return the column heading of a cell."""
    return format_head(cell.scenario, cell.params)


def format_tally(cell: Cell) -> str:
    """`1/2`: passes among the decided trials, if that says more than the sign alone."""
    decided = cell.passes + cell.fails
    if (cell.outcome == "fail" and decided > 1) or (cell.outcome == "pass" and cell.fails):
        return f"{cell.passes}/{decided}"
    return ""


def list_flags(cell: Cell) -> list[str]:
    """Return the signs of the remarks on a cell."""
    marks = (cell.flaky, cell.fails_in_calm, cell.simulated, cell.concurrent)
    return [flag for flag, true in zip(FLAGS, marks, strict=True) if true] if any(marks) else []


def list_marks(cell: Cell) -> list[str]:
    """Return the remarks on a cell, such as flaky."""
    return [FLAGS[flag] for flag in list_flags(cell)]


def format_fault(met: FaultMet) -> str:
    """Return one firing on one line: `tool search, call 1: error, injected 503 (the tool was not called)`."""
    place = met.plane if met.target in ("", "*", met.plane) else f"{met.plane} {met.target}"
    change = met.change or " → ".join(part for part in (met.would, met.got) if part)
    parts = [met.mode, change, met.note, _EFFECTS.get(met.effect, "")]
    retry = f" (retry {met.retry})" if met.retry else ""
    return f"{place}, call {met.call}{retry}: " + ", ".join(part for part in parts if part)


def filter_met(faults: Iterable[FaultMet]) -> list[FaultMet]:
    """Return the firings that the agent observed."""
    return [fault for fault in faults if fault.effect == "met"]


def format_ending(ending: str, detail: str, calls_made: str) -> str:
    """Return a bad ending of the agent on one line, with its progress; empty for a good one, and for harness errors."""
    if ending in ("answered", "error"):
        return ""
    calls = f"; {calls_made}" if calls_made else ""
    return to_one_line(f"{ending}: {detail}{calls}" if detail else f"{ending}{calls}")


def format_answer(trial: TrialRow) -> str:
    """Return the answer; without one, the ending or the harness error."""
    if trial.ending == "error":
        return f"{trial.answer or ''} (error: {trial.detail})".strip()
    if trial.answer:
        return trial.answer
    return "(nothing: the answer is empty)" if trial.ending == "answered" else "(nothing)"


def find_telling(row: CellRow) -> TrialRow | None:
    """Return the trial that best explains the cell: the first one of a prompt that decided."""
    return min(find_deciding(row) or row.trials[:1], key=lambda t: t.aside, default=None)


def split_by_cause(row: CellRow) -> Iterator[CellRow]:
    """Yield the cell once for each cause of its outcome, with the reason, code, key and ending of that cause."""
    if not row.cell.causes:
        yield row
    for one in row.cell.causes:
        cell = replace(row.cell, reason=one.reason, code=one.code, key=one.key, ending=one.ending, causes=(one,))
        yield CellRow(cell, row.trials)


def find_deciding(row: CellRow) -> list[TrialRow]:
    """Return the trials with the cell's outcome; if the cell has several causes, those with the cause of `row`."""
    cell = row.cell
    same = [trial for trial in row.trials if trial.outcome == cell.outcome]
    if not cell.causes:
        return same
    cause = build_cause_key(cell.code, cell.key, cell.ending)
    return [trial for trial in same if build_cause_key(trial.code, trial.key, trial.ended_by) == cause] or same


def build_cause_key(code: str, key: tuple[str, ...], ending: str) -> tuple[str, ...]:
    """Equal for failures with one cause. An ending is a cause by itself, whichever code a rule gave it."""
    return (compute_fingerprint(ending),) if ending else (code, *key)


class Places:
    """Positions of rules in the spec's file."""

    def __init__(self, run: Run) -> None:
        self._path = run.spec_path
        self._lines = {rule.id: rule.position.line for rule in run.invariants if rule.position}

    def format_place(self, invariant: str) -> str:
        """`finance.yaml:12`, or only the file."""
        line = self._lines.get(invariant)
        return f"{self._path}:{line}" if line else self._path


_STEPS = {
    "pattern-cannot-match": "write a pattern that can match, and judge the stored trials again: holdfast judge",
    "fault-changed-nothing": "this fault found nothing to change in the replies: set its mode's options, or use "
    "another mode",
    "fault-no-match": "write a `match` that fits the arguments of the agent's calls",
    "no-answer": "there was no text to judge: a `completes` or `output_not_empty` rule fails on an empty answer",
}
"""What to do about an unproven cell, by the code of its reason."""


def format_next_step(run: Run, row: CellRow) -> str:
    """Return what to do about a cell that is unproven or an error; empty if its reason is enough."""
    cell = row.cell
    if cell.outcome == "error":
        return "Holdfast failed, not the agent: fix the cause and run it again"
    if is_to_come(run, cell):
        return "wait: the run continues"
    judged = cell.passes + cell.fails + cell.errors + cell.unproven
    if not run.complete and (judged < run.score.replicas or cell.code == "not-run"):
        return f"resume it: {format_resume(Path(run.path), run.part)}"
    if not judged:
        return "run it"
    if cell.code in _STEPS:
        return _STEPS[cell.code]
    if cell.chaos and not cell.met and run.gateway and not any(t.trace for t in row.trials):
        return f"{NOT_THROUGH_GATEWAY}: {GATEWAY_VARIABLES}"
    if cell.chaos and not cell.met:
        targets = ", ".join(_list_targets(run, cell.scenario))
        advice = f"use a prompt that makes the agent call {targets}, or " if targets else ""
        if not targets and any(fault.plane == "world" for fault in _find_faults(run, cell.scenario)):
            return "let the fault begin earlier (after_ms, on_event), or use a prompt that takes the agent longer"
        unseen = cell.code == "fault-no-request"
        step = (
            f"see whether its requests go through the proxy: holdfast doctor -c {shlex.quote(run.spec_path)}"
            if unseen
            else ""
        )
        return advice + (step or "check the fault's target and schedule")
    if cell.passes or cell.fails:
        return "more replicas would decide it; the report has every trial"
    return ""


def _list_targets(run: Run, scenario: str) -> list[str]:
    """List what the agent has to call to meet the scenario's faults."""
    called = [
        i for i in _find_faults(run, scenario) if i.plane != "world" and (i.plane, i.target) != ("context", "input")
    ]
    return list(dict.fromkeys(map(_format_callee, called)))


def _find_faults(run: Run, scenario: str) -> tuple[Injection, ...]:
    return next((s.injections for s in run.scenarios if s.name == scenario), ())


def _format_callee(fault: Injection) -> str:
    if fault.plane == "llm":
        return "its model"
    if fault.match_url is not None:
        return fault.match_url
    return "a tool" if fault.target in ("", "*") else fault.target


def build_sort_key(row: CellRow) -> tuple[int, bool, float]:
    """Return the sort key of cells that need explaining."""
    return TROUBLE[row.cell.outcome], not row.cell.critical, -row.cell.weight


def format_reason(row: CellRow) -> str:
    """Return the reason of a cell for people; its trials are read only if it has none."""
    if row.cell.reason:
        return row.cell.reason
    trial = find_telling(row)
    return (trial.reason if trial else "") or "no reason was recorded"


def format_report_path(run: Run) -> str:
    """Return where to find more: the page of this run, or its folder."""
    return run.page or run.path
