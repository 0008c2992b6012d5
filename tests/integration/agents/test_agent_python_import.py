"""Agents that cannot be imported, and what stands in the way of an import."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent_python_site import ask, fault, observe, spec_of, trial_of, with_site
from golden_words import Golden
from holdfast.agents.python import host_protocol
from holdfast.errors import AgentUnavailable
from holdfast.execute.site import Site
from holdfast.execute.trial import run_trial
from holdfast.model.scenario import Scenario


def refused(folder: Path, code: str = "", **agent: Any) -> AgentUnavailable:
    with pytest.raises(AgentUnavailable) as caught:
        observe(spec_of(folder, code, **agent))
    return caught.value


CASES = [
    ({"endpoint": "agnet:ask"}, "", "cannot import 'agnet': no such module", "did you mean agent?"),
    ({}, "import no_such_library", "cannot import 'no_such_library'", ""),
    ({}, "def aks(p): return p", "'agent:ask': module agent has no attribute 'ask'", "did you mean aks?"),
    ({}, "1 / 0", "importing the agent failed: ZeroDivisionError: division by zero", ""),
    ({}, "def ask(:", "importing the agent failed: SyntaxError", ""),
    ({}, "import sys; sys.exit(5)", "the agent's module called exit(5) while it was imported", ""),
    ({}, "ask = 5", "agent.endpoint 'agent:ask' is a int, which cannot be called", "name a function"),
    (
        {},
        "class ask:\n    def __init__(self, key): pass",
        "is a class that cannot be created without arguments",
        "name an instance",
    ),
    (
        {"reset_function": "agent:clear"},
        "def ask(p): return p\nclear = 3",
        "agent.reset_function 'agent:clear' cannot be called",
        "",
    ),
]


@pytest.mark.parametrize("isolation", ["fresh", "inline"])
@pytest.mark.parametrize(("agent", "code", "message", "hint"), CASES)
def test_an_import_that_fails_says_why(
    tmp_path: Path, agent: dict[str, Any], code: str, message: str, hint: str, isolation: str
) -> None:
    broken = refused(tmp_path, code, isolation=isolation, **agent)
    assert message in str(broken)
    assert broken.hint.startswith(hint)
    assert broken.config


def test_a_process_that_dies_in_its_import_is_unavailable(tmp_path: Path, golden: Golden) -> None:
    broken = refused(tmp_path, "import os; os._exit(1)")
    golden(str(broken))
    golden(broken.hint)


@pytest.mark.parametrize("code", ["import time; time.sleep(60)", "while True: print('x' * 1000)"])
def test_an_import_that_hangs_is_ended(
    tmp_path: Path, code: str, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setattr(host_protocol, "IMPORT_S", 0.8)
    golden(str(refused(tmp_path, code)))


def test_the_line_of_the_agents_own_code_comes_with_the_refusal(tmp_path: Path) -> None:
    broken = refused(tmp_path, "\nraise ValueError('\\ud800')")
    assert "(agent.py:2)" in str(broken)
    assert (broken.key, broken.body) == ("agent.endpoint", "")


def test_a_module_that_prints_at_import_prints_in_no_trial(tmp_path: Path) -> None:
    code = "import os\nprint('loading')\nos.write(2, b'also')\ndef ask(p): return p"
    assert ask(tmp_path, code).output == ""


def test_a_raises_class_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    code = "class Odd(Exception):\n    def __init__(self, a, b): pass\ndef tool(): return 1\ndef ask(p): return p"
    scenario = Scenario("s", (fault("tool", "error", raises="agent:Odd"),))
    broken = refused(tmp_path, code, scenarios=[scenario], tools=["agent:tool"])
    assert "raises: agent:Odd" in str(broken)


SHADOWS = ("regex", "click", "msgspec", "json", "random", "traceback", "tempfile", "zipfile", "difflib", "fnmatch")


def test_a_module_next_to_the_spec_that_shadows_a_library_breaks_nothing_of_ours(tmp_path: Path) -> None:
    for name in SHADOWS:
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('shadowed')")
    (tmp_path / "click.py").write_text("mine = 'my own click'")
    code = "import click\ndef search(): return {'q': 'x'}\ndef ask(p): return click.mine + str(search())"
    attacks = (fault("search", "indirect_injection", plane="context"), fault("search", "malformed"))
    spec = spec_of(tmp_path, code, scenarios=[Scenario("s", attacks)], tools=["agent:search"])
    calm, found = observe(spec, trial_of(n=1), trial_of(n=2, scenario="s"))
    assert calm.turns[0].text == "my own click{'q': 'x'}"
    assert (found.error, [met.mode for met in found.met]) == ("", ["malformed", "indirect_injection"])


def test_a_failing_import_is_explained_although_its_folder_shadows_libraries(tmp_path: Path) -> None:
    for name in SHADOWS:
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('shadowed')")
    assert "ZeroDivisionError" in str(refused(tmp_path, "1 / 0"))


THREADED = """
import os, threading, time
threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
calls = 0
def ask(prompt):
    global calls
    calls += 1
    return f"{os.getpid()} {calls}"
"""


def test_threads_after_the_import_make_each_trial_a_new_interpreter(tmp_path: Path, golden: Golden) -> None:
    async def use(site: Site) -> tuple[tuple[str, ...], list[str | None]]:
        texts = [(await run_trial(site, trial_of(n=n))).turns[0].text for n in range(2)]
        return tuple(note.text for note in site.notes), texts

    notes, texts = asyncio.run(with_site(spec_of(tmp_path, THREADED), use))
    golden(notes[0].rpartition(" about ")[0])  # then follows a time
    pids, calls = zip(*[(text or "").split() for text in texts], strict=True)
    assert len(set(pids)) == 2
    assert calls == ("1", "1")
