"""Calls of a Python agent's functions reach the trial's trace, whatever becomes of its process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_python_site import ask, fault, observe, spec_of, trial_of
from holdfast.model.scenario import Scenario

CODE = """
import os
def look(q): return "found " + q
def pay(amount): return "ok"
def ask(prompt):
    look(prompt)
    pay(5)
    return prompt
"""
TOOLS = ("agent:look", "agent:pay")


@pytest.mark.parametrize("isolation", ["fresh", "worker", "inline"])
def test_every_call_is_in_the_trace_in_order(tmp_path: Path, isolation: Any) -> None:
    seen = ask(tmp_path, CODE, "one", "two", isolation=isolation, tools=TOOLS)
    assert [(e.tool, e.n, e.input) for e in seen.trace] == [
        ("look", 1, '{"q":"one"}'), ("pay", 1, '{"amount":5}'),
        ("look", 2, '{"q":"two"}'), ("pay", 2, '{"amount":5}'),
    ]  # fmt: skip
    times = [e.ts for e in seen.trace]
    assert times == sorted(times)
    assert 0 < times[0] < seen.duration_ms / 1000
    assert seen.calls == {"look": 2, "pay": 2}


def test_a_call_in_which_the_process_dies_is_in_the_trace_and_those_before_it_too(tmp_path: Path) -> None:
    code = "import os\ndef look(q): return q\ndef crash(): os._exit(3)\ndef ask(p):\n    look(p)\n    crash()\n"
    seen = ask(tmp_path, code, "x", tools=("agent:look", "agent:crash"))
    assert seen.ending == "crashed"
    assert [(e.tool, e.phase) for e in seen.trace] == [("look", "done"), ("crash", "unfinished")]


def test_a_call_that_hangs_until_the_timeout_is_in_the_trace(tmp_path: Path) -> None:
    code = "import time\ndef hang(): time.sleep(60)\ndef ask(p): hang()\n"
    seen = ask(tmp_path, code, "x", tools=("agent:hang",), timeout_ms=300)
    assert seen.ending == "timeout"
    assert [(e.tool, e.phase) for e in seen.trace] == [("hang", "unfinished")]
    assert seen.trace[0].duration_ms > 100


def test_the_fault_that_a_call_met_is_in_its_event(tmp_path: Path) -> None:
    chaos = Scenario("chaos", (fault("look", "error", times=1),))
    code = CODE.replace("    look(prompt)\n", "    try: look(prompt)\n    except RuntimeError: look(prompt)\n")
    spec = spec_of(tmp_path, code, tools=TOOLS, scenarios=(chaos,))
    (seen,) = observe(spec, trial_of("x", scenario="chaos"))
    assert [(e.tool, e.fault, e.error_type) for e in seen.trace] == [
        ("look", "error", "InjectedError"), ("look", "", ""), ("pay", "", "")
    ]  # fmt: skip


def test_processes_that_the_agent_forks_are_heard_and_mixed_up_with_nobody(tmp_path: Path) -> None:
    code = """
    import os
    def look(q): return q
    def ask(p):
        look("before")
        for name in ("a", "b"):
            pid = os.fork()
            if pid == 0:
                look(name)
                os._exit(0)
            os.waitpid(pid, 0)
        look("after")
        return p
    """
    seen = ask(tmp_path, code, "x", tools=("agent:look",))
    assert [(e.input, e.phase) for e in seen.trace] == [
        (f'{{"q":"{q}"}}', "done") for q in ("before", "a", "b", "after")
    ]  # fmt: skip


def test_on_call_hears_of_calls_as_they_happen(tmp_path: Path) -> None:
    import asyncio

    from agent_python_site import with_site
    from holdfast.execute.trial import run_trial

    heard: list[str] = []

    async def use(site: Any) -> Any:
        return await run_trial(site, trial_of("x"), None, lambda trial, event: heard.append(event.tool))

    asyncio.run(with_site(spec_of(tmp_path, CODE, tools=TOOLS), use))
    assert heard == ["look", "pay"]
