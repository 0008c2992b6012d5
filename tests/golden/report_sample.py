"""Runs built by hand, for the tests of every report."""

from __future__ import annotations

from random import Random

from msgspec.structs import replace

from holdfast.model.codes import RunNote, RunWarning
from holdfast.model.fingerprint import compute_fingerprint
from holdfast.model.observation import FaultMet, Turn
from holdfast.model.run import CellRow, Run, TrialRow
from holdfast.model.scenario import Injection, Position, Scenario
from holdfast.model.score import Attacks, Cell, Interval, Score, Spent, Utility
from holdfast.model.spec import Invariant
from holdfast.model.trace import Cost, TraceEvent
from holdfast.model.verdict import OUTCOMES
from holdfast.protocols.reporter import Reporter

HOSTILE = (
    "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1> \x1b[31mred\x1b[0m \x00 ]]> "
    "\u202egnp.exe\u202c `rm -rf` | a | b | @everyone #1 [x](javascript:alert(1)) {{ 7*7 }} &amp; $(id) \ud800 \x9b2J"
)
_CUT = FaultMet(0, "llm", "*", "truncated_response", 1, would="41 tokens", got="20 tokens")
_DOWN = FaultMet(0, "tool", "market_data_api", "error", 1, would='{"price": 12.5}', got="HTTP 503")
_CALLS = (
    TraceEvent(0.0031, "llm_call", "small-1", "llm", 1, duration_ms=120.5, cost=Cost("small-1", 900, 41, 0.0021)),
    TraceEvent(0.1302, "tool_call", "market_data_api", "tool", 1, duration_ms=6.1, status=503,
               error_type="InjectedError", input='{"ticker":"</script><b>"}', write=True, fault="error"),
    TraceEvent(0.1403, "http_call", "POST https://example.com/\u202e<b>", "http", 1, 1, duration_ms=30.0, status=200),
    TraceEvent(0.19, "llm_call", "small-2", "llm", 1, duration_ms=5.0, cost=Cost("small-2", 9, 4), script="m.yaml:7"),
    TraceEvent(0.2, "tool_call", "\x1b[31mred", "tool", 1, phase="unfinished", duration_ms=600.0),
)  # fmt: skip
_IDLE = FaultMet(0, "tool", "market_data_api", "stale", 2, effect="no_effect", note="no earlier reply to repeat")

INVARIANTS = (
    Invariant("always-cite-source", "regex", severity="critical", description="Names a source", position=Position(12)),
    Invariant("never-fabricate", "excludes_pattern", severity="high", position=Position(18)),
    Invariant("max-latency", "latency", position=Position(24)),
    Invariant("holds-<b>up</b>|`x`", "completes", severity="low", gate=True, position=Position(30)),
)
SCENARIOS = (
    Scenario("no-chaos"),
    Scenario("search-tool-down", (Injection("tool", "market_data_api", "error"),)),
    Scenario("llm-degraded", (Injection("llm", "*", "truncated_response"),)),
)


def whole(reporter: Reporter, run: Run) -> bytes:
    """The one file that a reporter makes of a run."""
    [pieces] = reporter.render(run).values()
    return b"".join(pieces)


def trial(id: str, outcome: str = "pass", answer: str | None = "Revenue was up", **more: object) -> TrialRow:
    """One trial with everyday values."""
    known = {"prompt": "What was ACME's Q3 revenue?", "ending": "answered", "latency_ms": 812.34, "reason": "holds"}
    again = f"holdfast contract run --trial {id} --seed 7"
    return TrialRow(**{"id": id, "outcome": outcome, "answer": answer, "again": again, **known, **more})  # type: ignore[arg-type]


def cell(rule: str, scenario: str, outcome: str, *trials: TrialRow, **more: object) -> CellRow:
    """One cell with its trials; weights as the severities give them."""
    found = next(i for i in INVARIANTS if i.id == rule)
    chaos = scenario != "no-chaos"
    known = {"severity": found.severity, "weight": found.severity_weight, "critical": found.critical, "chaos": chaos}
    if reason := more.get("reason"):
        known |= {"code": "check-said", "key": (compute_fingerprint(str(reason)),)}
    return CellRow(Cell(**{"invariant": rule, "scenario": scenario, "outcome": outcome, **known, **more}), trials)  # type: ignore[arg-type]


def _cite() -> list[CellRow]:
    nothing = "nothing matches (?i)(source|according to|reference)"
    conversation = (Turn("Hello \U0001f600", "Hi", 10.0), Turn("And Q3?", "It was \U0001f600 up", 20.0))
    return [
        cell("always-cite-source", "no-chaos", "pass", trial("aaaaaaaaaaaa"), passes=1),
        cell(
            "always-cite-source",
            "search-tool-down",
            "fail",
            trial(
                "bbbbbbbbbbbb", "fail", HOSTILE, reason=HOSTILE, faults=(_DOWN, _IDLE), marks=((0, 9),), trace=_CALLS
            ),
            trial("cccccccccccc", faults=(_DOWN,), replica=1),
            reason=HOSTILE,
            passes=1,
            fails=1,
            flaky=True,
            met=True,
            rate=Interval(0.09, 0.91),
        ),
        cell(
            "always-cite-source",
            "llm-degraded",
            "fail",
            trial(
                "dddddddddddd",
                "fail",
                reason=nothing,
                faults=(_CUT,),
                marks=((0, 7),),
                notes=("a late answer was dropped",),
            ),
            trial(
                "eeeeeeeeeeee", "fail", "up \U0001f600", reason=nothing, turns=conversation, turn=1, marks=((9, 11),)
            ),
            reason=nothing,
            fails=2,
            met=True,
            fails_in_calm=True,
            simulated=True,
            rate=Interval(0.0, 0.66),
        ),
    ]


def _fabricate() -> list[CellRow]:
    broke = "harness error: the gateway did not start"
    return [
        cell("never-fabricate", "no-chaos", "n/a"),
        cell(
            "never-fabricate",
            "search-tool-down",
            "error",
            trial("ffffffffffff", "error", None, reason=broke, ending="no_answer"),
            reason=broke,
            errors=1,
        ),
        cell(
            "never-fabricate",
            "llm-degraded",
            "unproven",
            trial("111111111111", output="thinking...\n", details={"rows": [[1, "a"]], "sql": "select 1"}),
            reason="the fault was never met: the agent did not call its model",
            code="fault-not-called",
            passes=1,
        ),
    ]


def _latency() -> list[CellRow]:
    late = trial(
        "222222222222", "fail", None, ending="timeout", detail="30000 ms", reason="no answer: timeout after 30000 ms"
    )
    return [
        cell("max-latency", "no-chaos", "pass", trial("333333333333"), passes=1),
        cell("max-latency", "search-tool-down", "fail", late, fails=1, reason=late.reason, met=True, concurrent=True),
        cell("max-latency", "llm-degraded", "pass", trial("444444444444"), passes=1, met=True),
        cell("holds-<b>up</b>|`x`", "no-chaos", "pass", trial("555555555555"), passes=1),
    ]


def sample() -> Run:
    """Every outcome, every mark, and an answer that attacks whoever shows it."""
    order = ("no-chaos", "search-tool-down", "llm-degraded")
    cells = sorted([*_cite(), *_fabricate(), *_latency()], key=lambda row: order.index(row.cell.scenario))
    score = Score(
        60.0,
        False,
        1,
        Interval(25.0, 87.0, "kish"),
        100.0,
        45.45,
        judged=7,
        total=9,
        counts={"pass": 4, "fail": 3, "error": 1, "unproven": 1, "n/a": 1},
        trials=14,
        critical_failed=("always-cite-source in search-tool-down", "always-cite-source in llm-degraded"),
        vacuous=("llm-degraded",),
        flaky=1,
        reasons=("2 critical cells failed", "scenario llm-degraded met none of its faults"),
        min_score=80.0,
        attacks=Attacks(10, 2, 0.2, Interval(0.06, 0.51), Utility(11, 14, 0.7857, Interval(0.52, 0.92))),
        spent=Spent(28, 3, 10_000, 2_345, 0.0123, ("odd-model",)),
    )
    return Run(
        "0007",
        ".holdfast/runs/0007",
        "Finance Agent Contract",
        "finance.yaml",
        7,
        score,
        INVARIANTS,
        SCENARIOS,
        cells,
        warnings=(RunWarning("answers-differ", "the agent answered differently when asked twice <b>"),),
        notes=(RunNote("no-sandbox", "No sandbox: the agent ran with the user's own rights and network."),),
        isolation="cell",
        description="An agent that answers questions about revenue.",
        started="2025-01-02T03:04:05Z",
        duration_s=6.2,
        version="0.1.0",
        spec_digest="1f2e3d",
        agent_digest="a1b2c3",
        page=".holdfast/runs/0007/report.html",
    )


def shared() -> Run:
    """One rule that fails for one reason in scenarios whose long names begin alike."""
    modes = [f"{mode}-{status}" for mode in ("tool-error", "tool-slow") for status in range(500, 505)]
    names = ["no-chaos", *(f"checkout-with-three-items-and-a-voucher-{mode}" for mode in modes)]
    rows = []
    for n, name in enumerate(names):
        told = trial(f"{n:012}", "fail", f"It costs ${n}", reason=f"found '${n}' which must not appear")
        rows.append(cell("always-cite-source", name, "fail", told, reason=told.reason, fails=1, met=bool(n)))
        rows.append(cell("max-latency", name, "pass", trial(f"1{n:011}"), passes=1))
    weather = (Injection("tool", "search", "error"),)
    scenarios = tuple(Scenario(name, weather if n else ()) for n, name in enumerate(names))
    return replace(sample(), scenarios=scenarios, cells=rows)


def large(rules: int, scenarios: int, seed: int = 1) -> Run:
    """A run of rules x scenarios, one trial a cell, answers of 200 characters in random words."""
    dice = Random(seed)
    words = ["".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=dice.randint(2, 10))) for _ in range(5000)]
    severities = ("critical", "high", "medium", "low")
    invariants = tuple(
        Invariant(f"rule-{n:03}-{words[n]}", "regex", severity=severities[n % 4], position=Position(n + 5))
        for n in range(rules)
    )
    weather = tuple(
        Scenario(f"{words[-n - 1]}-{n:02}", (Injection("tool", "api", "error"),) if n else ()) for n in range(scenarios)
    )
    cells = [_random_cell(dice, words, rule, scenario) for scenario in weather for rule in invariants]
    counts = {outcome: sum(row.cell.outcome == outcome for row in cells) for outcome in OUTCOMES}
    decided = counts["pass"] + counts["fail"]
    value = round(100 * counts["pass"] / decided, 2)
    score = Score(
        value,
        False,
        1,
        Interval(value - 1, value + 1, "bootstrap"),
        judged=decided,
        total=len(cells),
        counts=counts,
        trials=len(cells),
        reasons=(f"{counts['fail']} cells failed",),
    )
    return Run(
        "0008",
        ".holdfast/runs/0008",
        "A large contract",
        "large.yaml",
        7,
        score,
        invariants,
        weather,
        cells,
        page=".holdfast/runs/0008/report.html",
    )


def _random_cell(dice: Random, words: list[str], rule: Invariant, scenario: Scenario) -> CellRow:
    outcome = dice.choices(OUTCOMES, (80, 9, 2, 4, 5))[0]
    answer = " ".join(dice.choices(words, k=40))[:200]
    faults = () if scenario.calm else (FaultMet(0, "tool", "api", "error", 1, would="{}", got="HTTP 503"),)
    reason = "matches" if outcome == "pass" else f"nothing matches {dice.choice(words)}"
    one = trial(
        f"{dice.getrandbits(48):012x}", outcome, answer, reason=reason, latency_ms=dice.random() * 900, faults=faults
    )
    made = Cell(
        rule.id,
        scenario.name,
        rule.severity,
        rule.severity_weight,
        outcome,
        rule.critical,
        reason=reason,
        code="pattern-missing",
        key=(reason,),
        chaos=not scenario.calm,
        met=bool(faults),
    )
    return CellRow(made, () if outcome == "n/a" else (one,))
