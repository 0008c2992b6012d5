"""inline: the agent in our own process, which must be the same afterwards."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_python_site import ask, fault, observe, placed, spec_of, trial_of, with_site
from golden_words import Golden
from holdfast.errors import AgentUnavailable, SpecError
from holdfast.execute.local import LocalExecutor
from holdfast.execute.site import Site
from holdfast.execute.trial import run_trial
from holdfast.model.observation import Observation
from holdfast.model.scenario import Scenario


def inline(folder: Path, code: str, *turns: str, **options: Any) -> Observation:
    return ask(folder, code, *turns, isolation="inline", **options)


def test_state_is_kept_in_our_process(tmp_path: Path) -> None:
    code = "import os\nseen = []\ndef ask(p):\n    seen.append(p)\n    return f'{len(seen)} {os.getpid()}'"
    seen = observe(spec_of(tmp_path, code, isolation="inline"), trial_of(), trial_of())
    assert [one.turns[0].text for one in seen] == [f"1 {os.getpid()}", f"2 {os.getpid()}"]


def test_output_is_captured_and_bounded(tmp_path: Path, golden: Golden) -> None:
    code = """
    import sys
    def ask(p):
        for _ in range(1000): print('x' * 999)
        print('end', file=sys.stderr)
        return p
    """
    found = inline(tmp_path, code)
    assert len(found.output) == 64_000
    assert found.output.endswith("x\nend\n")
    golden(found.notes)


def test_a_plain_agent_may_run_an_event_loop_of_its_own(tmp_path: Path) -> None:
    code = """
    import asyncio
    async def think(): await asyncio.sleep(0); return 'thought'
    def ask(p): return asyncio.run(think())
    """
    assert inline(tmp_path, code).turns[0].text == "thought"


def test_an_async_agent_that_waits_too_long_is_ended(tmp_path: Path) -> None:
    found = inline(tmp_path, "import asyncio\nasync def ask(p): await asyncio.sleep(60)", timeout_ms=100)
    assert (found.ending, found.turns[0].latency_ms, found.duration_ms < 3000) == ("timeout", 100.0, True)


def test_a_plain_agent_over_its_time_ends_in_a_timeout(tmp_path: Path) -> None:
    found = inline(tmp_path, "import time\ndef ask(p): time.sleep(0.05); return p", timeout_ms=10)
    assert (found.ending, found.turns[0].text) == ("timeout", None)


@pytest.mark.parametrize(
    ("code", "detail"),
    [
        ("def ask(p): raise ValueError('no')", "ValueError: no"),
        ("def ask(p): raise SystemExit(2)", "SystemExit: 2"),
        ("import asyncio\nasync def ask(p): raise asyncio.CancelledError", "CancelledError"),
        ("async def ask(p): raise TimeoutError('mine')", "TimeoutError: mine"),
    ],
)
def test_what_it_raises_is_its_result(tmp_path: Path, code: str, detail: str) -> None:
    found = inline(tmp_path, code)
    assert found.ending == "raised"
    assert found.turns[0].detail.startswith(detail)


def test_a_keyboard_interrupt_is_ours_to_obey(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        inline(tmp_path, "def ask(p): raise KeyboardInterrupt")


def test_an_interrupt_reaches_an_agent_that_waits(tmp_path: Path) -> None:
    async def use(site: Site) -> bool:
        task = asyncio.create_task(run_trial(site, trial_of()))
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return task.cancelled()

    code = "import asyncio\nasync def ask(p): await asyncio.sleep(60)"
    assert asyncio.run(with_site(spec_of(tmp_path, code, isolation="inline"), use))


def test_a_long_run_of_quick_trials_can_be_interrupted(tmp_path: Path) -> None:
    async def use(site: Site) -> int:
        async def all_trials() -> int:
            count = 0
            async for _ in LocalExecutor(site).execute(trial_of(n=n) for n in range(10_000_000)):
                count += 1
            return count

        task = asyncio.create_task(all_trials())
        asyncio.get_running_loop().call_later(0.1, task.cancel)
        await asyncio.wait([task], timeout=20)
        return task.cancelled()

    assert asyncio.run(with_site(spec_of(tmp_path, "def ask(p): return p", isolation="inline"), use))


def test_cwd_and_environment_are_the_agents_while_it_runs_and_ours_after(tmp_path: Path) -> None:
    code = """
    import os
    at_import = os.getcwd()
    def ask(p): return " ".join([at_import, os.getcwd(), os.environ["OWN_INLINE"], os.environ["PARAM_A"]])
    """
    here, environ, path, modules = os.getcwd(), dict(os.environ), list(sys.path), set(sys.modules)
    between: list[str] = []

    async def use(site: Site) -> Observation:
        between.append(os.getcwd())
        return await run_trial(site, trial_of(params={"a": "1"}))

    found = asyncio.run(with_site(spec_of(tmp_path, code, isolation="inline", env={"OWN_INLINE": "v"}), use))
    assert found.turns[0].text == f"{tmp_path} {tmp_path} v 1"
    assert between == [here]
    assert (os.getcwd(), dict(os.environ), sys.path) == (here, environ, path)
    assert "agent" not in set(sys.modules) - modules


def test_tools_are_as_before_when_it_is_closed(tmp_path: Path) -> None:
    code = "def tool(): return 'real'\ndef ask(p): return tool()"
    kept: list[Any] = []

    async def use(site: Site) -> Observation:
        kept.append(sys.modules["agent"].tool)
        return await run_trial(site, placed(site.spec, trial_of(scenario="s")))

    spec = spec_of(
        tmp_path, code, isolation="inline", scenarios=[Scenario("s", (fault("tool", "error"),))], tools=["agent:tool"]
    )
    found = asyncio.run(with_site(spec, use))
    assert found.ending == "raised"
    assert kept[0]() == "real"
    assert "Hook" not in repr(kept[0].__code__.co_consts)


def test_a_module_that_hides_a_library_of_ours_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    (tmp_path / "stdnum.py").write_text("mine = 1")
    for name in [n for n in sys.modules if n.partition(".")[0] == "stdnum"]:
        monkeypatch.delitem(sys.modules, name)  # another test may have loaded it
    with pytest.raises(AgentUnavailable) as caught:
        inline(tmp_path, "import stdnum\ndef ask(p): return p")
    golden(str(caught.value))
    assert "stdnum" not in sys.modules


def test_an_agent_that_is_refused_leaves_nothing_behind(tmp_path: Path) -> None:
    path, here = list(sys.path), os.getcwd()
    spec = spec_of(
        tmp_path, "def ask(p): return p", isolation="inline", scenarios=[Scenario("s", (fault("x", "error"),))]
    )
    with pytest.raises(SpecError):
        observe(spec)
    assert (sys.path, os.getcwd()) == (path, here)


def test_a_broken_fault_is_our_error_and_what_was_said_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    from holdfast import plugins
    from holdfast.faults.tools.error import Error

    async def broken(self: Any, call: Any, forward: Any, ctx: Any) -> Any:
        raise KeyError("bug")

    monkeypatch.setattr(Error, "apply", broken)
    assert plugins.find("faults.tool", "error") is Error
    code = "def tool(): return 1\ndef ask(p):\n    try: tool()\n    except Exception: pass\n    return 'went on'"
    scenario = Scenario("s", (fault("tool", "error"),))
    spec = spec_of(tmp_path, code, isolation="inline", scenarios=[scenario], tools=["agent:tool"])
    found = observe(spec, trial_of(scenario="s"))[0]
    golden(found.error)
    assert found.turns[0].text == "went on"
