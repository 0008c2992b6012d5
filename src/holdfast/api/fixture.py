"""The pytest fixture: run an agent on a prompt under faults, then check the observation."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from holdfast.api.entry_points import Caller, EntryWork, add_details, find_caller, run_blocking, run_in_thread
from holdfast.api.functions import build_work
from holdfast.api.loaded_spec import load_source
from holdfast.api.run_result import RunResult
from holdfast.api.values import CheckValue, FaultValue, check, fault
from holdfast.errors import HoldfastError, SpecError, UsageError
from holdfast.judge import Judge
from holdfast.model.observation import FaultMet, Observation, Turn
from holdfast.model.score import Cell
from holdfast.model.spec import Spec
from holdfast.model.trace import TraceEvent
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.model.world import AuditEvent
from holdfast.plan import RunOptions, build_plan
from holdfast.protocols.check import ConsultingCheck, GatheringCheck
from holdfast.reading.node import Node, build_node
from holdfast.reading.reader import Bad, Reader
from holdfast.report import wording
from holdfast.report.safe import to_one_line
from holdfast.score import Tally
from holdfast.spec.rules.rules import RuleEntry, read_rules

_SCENARIO = "faults"
_RULE = "check"


class ObservedTrial:
    """The observation of one trial."""

    def __init__(self, spec: Spec, trial: Trial, observation: Observation, cells: Mapping[str, Cell]) -> None:
        self._spec = spec
        self._trial = trial
        self._cells = cells
        """The cells of the checks that were named before the run."""
        self.observation = observation
        """The complete observation, as it is stored."""

    @property
    def answer(self) -> str | None:
        """The text of the last turn, possibly partial; None if there is none."""
        return self.turns[-1].text if self.turns else None

    @property
    def turns(self) -> tuple[Turn, ...]:
        return self.observation.turns

    @property
    def ending(self) -> str:
        """`answered`, or another ending: raised, crashed, timeout, …"""
        return self.observation.ending

    @property
    def met(self) -> tuple[FaultMet, ...]:
        """The faults that the agent observed; a fault that fired and changed nothing is not included."""
        return self.observation.met

    @property
    def calls(self) -> tuple[TraceEvent, ...]:
        """Every recorded call, of tools, models, HTTP and MCP, in the order in which they began."""
        return self.observation.trace

    @property
    def audit(self) -> tuple[AuditEvent, ...]:
        """What the agent did in its world, if it had one: files, commands, requests, statements."""
        return self.observation.audit

    @property
    def output(self) -> str:
        """The agent's output apart from its answer."""
        return self.observation.output

    def called(self, tool: str) -> int:
        """Return the number of calls of a tool, or of a model by its name."""
        return sum(event.tool == tool for event in self.calls)

    def check(self, type: str, /, **settings: Any) -> None:
        """Assert with a check of that type; raise AssertionError with the reason, also if nothing is proven or on a
        harness error.

        It takes the settings of the check, and `negate` and `over` as in a rule.
        """
        __tracebackhide__ = True
        cell = self._cells.get(_build_check_key(CheckValue(type, settings))) or self._judge(type, settings)
        if cell.outcome != "pass":
            raise AssertionError("\n".join(self._explain(type, cell)))

    def _judge(self, type: str, settings: dict[str, Any]) -> Cell:
        __tracebackhide__ = True
        entry = _read_rule({"id": _RULE, "type": type, **settings})
        _refuse_late(entry)
        rule = entry.invariant
        spec = replace(self._spec, invariants=(rule,), cell_rules=())
        plan = build_plan(spec)
        verdict: Verdict = Judge(spec, stored=True).judge(rule, self._trial, self.observation)
        tally = Tally(spec, plan)
        tally.add_trial(self._trial, self.observation, [verdict])
        return next(iter(tally.iter_cells()))

    def _explain(self, type: str, cell: Cell) -> list[str]:
        facts = [("asked", turn.asked) for turn in self.turns[-1:]]
        facts += [("answered", self.answer or f"({self.ending})")]
        facts += [("because", cell.reason or self.observation.error or "no reason was recorded")]
        if self.observation.ledger:
            facts += [("met", "; ".join(map(wording.format_fault, self.observation.ledger)))]
        word = {"fail": "failed", "error": "harness error"}.get(cell.outcome, cell.outcome)
        return [f"{type} {word}", *(f"  {label:<10}{to_one_line(str(text))}" for label, text in facts)]

    def __repr__(self) -> str:
        return f"<holdfast trial {self._trial.id}: {self.ending}, faults met: {len(self.met)}>"


class Holdfast:
    """The fixture `holdfast`."""

    def __init__(self, runs: Callable[[], Path], seed: int = 0) -> None:
        self._runs = runs
        self._seed = seed

    fault = staticmethod(fault)
    check = staticmethod(check)

    def run(
        self,
        agent: str | Callable[..., Any] | Mapping[str, Any],
        prompt: str | Mapping[str, Any],
        *,
        tools: Sequence[Any] = (),
        llm: Sequence[Any] = (),
        faults: Sequence[FaultValue] = (),
        checks: Sequence[CheckValue] = (),
        isolation: str | None = None,
        timeout: str | int | None = None,
        seed: int | None = None,
        **sections: Any,
    ) -> ObservedTrial:
        """Ask the agent once: a function or its name `module:function`, or a dict with the keys of `agent:`.

        `checks` are those that examine what is left, ask a model or compare with a calm answer: they must be known
        before. `sections` are other keys of a spec, such as `services`, `setup` or `models`.
        """
        __tracebackhide__ = True
        settings = {"tools": list(tools), "llm": list(llm), "isolation": isolation, "timeout": timeout}
        written = _build_spec(agent, prompt, settings, faults, checks, sections)
        try:
            spec, work = self._prepare(written, seed, find_caller())
            return _build_result(spec, run_blocking(work), checks)
        except HoldfastError as error:
            raise add_details(error).with_traceback(None) from None

    def run_async(
        self,
        agent: str | Callable[..., Any] | Mapping[str, Any],
        prompt: str | Mapping[str, Any],
        *,
        tools: Sequence[Any] = (),
        llm: Sequence[Any] = (),
        faults: Sequence[FaultValue] = (),
        checks: Sequence[CheckValue] = (),
        isolation: str | None = None,
        timeout: str | int | None = None,
        seed: int | None = None,
        **sections: Any,
    ) -> Coroutine[Any, Any, ObservedTrial]:
        """Run like `run`, as a coroutine."""
        settings = {"tools": list(tools), "llm": list(llm), "isolation": isolation, "timeout": timeout}
        written = _build_spec(agent, prompt, settings, faults, checks, sections)
        where = find_caller()

        async def run_once() -> ObservedTrial:
            __tracebackhide__ = True
            try:
                spec, work = self._prepare(written, seed, where)
                return _build_result(spec, await run_in_thread(work), checks)
            except HoldfastError as error:
                raise add_details(error).with_traceback(None) from None

        return run_once()

    def _prepare(self, written: dict[str, Any], seed: int | None, where: Caller) -> tuple[Spec, EntryWork[RunResult]]:
        options = RunOptions(preflight=False, seed=self._seed if seed is None else seed)
        spec = load_source(written, options, where, "contract")
        return spec.spec, build_work(spec, options, where, runs=self._runs())


def _build_result(spec: Spec, result: RunResult, checks: Sequence[CheckValue]) -> ObservedTrial:
    with result:
        traced = next(one for one in result.trials if one.trial.kind == "contract")
        cells = {row.cell.invariant: row.cell for row in result.cells}
        by_key = {_build_check_key(one): cells[f"{_RULE}-{number}"] for number, one in enumerate(checks)}
        return ObservedTrial(spec, traced.trial, traced.seen, by_key)


def _build_spec(
    agent: Any,
    prompt: str | Mapping[str, Any],
    settings: Mapping[str, Any],
    faults: Sequence[FaultValue],
    checks: Sequence[CheckValue],
    sections: Mapping[str, Any],
) -> dict[str, Any]:
    """Return a contract of one question in one scenario, whose trial serves every rule."""
    __tracebackhide__ = True
    _refuse_others("faults", faults, FaultValue, 'holdfast.fault("tool", "error", tool=…)')
    _refuse_others("checks", checks, CheckValue, 'holdfast.check("contains", value=…)')
    section = dict(agent) if isinstance(agent, Mapping) else {"type": "python", "endpoint": agent}
    section |= {key: value for key, value in settings.items() if value not in ([], None)}
    scenario: dict[str, Any] = {"name": _SCENARIO if faults else "calm"}
    for one in faults:
        scenario.setdefault(one.family.name, []).append(one)
    rules = [{"id": f"{_RULE}-{number}", "check": one} for number, one in enumerate(checks)]
    # One scenario in one trial that serves every rule: what a test asks of the agent happens once, whatever it checks.
    contract = {
        "name": "a test",
        "isolation": "scenario",
        "invariants": [{"id": "ended", "type": "completes"}, *rules],
        "chaos_matrix": [scenario],
    }
    return {"agent": section, "golden_prompts": [prompt], "contract": contract, **sections}


def _refuse_others(name: str, value: Any, kind: type, example: str) -> None:
    __tracebackhide__ = True
    if isinstance(value, str | kind) or not isinstance(value, Iterable):
        problem, hint = f"{name} is {value!r}, expected a list", f"write {name}=[{example}]"
    elif others := [one for one in value if not isinstance(one, kind)]:
        problem, hint = f"{name} contains {others[0]!r}", f"create each entry with {example}"
    else:
        return
    raise add_details(UsageError(problem, hint=hint, code="argument-invalid"))


def _build_check_key(value: CheckValue) -> str:
    return repr((value.type, sorted(value.settings.items(), key=lambda one: one[0])))


def _read_rule(entry: dict[str, Any]) -> RuleEntry:
    __tracebackhide__ = True
    where, reader = find_caller(), Reader()
    rules = read_rules(reader, build_node([entry], Node("null", where.line, 1, path="check")), contract=True)
    if isinstance(rules, Bad) or not rules or any(problem.severity == "error" for problem in reader.problems):
        raise add_details(
            SpecError(where.path, [replace(one, path=one.path[8:].lstrip(".")) for one in reader.problems])
        )
    return rules[0]


def _refuse_late(entry: RuleEntry) -> None:
    """Reject a check that must run while the world exists, or needs a calm answer: it cannot be added afterwards."""
    __tracebackhide__ = True
    check, kind = entry.check, entry.invariant.check
    if isinstance(check, GatheringCheck | ConsultingCheck) or entry.traits.needs_control:
        hint = f"request it in the call: holdfast.run(…, checks=[holdfast.check({kind!r}, …)])"
        raise add_details(UsageError(f"{kind} must be requested before the run", hint=hint, code="run-over"))
