"""A command at a terminal: its questions are answered, in this machine's own world and in a sandbox."""

import pytest
from world_runs import ran, spec_of

ASKS = """
    import getpass, sys
    assert sys.stdin.isatty() and sys.stdout.isatty()
    print("\\033[1mLicence\\033[0m: do you accept? [y/N] ", end="", flush=True)
    if input() != "y":
        sys.exit("refused")
    secret = getpass.getpass("API key: ")
    print("\\033[36m>\\033[0m ", end="", flush=True)
    print("\\033[32mdone\\033[0m", secret, input().upper())
"""
STEPS = [{"expect": "accept? [y/N]", "type": "y"}, {"expect": "API key: ", "type": "k-123"}]
WHOLE = [*STEPS, {"expect": "> ", "type": "{prompt}"}]
WORLDS = pytest.mark.parametrize("backend", ["bubblewrap", "process", None])


def asked(folder, script, steps, backend="bubblewrap", **more):
    agent = {"type": "command", "command": "python3 bot.py", "dialogue": steps, "timeout": "20s", **more}
    spec = spec_of(agent)
    if backend is None:
        del spec["setup"]
    return ran(folder, spec, files={"bot.py": script}, backend=backend or "bubblewrap")


@WORLDS
def test_questions_are_answered_and_the_prompt_is_typed(tmp_path, backend):
    found = asked(tmp_path, ASKS, WHOLE, backend)
    assert found.only.ending == "answered", found.only
    assert found.text == "Licence: do you accept? [y/N] API key: \n> done k-123 GO"


def test_the_prompt_may_have_a_place_of_its_own(tmp_path):
    script = "print('hello> ', end='', flush=True); print('you said', input())"
    found = asked(tmp_path, script, [{"expect": "> ", "type": "please {prompt}"}])
    assert found.text == "hello> you said please go"


@WORLDS
def test_a_question_that_never_comes_is_a_bad_ending_that_names_it(tmp_path, backend):
    script = "import time; print('Sign in at the\\nbrowser', flush=True); time.sleep(60)"
    found = asked(tmp_path, script, WHOLE, backend, timeout="2s")
    assert found.only.ending == "timeout"
    detail = found.only.turns[0].detail
    assert "'accept? [y/N]' " in detail
    assert " the | browser" in detail


def test_a_program_that_waits_for_more_is_told(tmp_path):
    script = "print('ok? ', end='', flush=True); input(); print('sure? ', end='', flush=True); input(); input()"
    found = asked(tmp_path, script, [{"expect": "ok?", "type": "y"}], timeout="2s", prompt="env")
    assert found.only.ending == "timeout"
    assert " 'ok? sure?'" in found.only.turns[0].detail


def test_a_program_that_ends_before_is_noted(tmp_path):
    found = asked(tmp_path, "print('already accepted')", WHOLE)
    assert (found.only.ending, found.text) == ("answered", "already accepted")
    assert any("'accept? [y/N]' never appeared" in note for note in found.only.notes)


def test_a_program_without_a_terminal_is_told_of_dialogues(tmp_path):
    found = ran(tmp_path, spec_of("python3 bot.py"), files={"bot.py": "input(); input()"})
    assert found.only.ending == "crashed"
    assert any("agent.dialogue" in note for note in found.only.notes)


WAITS = "import time\nprint({text!r}, end='', flush=True, file=__import__('sys').{stream})\ntime.sleep(60)"


@pytest.mark.parametrize("backend", ["bubblewrap", None])
def test_a_program_that_asks_and_waits_is_told_without_a_dialogue(tmp_path, backend, golden):
    agent = {"type": "command", "command": "python3 bot.py", "timeout": "2s"}
    spec = spec_of(agent)
    if backend is None:
        del spec["setup"]
    script = WAITS.format(text="hello\n\033[1mDo you trust this folder? [y/N]\033[0m ", stream="stderr")
    found = ran(tmp_path, spec, files={"bot.py": script}, backend=backend or "bubblewrap")
    assert found.only.ending == "timeout"
    golden(found.only.turns[0].detail)


def test_the_question_is_told_where_the_trials_own_time_ends_it(tmp_path):
    script = WAITS.format(text="API key: ", stream="stdout")
    found = ran(tmp_path, spec_of("python3 bot.py", resources={"timeout": "4s"}), files={"bot.py": script})
    assert all(word in found.only.turns[0].detail for word in ("(resources.timeout)", "'API key:'"))


def test_a_program_that_waits_for_its_model_waits_for_no_input(tmp_path):
    script = """
        import os, threading, time, urllib.request
        url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
        body = b'{"model": "m", "messages": [{"role": "user", "content": "x"}]}'
        asked = urllib.request.Request(url, body, {"Content-Type": "application/json"})
        threading.Thread(target=urllib.request.urlopen, args=[asked]).start()
        time.sleep(1)
        print("The price is: ", end="", flush=True)
    """
    spec = spec_of(
        {"type": "command", "command": "python3 bot.py", "timeout": "3s"},
        models={"*": {"script": "model.yaml"}},
        chaos_matrix=[{"name": "hang", "llm_faults": [{"mode": "timeout", "delay_ms": 30_000}]}],
    )
    found = ran(tmp_path, spec, files={"bot.py": script, "model.yaml": "replies: [{text: x}]"})
    assert (found.only.ending, " 3000 ms" in found.only.turns[0].detail) == ("timeout", True), found.only


def test_a_program_that_gives_up_at_its_question_is_noted(tmp_path):
    script = (
        "import sys; print('Accept the licence? (yes/no) ', end='', file=sys.stderr); sys.stdin.read(); sys.exit(3)"
    )
    found = ran(tmp_path, spec_of("python3 bot.py"), files={"bot.py": script})
    assert found.only.ending == "crashed"
    assert any("'Accept the licence? (yes/no)'" in note for note in found.only.notes)


def test_what_a_program_says_in_place_of_an_answer_is_told(tmp_path):
    script = "import sys; print('error: no such option: --fast', file=sys.stderr)"
    found = ran(tmp_path, spec_of("python3 bot.py | cat"), files={"bot.py": script})
    assert found.only.ending == "no_answer"
    assert found.only.turns[0].detail.endswith(": error: no such option: --fast")
