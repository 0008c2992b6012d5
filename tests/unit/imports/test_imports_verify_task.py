"""The script of an imported task: where paths go, and what counts as passed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from golden_words import Golden
from holdfast.imports.foreign_task import ForeignTask, TaskTests
from holdfast.imports.task_environment import build_environment
from holdfast.imports.task_files import build_task_files
from holdfast.imports.verify_task import find_python, read_pytest_summary, read_reward, rewrite_paths

SUMMARY = "=== short test summary info ===\n"


def test_only_whole_paths_are_moved() -> None:
    paths = {"/app": "/workspace", "/tests": "/t/tests"}
    said = "cd /app; /app/x '/app' $HOME/app /app.py /application /app-2 ~/app See /app. /tests/a /x/tests"
    assert rewrite_paths(said, paths) == (
        "cd /workspace; /workspace/x '/workspace' $HOME/app /app.py /application /app-2 ~/app See /workspace. "
        "/t/tests/a /x/tests"
    )
    assert rewrite_paths("as it is", {}) == "as it is"


@pytest.mark.parametrize(
    ("name", "text", "passed", "score"),
    [
        ("reward.txt", "1\n", True, 1.0),
        ("reward.txt", "0.5", False, 0.5),
        ("reward.json", '{"reward": 1, "speed": 0}', True, 1.0),
        ("reward.json", '{"a": 1, "b": 0}', False, 0.5),
    ],
)
def test_a_reward_is_read_as_harbor_does(tmp_path: Path, name: str, text: str, passed: bool, score: float) -> None:
    (tmp_path / "logs/verifier").mkdir(parents=True)
    (tmp_path / "logs/verifier" / name).write_text(text)
    found = read_reward(str(tmp_path), "")
    assert found is not None
    assert (found["passed"], found["score"]) == (passed, score)


@pytest.mark.parametrize(
    ("name", "text"), [("reward.txt", "nan"), ("reward.txt", "good"), ("reward.json", "[]"), ("reward.json", "{}")]
)
def test_a_reward_that_is_not_a_number_is_an_error(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "logs/verifier").mkdir(parents=True)
    assert read_reward(str(tmp_path), "") is None
    (tmp_path / "logs/verifier" / name).write_text(text)
    with pytest.raises(SystemExit, match="reward"):
        read_reward(str(tmp_path), "")


def test_every_test_of_pytest_has_to_pass(golden: Golden) -> None:
    failed = read_pytest_summary(SUMMARY + "PASSED a.py::x\nFAILED a.py::y - assert 0\n= 1 failed =\n")
    assert failed == {"passed": False, "reason": "1 of 2 tests passed"}
    skipped = read_pytest_summary(SUMMARY + "PASSED a.py::x\nSKIPPED [1] a.py:3\n")
    golden(skipped)
    assert read_pytest_summary("") is read_pytest_summary(SUMMARY) is None


def test_where_every_test_was_skipped_nothing_passed() -> None:
    for said in ("SKIPPED [2] a.py:3: no network\n", "SKIPPED [1] a.py:3\nXFAIL a.py::y\n"):
        with pytest.raises(SystemExit, match="no test"):
            read_pytest_summary(SUMMARY + said)


INSTALLS_UV = "curl -LsSf https://astral.sh/uv/0.9.7/install.sh | sh\nsource $HOME/.local/bin/env\n"
PYTEST = "pytest $TEST_DIR/test_outputs.py -rA -p no:cacheprovider"
BOILERPLATE = {
    "uv venv": f"uv venv .t\nsource .t/bin/activate\nuv pip install pytest==8.4.1\nuv run {PYTEST}",
    "uv venv with a Python": f"uv venv -p 3.13 --seed .v\n. .v/bin/activate\nuv pip install -q 'pytest>=8'\n{PYTEST}",
    "uv init": f"uv init --python 3.12\nuv add pytest==8.4.1\nuv run {PYTEST}",
    "uvx": f"uvx \\\n --with pytest==8.4.1 \\\n --with pytest-json-ctrf==0.3.5 \\\n {PYTEST} --ctrf /logs/x.json",
    "uvx, short options": f"uvx -p 3.13 -w pytest==8.4.1 -w pytest-json-ctrf==0.3.5 {PYTEST} --ctrf=/logs/x.json",
    "uvx of a version": f"uvx --python=3.12 {PYTEST.replace('pytest', 'pytest@8.4.1', 1)}",
    "uv tool run": f"uv tool run --from pytest {PYTEST}",
    "uv run with packages": f"uv run --no-project --with pytest,pluggy -- {PYTEST}",
    "uv run of a module": f"uv run -m {PYTEST}",
    "uv run of Python": f"uv run python -m {PYTEST}",
    "pip": f"pip3 install --break-system-packages pytest==8.4.1 pytest-json-ctrf==0.3.5\n{PYTEST} --ctrf /logs/x.json",
    "python -m pip": f"python3 -m pip install -q pytest==9.0.3 || exit 1\npython -m {PYTEST} --ctrf /logs/x.json",
    "python -m venv": f"python3 -m venv .venv\nsource .venv/bin/activate\npip install pytest\n{PYTEST}\ndeactivate",
    "a program of the venv": f"uv venv\nuv pip install pytest\n.venv/bin/{PYTEST}",
    "requirements": f"echo 'pytest==8.4.1 # ours' > $TEST_DIR/r.txt\nuv pip install -r $TEST_DIR/r.txt\n{PYTEST}",
    "apt": f"apt-get update && apt install -y curl\nwget -qO- https://astral.sh/uv/install.sh | sh\nuv run {PYTEST}",
}  # fmt: skip
"""What public tasks begin their tests with."""
ASKS_FOR_ANSWER = b"def test_answer():\n    assert open('/app/answer.txt').read().strip() == '42'\n"


def judged(
    tmp_path: Path,
    script: str,
    *,
    answer: str = "42",
    result: str = "pytest",
    reference: bool = False,
    python: str = sys.executable,
) -> subprocess.CompletedProcess[str]:
    """The script of a task with these tests, run on this machine."""
    (tmp_path / "work").mkdir(exist_ok=True)
    (tmp_path / "work/answer.txt").write_text(answer)
    files = {"run.sh": script.encode(), "test_outputs.py": ASKS_FOR_ANSWER}
    tests = TaskTests(files, "run.sh", "reward" if result == "reward" else "pytest", 60.0)
    task = ForeignTask("t", "x", "Do.", tests, None, tmp_path, solution={"solve.sh": b"echo 42 > /app/answer.txt\n"})
    made = build_task_files(task, build_environment(task), agent=None, solution=False)
    (tmp_path / "verify.py").write_bytes(made.files["verify.py"])
    context = json.dumps({"workspace_path": str(tmp_path / "work"), "reference": reference})
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    env = {"HOME": str(tmp_path), "PATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    program = [python, "-I", str(tmp_path / "verify.py")]
    return subprocess.run(program, input=context, capture_output=True, text=True, env=env, check=False)


@pytest.mark.processes
@pytest.mark.parametrize("script", BOILERPLATE.values(), ids=BOILERPLATE)
def test_installers_use_the_pytest_that_is_here(tmp_path: Path, script: str) -> None:
    ran = judged(tmp_path, f"set -e\n{INSTALLS_UV}{script}\n")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["reason"] == "1 of 1 tests passed"


@pytest.mark.processes
@pytest.mark.parametrize("name", ["uv venv", "uvx", "python -m pip"])
def test_through_installers_a_wrong_answer_still_fails(tmp_path: Path, name: str) -> None:
    ran = judged(tmp_path, INSTALLS_UV + BOILERPLATE[name], answer="41")
    assert json.loads(ran.stdout)["passed"] is False


@pytest.mark.processes
def test_a_pytest_in_an_environment_of_its_own_is_installed(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    python = str(tmp_path / "bare/bin/python")
    for answer, passed in (("42", True), ("41", False)):
        ran = judged(tmp_path, f"pip install pytest==8.4.1\n{PYTEST}", answer=answer, python=python)
        assert json.loads(ran.stdout)["passed"] is passed, ran.stderr


@pytest.mark.processes
@pytest.mark.parametrize(
    ("script", "lacks"),
    [
        ("no-such-program /app || echo 0 > /logs/verifier/reward.txt", "no-such-program"),
        ("uvx --with no-such-package pytest; echo 0 > /logs/verifier/reward.txt", "no-such-package"),
        ("uvx no-such-tool; echo 0 > /logs/verifier/reward.txt", "no-such-tool"),
        ("pip install 'no.such_package[x]>=2'; echo 0 > /logs/verifier/reward.txt", "no.such_package[x]>=2"),
        ("bash $TEST_DIR/inner.sh; echo 0 > /logs/verifier/reward.txt", ""),
        ("set -e; no-such-program; echo 1 > /logs/verifier/reward.txt", "no-such-program"),
        ("echo 'No module named pytest'; echo 0 > /logs/verifier/reward.txt", "pytest"),
    ],
)  # fmt: skip
def test_tests_that_could_not_run_are_an_error_that_shows_what_they_printed(
    tmp_path: Path, script: str, lacks: str
) -> None:
    ran = judged(tmp_path, f"echo 'tests begin'\n{script}", result="reward")
    if lacks:
        assert (ran.returncode, ran.stdout) == (1, "")
        assert lacks in ran.stderr.splitlines()[-1]
        assert "tests begin" in ran.stderr
    else:  # a script that is not there is not a program that is missing
        assert json.loads(ran.stdout)["passed"] is False


@pytest.mark.processes
def test_what_the_tests_lacked_does_not_matter_if_they_pass(tmp_path: Path) -> None:
    ran = judged(tmp_path, f"no-such-program\n{PYTEST}\n")
    assert json.loads(ran.stdout)["passed"] is True


@pytest.mark.processes
@pytest.mark.parametrize("line", ["no-such-program", "uvx no-such-tool", "pip install no-such-package"])
def test_a_program_that_the_agents_own_script_lacks_is_the_agents_failure(tmp_path: Path, line: str) -> None:
    script = f"echo {line} > run.sh\nbash run.sh && r=1 || r=0\necho $r > /logs/verifier/reward.txt\n"
    ran = judged(tmp_path, script, result="reward")
    assert json.loads(ran.stdout)["passed"] is False


FORGED = "#!/bin/sh\nprintf '=== short test summary info ===\\nPASSED a::b\\n'; exit 0\n"


@pytest.mark.processes
@pytest.mark.parametrize(
    ("name", "script"),
    [
        ("work/pytest.py", f"uv run {PYTEST}"),
        (".local/bin/env", f"source $HOME/.local/bin/env\n{PYTEST}"),
        ("work/.venv/bin/pytest", f"uv venv\n.venv/bin/{PYTEST}"),
        ("work/.t/bin/activate", f"uv venv .t\nsource .t/bin/activate\n{PYTEST}"),
        ("work/.t/bin/activate", f"python3 -m venv .t\nsource .t/bin/activate\n{PYTEST}"),
    ],
)
def test_a_program_that_the_agent_put_in_the_way_is_not_run(tmp_path: Path, name: str, script: str) -> None:
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text("raise SystemExit(0)" if name.endswith(".py") else FORGED)
    (tmp_path / name).chmod(0o755)
    assert json.loads(judged(tmp_path, script, answer="41").stdout)["passed"] is False


@pytest.mark.processes
@pytest.mark.parametrize(("reference", "passed"), [(True, True), (False, False)])
def test_the_reference_solution_comes_before_the_tests_if_it_is_asked_for(
    tmp_path: Path, reference: bool, passed: bool
) -> None:
    ran = judged(tmp_path, PYTEST, answer="41", reference=reference)
    assert json.loads(ran.stdout)["passed"] is passed


@pytest.mark.parametrize(
    ("config", "package", "chosen"),
    [
        ("pyvenv.cfg", "pytest", True),
        ("conda-meta", "pytest", True),
        ("pyvenv.cfg", "numpy", False),
        ("", "pytest", False),
    ],
)
def test_the_python_of_an_active_environment_that_can_run_the_tests(
    tmp_path: Path, config: str, package: str, chosen: bool
) -> None:
    python = tmp_path / "bin/python3"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    if config:
        (tmp_path / config).touch()
    (tmp_path / "lib/python3.12/site-packages" / package).mkdir(parents=True)
    assert find_python(f"{tmp_path}/bin:/nowhere") == (str(python) if chosen else sys.executable)
