import io
import re

import msgspec
from report_sample import INVARIANTS, SCENARIOS, cell

from holdfast.model.events import (
    CallSeen,
    CellDecided,
    Event,
    RunEnded,
    RunStarted,
    TrialEnded,
    TrialStarted,
    VerdictGiven,
)
from holdfast.model.observation import Observation
from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec, Spec
from holdfast.model.task import Task
from holdfast.model.trace import TraceEvent
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.report.terminal.live import Live
from holdfast.report.terminal.progress import Plain

SPEC = Spec("finance.yaml", AgentSpec(type="python"), "Finance", invariants=INVARIANTS[:3], scenarios=SCENARIOS)
STARTED = RunStarted("0007", ".holdfast/runs/0007", SPEC, 14, 9, 3, 3, 7, 4)
TRIAL = Trial("aaaaaaaaaaaa", "contract", Scenario("no-chaos"), Task(("hi",)))
FAILED = CellDecided(cell("max-latency", "no-chaos", "fail", fails=1, reason="too \x1b[2J slow").cell)
PASSED = CellDecided(cell("max-latency", "llm-degraded", "pass", passes=1).cell)
HEADER = "Finance · 3 rules × 3 scenarios · 14 trials · seed 7 · a fresh process each, 4 at a time"


def events(count: int) -> list[Event]:
    one: list[Event] = [
        TrialStarted(TRIAL),
        TrialEnded(TRIAL, Observation(TRIAL.id)),
        VerdictGiven(TRIAL, Verdict(TRIAL.id, "max-latency", "pass", 1.0, "")),
    ]
    return one * count


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def live(clock: Clock) -> tuple[Live, io.StringIO]:
    stream = io.StringIO()
    return Live(stream, clock=clock, color=False), stream


def drawn(stream: io.StringIO) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())


def test_plain_writes_the_header_and_with_verbose_each_cell() -> None:
    for verbose in (False, True):
        out = io.StringIO()
        listener = Plain(out, verbose=verbose)
        for event in (STARTED, *events(2), PASSED, FAILED, RunEnded(True)):
            listener(event)
        listener.close()
        cells = ["✔ pass      max-latency · llm-degraded", "✘ fail      max-latency · no-chaos  too \\x1b[2J slow"]
        assert out.getvalue().splitlines() == [HEADER, "", *(cells if verbose else [])]


def test_plain_says_now_and_then_how_far_the_run_is() -> None:
    out, clock = io.StringIO(), Clock()
    listener = Plain(out, clock=clock)
    listener(STARTED)
    for event in events(4):
        clock.now += 5.0
        listener(event)
    assert out.getvalue().splitlines()[2:] == ["  3 of 14 trials, 0 failed"]


def test_live_shows_progress_failures_elapsed_and_the_rest() -> None:
    clock = Clock()
    listener, stream = live(clock)
    listener(STARTED)
    for event in (*events(7), VerdictGiven(TRIAL, Verdict(TRIAL.id, "max-latency", "fail", 0.0, ""))):
        listener(event)
    clock.now = 6.0
    listener(FAILED)
    shown = drawn(stream)
    assert shown.startswith(HEADER)
    assert "7/14   1 failed   00:06, about 00:06 left" in shown
    assert re.search(r"max-latency +medium +✘", shown)


def test_live_redraws_at_most_ten_times_a_second() -> None:
    clock = Clock()
    listener, stream = live(clock)
    listener(STARTED)
    for event in events(1000):
        clock.now += 0.001
        listener(event)
    assert 20 <= drawn(stream).count("/14 ") <= 32


def test_live_leaves_out_a_matrix_that_does_not_fit() -> None:
    many = tuple(msgspec.structs.replace(INVARIANTS[0], id=f"rule-{n}") for n in range(200))
    listener, stream = live(Clock())
    listener(msgspec.structs.replace(STARTED, spec=msgspec.structs.replace(SPEC, invariants=many)))
    assert "0/14" in drawn(stream)
    assert "rule-" not in drawn(stream)


def test_live_ticks_without_events() -> None:
    clock = Clock()
    listener, stream = live(clock)
    listener(STARTED)
    clock.now = 65.0
    listener.tick()
    assert "01:05" in drawn(stream)


def test_live_takes_its_picture_away_and_keeps_the_header() -> None:
    listener, stream = live(Clock())
    listener(STARTED)
    listener(RunEnded(True))
    listener.close()
    # Erasing is moving up and clearing lines; the cursor is shown again.
    assert "\x1b[2K" in stream.getvalue()
    assert stream.getvalue().rindex("\x1b[?25h") > stream.getvalue().rindex("/14")


def test_control_trials_are_not_counted() -> None:
    clock = Clock()
    listener, stream = live(clock)
    listener(STARTED)
    listener(TrialEnded(Trial("b", "control", Scenario("control"), Task(("hi",))), Observation("b")))
    clock.now = 1.0
    listener.tick()
    assert "0/14" in drawn(stream)


def test_live_shows_the_calls_of_trials_under_way() -> None:
    clock = Clock()
    shown, stream = live(clock)
    shown(STARTED)
    for n in range(3):
        clock.now += 1.0
        shown(CallSeen(TRIAL, TraceEvent(float(n), "llm_call", f"m{n}\x1b[2J", "llm")))
    assert "no-chaos: 3 calls, last llm m2" in drawn(stream)
    assert "\x1b[2J" not in stream.getvalue()
    stream.truncate(0)
    shown(TrialEnded(TRIAL, Observation(TRIAL.id)))
    clock.now += 1.0
    shown.tick()
    assert "calls, last" not in drawn(stream)
    shown.close()
