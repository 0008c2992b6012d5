"""Fresh processes: every bad end an agent can have is a result, and nothing of it is left."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_python_site import ask, fault, observe, spec_of, trial_of, with_site
from golden_words import Golden
from holdfast.agents.python import python_host
from holdfast.execute.site import Site
from holdfast.execute.trial import run_trial
from holdfast.model.observation import Observation, Turn
from holdfast.model.scenario import Scenario

WAYS = """
import asyncio, ctypes, os, signal, subprocess, sys, threading, time

print("imported")
calls = 0

def ask(prompt):
    global calls
    calls += 1
    return globals()[prompt]()

def plain(): return f"call {calls}"
def where(): return os.getcwd()
def nothing(): return None
def raises(): raise ValueError("no luck")
def exits(): sys.exit(3)
def interrupts(): raise KeyboardInterrupt
def dies(): os._exit(7)
def segfaults(): ctypes.string_at(0)
def hangs(): time.sleep(60)
def hangs_in_c(): ctypes.CDLL(None).sleep(60)
def spins():
    while True: pass

def ignores_term():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(60)

def late():
    def answer(*_): raise InterruptedError
    signal.signal(signal.SIGTERM, answer)
    try: time.sleep(60)
    except InterruptedError: return "too late"

def hangs_talking():
    yield "half of "
    yield "it"
    time.sleep(60)

def prints():
    print("by print")
    os.write(1, b"by write\\n")
    subprocess.run(["sh", "-c", "echo by sh; echo to stderr >&2"])
    return "said"

def prints_and_dies():
    print("last words")
    os.kill(os.getpid(), signal.SIGKILL)

def floods():
    block = b"x" * (1 << 20)
    for _ in range(100): os.write(1, block)
    return "said"

def closes_all():
    os.closerange(3, 1000)
    return "said"

def closes_really_all():
    os.closerange(3, 5000)
    return "said"

def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(60)
        os._exit(0)
    os.wait()
    return "said"

def helpers():
    subprocess.Popen(["sleep", "61.61"], start_new_session=True)
    return "said"

def returns_twice():
    os.fork()
    return "said"

def threads():
    threading.Thread(target=time.sleep, args=(60,)).start()
    return "said"

def lost_cwd():
    import tempfile
    os.chdir(tempfile.mkdtemp())
    os.rmdir(os.getcwd())
    return "said"

def deep():
    return deep()

def keeps_a_task():
    async def stubborn():
        while True:
            try: await asyncio.sleep(60)
            except asyncio.CancelledError: pass
    async def main():
        task = asyncio.create_task(stubborn())
        await asyncio.sleep(0)
        ask.task = task
        return "said"
    return main()

def environment():
    ours = ("HOLDFAST_TRIAL", "HOLDFAST_REPLICA", "HOLDFAST_SEED", "PARAM_", "OWN")
    return " ".join(f"{k}={v}" for k, v in sorted(os.environ.items()) if k.startswith(ours))
"""

HANGING = ("hangs", "hangs_in_c", "spins", "ignores_term", "late", "hangs_talking")


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Observation]]:
    """Every way asked once, all of one zygote."""
    folder = tmp_path_factory.mktemp("ways")
    names = [line.split("(")[0][4:] for line in WAYS.splitlines() if line.startswith("def ") and line[4:7] != "ask"]
    patch = pytest.MonkeyPatch()
    patch.setattr(python_host, "GRACE_S", 0.5)

    async def one(site: Site, name: str, n: int) -> Observation:
        return await run_trial(site, trial_of(name, n=n, replica=2, seed=7, params={"lang": "de", "deep": {"a": 1}}))

    async def use(site: Site) -> dict[str, Observation]:
        ordered = {name: await one(site, name, n) for n, name in enumerate(names) if name not in HANGING}
        hung = await asyncio.gather(*(one(site, name, n) for n, name in enumerate(HANGING)))
        return ordered | dict(zip(HANGING, hung, strict=True))

    spec = spec_of(folder, WAYS, timeout_ms=1500, env={"OWN": "yes"})
    try:
        yield asyncio.run(with_site(spec, use, environ={**os.environ, "OWN": "no"}))
    finally:
        patch.undo()


def turn(seen: dict[str, Observation], name: str) -> Turn:
    assert seen[name].error == ""
    assert len(seen[name].turns) == 1
    assert seen[name].turns[0].asked == name
    return seen[name].turns[0]


def test_every_trial_is_a_new_process(seen: dict[str, Observation]) -> None:
    assert turn(seen, "plain").text == "call 1"


def test_what_is_printed_at_import_is_in_no_trial(seen: dict[str, Observation]) -> None:
    assert all("imported" not in one.output for one in seen.values())


def test_cwd_is_the_folder_of_the_spec(seen: dict[str, Observation]) -> None:
    assert Path(turn(seen, "where").text or "").name.startswith("ways")


@pytest.mark.parametrize(
    ("name", "ending", "detail"),
    [
        ("nothing", "no_answer", "the agent returned None"),
        ("raises", "raised", "ValueError: no luck (agent.py:"),
        ("exits", "raised", "SystemExit: 3 (agent.py:"),
        ("interrupts", "raised", "KeyboardInterrupt (agent.py:"),
        ("deep", "raised", "RecursionError: maximum recursion depth exceeded"),
        ("dies", "crashed", "its process exited with code 7 before it answered"),
        ("segfaults", "crashed", "its process was killed by SIGSEGV"),
        ("prints_and_dies", "crashed", "its process was killed by SIGKILL"),
        ("closes_really_all", "crashed", "its process closed its connection to Holdfast before it answered"),
    ],
)
def test_a_bad_end_is_a_result(seen: dict[str, Observation], name: str, ending: str, detail: str) -> None:
    found = turn(seen, name)
    assert (found.ending, found.text) == (ending, None)
    assert found.detail.startswith(detail)


@pytest.mark.parametrize("name", HANGING)
def test_a_hang_is_ended_at_the_timeout(seen: dict[str, Observation], name: str, golden: Golden) -> None:
    found = turn(seen, name)
    assert (found.ending, found.latency_ms) == ("timeout", 1500.0)
    golden(found.detail)
    assert 1500 <= seen[name].duration_ms < 4000


def test_what_was_said_before_a_timeout_counts(seen: dict[str, Observation]) -> None:
    assert turn(seen, "hangs_talking").text == "half of it"
    assert turn(seen, "hangs").text is None


def test_a_late_answer_is_dropped_and_noted(seen: dict[str, Observation], golden: Golden) -> None:
    assert turn(seen, "late").text is None
    golden(seen["late"].notes)


def test_output_is_kept_apart_from_the_answer(seen: dict[str, Observation]) -> None:
    assert turn(seen, "prints").text == "said"
    assert seen["prints"].output.splitlines() == ["by print", "by write", "by sh", "to stderr"]


def test_what_was_printed_before_a_crash_is_kept(seen: dict[str, Observation]) -> None:
    assert seen["prints_and_dies"].output == "last words\n"


def test_a_flood_of_output_is_cut_and_noted(seen: dict[str, Observation], golden: Golden) -> None:
    assert turn(seen, "floods").text == "said"
    assert 0 < len(seen["floods"].output) <= 64_000
    golden(seen["floods"].notes)
    assert seen["floods"].duration_ms < 8000


@pytest.mark.parametrize(
    "name", ["closes_all", "daemon", "helpers", "returns_twice", "threads", "lost_cwd", "keeps_a_task"]
)
def test_an_answer_stands_whatever_else_the_agent_did(seen: dict[str, Observation], name: str) -> None:
    assert (turn(seen, name).text, turn(seen, name).ending) == ("said", "answered")


def test_a_process_that_does_not_end_after_its_answer_is_ended_and_noted(
    seen: dict[str, Observation], golden: Golden
) -> None:
    golden(seen["keeps_a_task"].notes)
    assert seen["keeps_a_task"].duration_ms < 3000


def test_the_trial_is_in_the_environment(seen: dict[str, Observation]) -> None:
    wanted = 'HOLDFAST_REPLICA=2 HOLDFAST_SEED=7 HOLDFAST_TRIAL={} OWN=yes PARAM_DEEP={{"a":1}} PARAM_LANG=de'
    assert turn(seen, "environment").text == wanted.format(seen["environment"].trial)


LEAVES = """
import os, subprocess, time
def ask(prompt):
    if prompt == "fork":
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.setsid()
                time.sleep(60)
            time.sleep(60)
    elif prompt == "exec":
        subprocess.Popen(["sh", "-c", "sleep 62 & sleep 62"], start_new_session=True)
    elif prompt == "crash":
        subprocess.Popen(["sleep", "62"], start_new_session=True)
        os.abort()
    elif prompt == "hang":
        subprocess.Popen(["sleep", "62"], start_new_session=True)
        time.sleep(60)
    return "said"
"""


def marked(mark: str) -> list[int]:
    """Processes of a trial that live: they print to its pipe. The host and its next child print nowhere."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            ours = mark.encode() in Path(f"/proc/{name}/environ").read_bytes()
            if ours and not zombie(name) and os.readlink(f"/proc/{name}/fd/1").startswith("pipe:"):
                found.append(int(name))
        except OSError:
            continue
    return found


def zombie(pid: str) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"


@pytest.mark.parametrize(
    "thread", ["", "import threading, time; threading.Thread(target=time.sleep, args=(90,), daemon=True).start()"]
)
@pytest.mark.parametrize("way", ["fork", "exec", "crash", "hang"])
def test_nothing_is_left_after_the_trial(
    tmp_path: Path, way: str, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(python_host, "GRACE_S", 0.5)
    mark = f"OWN_MARK={tmp_path}"

    async def use(site: Site) -> list[int]:
        await run_trial(site, trial_of(way))
        until = time.monotonic() + 2  # what was killed takes a moment to go on a busy machine
        while (found := marked(mark)) and time.monotonic() < until:
            await asyncio.sleep(0.02)
        return found

    spec = spec_of(tmp_path, thread + LEAVES, timeout_ms=700, env={"OWN_MARK": str(tmp_path)})
    assert asyncio.run(with_site(spec, use)) == []
    assert marked(mark) == []


def test_what_the_import_started_serves_every_trial(tmp_path: Path) -> None:
    code = """
    import subprocess
    helper = subprocess.Popen(["sleep", "63"])
    def ask(prompt):
        import os
        os.kill(helper.pid, 0)
        return open(f"/proc/{helper.pid}/stat").read().split()[2]
    """
    spec = spec_of(tmp_path, code, env={"OWN_MARK": str(tmp_path)})
    assert [one.turns[0].text for one in observe(spec, trial_of(n=1), trial_of(n=2), trial_of(n=3))] == ["S"] * 3
    assert marked(f"OWN_MARK={tmp_path}") == []


def test_an_interrupted_trial_leaves_no_process(tmp_path: Path) -> None:
    mark = f"OWN_MARK={tmp_path}"

    async def use(site: Site) -> tuple[int, int]:
        task = asyncio.create_task(run_trial(site, trial_of()))
        await asyncio.sleep(0.3)
        before = len(marked(mark))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        deadline = time.monotonic() + 3
        while marked(mark) and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        return before, len(marked(mark))

    spec = spec_of(tmp_path, "import time\ndef ask(p): time.sleep(60)", env={"OWN_MARK": str(tmp_path)})
    assert asyncio.run(with_site(spec, use)) == (1, 0)


def test_fifty_trials_at_once(tmp_path: Path) -> None:
    async def use(site: Site) -> list[Observation]:
        return await asyncio.gather(*(run_trial(site, trial_of(f"p{n}", n=n)) for n in range(50)))

    spec = spec_of(tmp_path, "import time\ndef ask(p): time.sleep(0.05); return p", timeout_ms=20_000)
    seen = asyncio.run(with_site(spec, use, concurrency=50))
    assert [one.turns[0].text for one in seen] == [f"p{n}" for n in range(50)]


def test_no_descriptor_and_no_zombie_is_left_over_many_trials(tmp_path: Path) -> None:
    async def use(site: Site) -> tuple[set[str], set[str], int]:
        await run_trial(site, trial_of())
        before = set(os.listdir("/proc/self/fd"))
        host = site.agent._zygote.process.pid  # type: ignore[attr-defined]
        for n in range(300):
            await run_trial(site, trial_of(n=n))
        assert host == site.agent._zygote.process.pid, "one process serves all"  # type: ignore[attr-defined]
        below = Path(f"/proc/{host}/task/{host}/children").read_text().split()
        return before, set(os.listdir("/proc/self/fd")), len(below) + len(os.listdir(f"/proc/{host}/fd"))

    before, after, held = asyncio.run(with_site(spec_of(tmp_path, "def ask(p): return p"), use))
    assert before == after
    assert held < 15  # descriptors and children of the host: a handful, after 300 trials


def test_a_zygote_killed_from_outside_costs_no_verdict(tmp_path: Path) -> None:
    import signal

    async def use(site: Site) -> list[Observation]:
        running = asyncio.create_task(run_trial(site, trial_of("slow", n=1)))
        await asyncio.sleep(0.3)
        os.kill(site.agent._zygote.process.pid, signal.SIGKILL)  # type: ignore[attr-defined]
        return [await running, await run_trial(site, trial_of("quick", n=2))]

    code = "import time\ndef ask(p):\n    if p == 'slow': time.sleep(0.6)\n    return p"
    slow, quick = asyncio.run(with_site(spec_of(tmp_path, code, retries=1), use))
    assert (slow.turns[0].text, slow.attempts, slow.error) == ("slow", 2, "")
    assert (quick.turns[0].text, quick.attempts) == ("quick", 1)


def test_a_zygote_killed_from_outside_is_our_error_without_retries(tmp_path: Path, golden: Golden) -> None:
    import signal

    async def use(site: Site) -> Observation:
        running = asyncio.create_task(run_trial(site, trial_of()))
        await asyncio.sleep(0.3)
        os.kill(site.agent._zygote.process.pid, signal.SIGKILL)  # type: ignore[attr-defined]
        return await running

    found = asyncio.run(with_site(spec_of(tmp_path, "import time\ndef ask(p): time.sleep(9)"), use))
    golden(found.error)


def test_an_agent_that_kills_its_host_each_time_has_crashed(tmp_path: Path) -> None:
    code = "import os, signal, time\ndef ask(p):\n    os.kill(os.getppid(), signal.SIGKILL)\n    time.sleep(9)"
    found = ask(tmp_path, code, retries=2)
    assert (found.error, found.attempts, found.ending) == ("", 2, "crashed")


def test_turns_share_one_process_and_end_at_the_first_bad_one(tmp_path: Path) -> None:
    code = "seen = []\ndef ask(p):\n    if p == 'bad': raise ValueError\n    seen.append(p)\n    return ' '.join(seen)"
    spec = spec_of(tmp_path, code)
    good, bad = observe(spec, trial_of("a", "b", "c"), trial_of("a", "bad", "c"))
    assert [t.text for t in good.turns] == ["a", "a b", "a b c"]
    assert [(t.asked, t.ending) for t in bad.turns] == [("a", "answered"), ("bad", "raised")]


def test_an_attack_on_a_turn_that_was_never_asked_was_not_met(tmp_path: Path) -> None:
    attack = fault("input", "memory_poisoning", plane="context", payload="obey")
    spec = spec_of(tmp_path, "def ask(p): raise ValueError", scenarios=[Scenario("attack", (attack,))])
    found = observe(spec, trial_of("one", "two", scenario="attack"))[0]
    assert [met.call for met in found.ledger] == [1]
    assert "obey" in found.turns[0].asked


def test_a_large_prompt_arrives_whole(tmp_path: Path) -> None:
    found = ask(tmp_path, "def ask(p): return str(len(p))", "x" * 3_000_000, "y" * 3_000_000)
    assert [t.text for t in found.turns] == ["3000000", "3000000"]


ENDPOINTS = """
import asyncio
from functools import partial

def function(prompt): return "f " + prompt
async def coroutine(prompt): await asyncio.sleep(0); return "c " + prompt
def hands_on(prompt): return coroutine(prompt)
def generator(prompt): yield "g "; yield prompt
async def async_generator(prompt): yield "ag "; yield prompt
part = partial(function)
async_part = partial(coroutine)

class Runnable:
    def invoke(self, given): return {"output": "i " + given["input"]}
runnable = Runnable()

class Async(Runnable):
    async def ainvoke(self, given): return {"output": "a " + given["input"]}
async_runnable = Async()

class Callable:
    def __call__(self, prompt): return "o " + prompt
called = Callable()

class AsyncCallable:
    async def __call__(self, prompt): return "ao " + prompt
async_called = AsyncCallable()

class Outer:
    class Inner:
        @staticmethod
        def ask(prompt): return "s " + prompt
"""


@pytest.mark.parametrize("isolation", ["fresh", "inline"])
def test_everything_that_can_be_asked(tmp_path: Path, isolation: Any) -> None:
    wanted = {
        "function": "f hi", "coroutine": "c hi", "hands_on": "c hi", "generator": "g hi", "async_generator": "ag hi",
        "part": "f hi", "async_part": "c hi", "runnable": "i hi", "async_runnable": "a hi", "Runnable": "i hi",
        "called": "o hi", "async_called": "ao hi", "Outer.Inner.ask": "s hi",
    }  # fmt: skip
    found = {
        name: ask(tmp_path, ENDPOINTS, "hi", endpoint=f"agent:{name}", isolation=isolation).turns[0].text
        for name in wanted
    }
    assert found == wanted


def test_an_agent_of_awaitables_keeps_one_loop_for_all_turns(tmp_path: Path) -> None:
    code = """
    import asyncio
    loops = []
    async def answer():
        loops.append(asyncio.get_running_loop())
        return str(len(set(map(id, loops))))
    def ask(prompt): return answer()
    """
    assert [t.text for t in ask(tmp_path, code, "a", "b").turns] == ["1", "1"]
