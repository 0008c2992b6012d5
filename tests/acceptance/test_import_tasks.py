"""`holdfast import`: tasks of Harbor and terminal-bench as specs that run; what is neither is refused whole."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from cli import MakeProject, Project

ROOT = Path(__file__).parents[2]
HARBOR = {
    "task.toml": """\
schema_version = "1.4"
[task]
name = "shop/greet"
description = "A greeting for everybody in a list"
[agent]
timeout_sec = 120.0
[verifier]
timeout_sec = 60.0
[environment]
cpus = 1
memory_mb = 512
network_mode = "no-network"
healthcheck = {command = "true"}
""",
    "instruction.md": "<!-- canary 1 -->\n\nGreet every name in /app/data/names.txt in /app/out/greetings.txt.\n",
    "environment/Dockerfile": """\
FROM python:3.12-slim
RUN apt-get update && apt-get install -y jq
WORKDIR /app
ENV GREETING=Hello
COPY data/ /app/data/
RUN mkdir -p /app/out
""",
    "environment/data/names.txt": "Ann\nBob\n",
    "tests/test.sh": "python3 /tests/check.py && r=1 || r=0; echo $r > /logs/verifier/reward.txt\n",
    "tests/check.py": """\
names = open("/app/data/names.txt").read().split()
assert open("/app/out/greetings.txt").read().splitlines() == [f"Hello, {name}!" for name in names]
""",
    "solution/solve.sh": "sed 's/.*/'$GREETING', &!/' /app/data/names.txt > /app/out/greetings.txt\n",
}
TERMINAL_BENCH = {
    "task.yaml": "instruction: Write 42 into /app/answer.txt\ndifficulty: easy\nmax_test_timeout_sec: 60\n",
    "Dockerfile": "FROM ghcr.io/laude-institute/t-bench/ubuntu-24-04:20250624\nWORKDIR /app\nCOPY . /app\n",
    "docker-compose.yaml": "services:\n  client: {build: .}\n  db: {image: postgres}\n",
    "run-tests.sh": "python -m pytest -p no:cacheprovider $TEST_DIR/test_outputs.py -rA\n",
    "tests/test_outputs.py": "def test_answer():\n    assert open('/app/answer.txt').read().strip() == '42'\n",
    "solution.sh": "echo 42 > /app/answer.txt\n",
    "hint.txt": "It is a number.\n",
}


@pytest.fixture
def made(project: MakeProject) -> Project:
    made = project({})
    for name, files in (("greet", HARBOR), ("answer", TERMINAL_BENCH)):
        for path, content in files.items():
            (made.folder / "tasks" / name / path).parent.mkdir(parents=True, exist_ok=True)
            (made.folder / "tasks" / name / path).write_text(content)
    return made


def test_a_harbor_task_becomes_a_spec_that_names_what_it_lacks(made: Project) -> None:
    result = made.cli("import", "tasks/greet", "--agent", "my-agent -p", "-o", "specs")
    assert (result.code, result.out) == (0, "wrote specs/greet\n")
    missing = ["environment.healthcheck", "RUN apt-get update && apt-get install -y jq"]
    assert [line.split(": ")[2] for line in result.err.splitlines()] == missing
    text = made.read("specs/greet/holdfast.yaml")
    assert "# Not carried over: environment.healthcheck\n" in text
    spec = yaml.safe_load(text)
    assert spec["task"]["prompt"] == "Greet every name in /workspace/data/names.txt in /workspace/out/greetings.txt.\n"
    assert spec["agent"] == {"type": "command", "command": "my-agent -p", "timeout": "120s"}
    assert (spec["base"], spec["resources"]) == ("python:3.12-slim", {"cpu": 1, "memory": "512Mi"})
    assert spec["setup"]["commands"] == ["mkdir -p /workspace/out"]
    assert made.cli("validate", "specs/greet/holdfast.yaml").code == 0
    shown = [path for path in (made.folder / "specs/greet/files").rglob("*") if path.is_file()]
    assert [path.name for path in shown] == ["names.txt"]
    again = made.cli("import", "tasks/greet", "-o", "specs")
    assert again.code == 4
    assert "specs/greet" in again.err
    assert "[import-refused]" in again.err
    assert made.cli("import", "tasks/greet", "-o", "specs", "--force").code == 0


INSTALLED = f"-path '{ROOT}/src' -prune -o -path '{ROOT}/.venv*' -prune -o"  # a clone below /tmp is seen there
LOOKS = f'find /workspace /agent /tmp "$HOME" {INSTALLED} -type f -print 2>/dev/null'


def judged(made: Project, spec: str) -> tuple[int, str, str]:
    """The exit code of a run, why its rule says what it says, and the agent's answer."""
    result = made.cli("run", "-c", spec, "--no-report", "--json", "--no-preflight").json
    (case,) = result["parts"]["scenario"]["cases"]
    (verdict,) = case["replicas"][0]["verdicts"]
    return result["exit_code"], verdict["reason"], case["replicas"][0]["turns"][0].get("text") or ""


@pytest.mark.parametrize(
    ("task", "passed", "failed", "seen"),
    [
        ("greet", "reward 1", "reward 0", ["/workspace/data/names.txt"]),
        ("answer", "1 of 1 tests passed", "0 of 1 tests passed", ["/workspace/hint.txt"]),
    ],
)
def test_the_reference_solution_passes_and_an_agent_that_only_looks_fails_and_sees_no_test(
    made: Project, task: str, passed: str, failed: str, seen: list[str]
) -> None:
    assert made.cli("import", f"tasks/{task}", "--solution", "-o", "solved").code == 0
    assert made.cli("import", f"tasks/{task}", "--agent", LOOKS, "-o", "looking").code == 0
    assert judged(made, f"solved/{task}/holdfast.yaml")[:2] == (0, passed)
    code, why, answer = judged(made, f"looking/{task}/holdfast.yaml")
    assert (code, why, answer.split()) == (1, failed, seen)


@pytest.mark.parametrize(
    ("name", "folder", "id"),
    [
        ("chess_best.move", "chess_best.move", "chess-best-move"),
        ("Rscript_Segfault", "Rscript_Segfault", "rscript-segfault"),
        ("001. sum of it", "001-sum-of-it", "001-sum-of-it"),
        ("_hidden_", "hidden", "hidden"),
        ("astropy__astropy-12907", "astropy__astropy-12907", "astropy-astropy-12907"),
    ],
)
def test_a_task_may_have_any_name_with_a_letter_or_digit(made: Project, name: str, folder: str, id: str) -> None:
    (made.folder / "tasks/answer").rename(made.folder / "tasks" / name)
    assert made.cli("import", f"tasks/{name}", "-o", "specs").code == 0
    assert [path.name for path in (made.folder / "specs").iterdir()] == [folder]
    assert yaml.safe_load(made.read(f"specs/{folder}/holdfast.yaml"))["id"] == id


def test_where_the_reference_solution_fails_the_case_is_unproven(made: Project) -> None:
    """The world is not the task's, so it judges no agent, and not the solution as the agent."""
    (made.folder / "tasks/answer/solution.sh").write_text("echo 41 > /app/answer.txt\n")
    for agent in (("--agent", "true"), ("--agent", "echo 42 > answer.txt"), ("--solution",)):
        assert made.cli("import", "tasks/answer", *agent, "-o", "specs", "--force").code == 0
        result = made.cli("run", "-c", "specs/answer/holdfast.yaml", "--no-report", "--json").json
        (verdict,) = result["parts"]["scenario"]["cases"][0]["replicas"][0]["verdicts"]
        assert (result["exit_code"], verdict["outcome"]) == (5, "unproven")


def test_the_reference_solution_is_tried_once_and_leaves_nothing(made: Project) -> None:
    task = made.folder / "tasks/answer"
    (task / "solution.sh").unlink()
    typed = [{"command": f"echo {word} > /app/answer.txt", "block": True} for word in ("41", "42")]
    (task / "solution.yaml").write_text(yaml.safe_dump(typed))
    (task / "run-tests.sh").write_text(f"echo ran >> /tmp/tries\n{(task / 'run-tests.sh').read_text()}")
    looks = f"{LOOKS}; cat /run/holdfast/* | grep -c solve"
    assert made.cli("import", "tasks/answer", "--agent", looks, "-o", "specs").code == 0
    spec = yaml.safe_load(made.read("specs/answer/holdfast.yaml"))
    spec["parallelism"] = {"replicas": 2}
    spec["forbidden"] = {"file_writes_outside": ["nothing"]}
    made.write(spec, "specs/answer/holdfast.yaml")
    result = made.cli("run", "-c", "specs/answer/holdfast.yaml", "--no-report", "--json", "--no-preflight").json
    assert result["exit_code"] == 1
    for replica in result["parts"]["scenario"]["cases"][0]["replicas"]:
        assert [one["outcome"] for one in replica["verdicts"]] == ["fail"]
        assert replica["turns"][0]["text"].split() == ["/workspace/hint.txt", "0"]
        assert not any("answer.txt" in str(one) for one in replica.get("audit", ()))


@pytest.mark.parametrize("step", [{"command": "i", "append_enter": False}, "ls", {"block": True}])
def test_a_solution_that_types_into_a_program_is_named_and_not_run(made: Project, step: object) -> None:
    task = made.folder / "tasks/answer"
    (task / "solution.sh").unlink()
    (task / "solution.yaml").write_text(yaml.safe_dump([{"command": "vim answer.txt"}, step]))
    result = made.cli("import", "tasks/answer", "-o", "specs")
    assert "not carried over: solution.yaml" in result.err
    assert "reference_timeout" not in made.read("specs/answer/holdfast.yaml")


@pytest.mark.parametrize("task", ["greet", "answer"])
def test_tests_that_could_not_run_are_an_error_never_a_fail(made: Project, task: str) -> None:
    name = {"greet": "tests/test.sh", "answer": "run-tests.sh"}[task]
    script = made.folder / "tasks" / task / name
    script.write_text("uvx --with no-such-package pytest /tests\necho 0 > /logs/verifier/reward.txt\n")
    assert made.cli("import", f"tasks/{task}", "-o", "specs").code == 0
    result = made.cli("run", "-c", f"specs/{task}/holdfast.yaml", "--no-report", "--json").json
    (verdict,) = result["parts"]["scenario"]["cases"][0]["replicas"][0]["verdicts"]
    assert (result["exit_code"], verdict["outcome"]) == (3, "error")
    assert "no-such-package" in verdict["reason"]
    assert "no-such-package" in verdict["details"]["stderr"]


def test_a_folder_that_is_no_imported_task_is_not_overwritten(made: Project) -> None:
    """Least of all the task itself, which lies where its spec would go if the command is run beside it."""
    before = {path: path.read_bytes() for path in (made.folder / "tasks").rglob("*") if path.is_file()}
    result = made.cli("import", "tasks/greet", "-o", "tasks", "--force")
    assert result.code == 4
    assert "[import-refused]" in result.err
    assert "-o" in result.err
    assert {path: path.read_bytes() for path in (made.folder / "tasks").rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("source", ["./tests", "data/../tests", "shown"])
def test_tests_are_hidden_whatever_path_leads_to_them(made: Project, source: str) -> None:
    task = made.folder / "tasks" / "answer"
    (task / "data").mkdir()
    (task / "shown").symlink_to("tests")
    (task / "Dockerfile").write_text(f"FROM ubuntu\nWORKDIR /app\nCOPY {source} /app/\n")
    assert made.cli("import", "tasks/answer", "-o", "specs").code == 0
    assert not (made.folder / "specs" / "answer" / "files").exists()


def test_what_is_hidden_is_hidden_under_every_name(made: Project) -> None:
    """By a link, by a way around, by what Docker itself would not have copied; what is dropped is named."""
    task = made.folder / "tasks/answer"
    (task / "data").symlink_to("tests")
    (task / "link.sh").symlink_to("solution.sh")
    for name, text in {
        ".dockerignore": "# not for the image\n**/*.key\n/notes\n!notes/public.txt\n",
        "notes/answers.txt": "42",
        "notes/public.txt": "hello",
        "deep/down/x.key": "42",
        "repo/.git/HEAD": "ref",
        "repo/a.txt": "a",
        "seed.tar.gz": "packed",
    }.items():
        (task / name).parent.mkdir(parents=True, exist_ok=True)
        (task / name).write_text(text)
    copies = "COPY data /app/data\nCOPY link.sh repo/../tests/test_outputs.py /app/\nADD seed.tar.gz /app/\nCOPY . /app"
    (task / "Dockerfile").write_text(f"FROM a\nWORKDIR /app\n{copies}\n")
    told = made.cli("import", "tasks/answer", "-o", "specs").err
    files = made.folder / "specs/answer/files"
    shown = sorted(path.relative_to(files).as_posix() for path in files.rglob("*") if path.is_file())
    assert shown == [".dockerignore", "hint.txt", "notes/public.txt", "repo/a.txt", "seed.tar.gz"]
    assert ": repo/.git: " in told
    assert ": ADD seed.tar.gz /app/: " in told


def test_a_server_that_the_tests_leave_behind_does_not_fail_the_agent(made: Project) -> None:
    script = made.folder / "tasks/answer/run-tests.sh"
    script.write_text("sleep 50 &\n" + script.read_text())
    assert made.cli("import", "tasks/answer", "--solution", "-o", "solved").code == 0
    assert judged(made, "solved/answer/holdfast.yaml")[:2] == (0, "1 of 1 tests passed")


FORGED = """\
import os, sys
os.write(1, b'{"passed": true, "reason": "forged"}')
os._exit(0)
"""


def test_an_agent_cannot_stand_in_for_what_runs_the_tests(made: Project) -> None:
    """Neither by a module on the task's PYTHONPATH, nor by one of the user's own, nor by another Python."""
    dockerfile = made.folder / "tasks/answer/Dockerfile"
    dockerfile.write_text(dockerfile.read_text() + "ENV PYTHONPATH=/app\n")
    forging = "cat $FORGED > zipfile.py; cat $FORGED > sitecustomize.py; printf '#!/bin/sh\\ncat /dev/null' > python3"
    assert made.cli("import", "tasks/answer", "--agent", forging, "-o", "specs").code == 0
    spec = yaml.safe_load(made.read("specs/answer/holdfast.yaml"))
    (made.folder / "specs/answer/files/forged.txt").write_text(FORGED)
    spec["agent"]["env"] = {"FORGED": "/workspace/forged.txt"}
    spec["setup"]["env"]["PATH"] = "/workspace:" + os.environ["PATH"]
    made.write(spec, "specs/answer/holdfast.yaml")
    code, why, _ = judged(made, "specs/answer/holdfast.yaml")
    assert code != 0
    assert why != "forged"  # it may quote what was forged, as the output of tests that did not run


def test_the_workspace_is_also_where_the_task_expects_it(made: Project) -> None:
    """For programs of the agent, and for files of the task, which name the path of the container."""
    (made.folder / "tasks/answer/work.sh").write_text("cat /app/hint.txt; cd /app; echo 42 > /app/answer.txt\n")
    told = made.cli("import", "tasks/answer", "--agent", "sh work.sh", "-o", "specs")
    assert "work.sh" not in told.err
    assert yaml.safe_load(made.read("specs/answer/holdfast.yaml"))["setup"]["workdir"] == "/app"
    assert judged(made, "specs/answer/holdfast.yaml") == (0, "1 of 1 tests passed", "It is a number.")


def test_files_that_name_a_path_that_cannot_be_there_are_reported(made: Project) -> None:
    (made.folder / "tasks/answer/Dockerfile").write_text("FROM ubuntu\nWORKDIR /opt/app\nCOPY . /opt/app\n")
    (made.folder / "tasks/answer/serve.py").write_text("open('/opt/app/data.txt')\n")
    (made.folder / "tasks/answer/picture.png").write_bytes(b"\xff/app")
    told = made.cli("import", "tasks/answer", "-o", "specs").err
    assert ": /opt/app in serve.py: " in told


def test_a_network_mode_that_is_not_known_is_named(made: Project) -> None:
    file = made.folder / "tasks/greet/task.toml"
    file.write_text(file.read_text().replace("no-network", "host"))
    told = made.cli("import", "tasks/greet", "-o", "specs").err
    assert ": network_mode 'host', " in told


def test_what_a_terminal_bench_task_has_beside_the_agent_is_named(made: Project) -> None:
    told = made.cli("import", "tasks", "-o", "specs").err
    assert ": tests: " in told
    assert ": docker-compose.yaml: the service db: " in told
    assert sorted(path.name for path in (made.folder / "specs").iterdir()) == ["answer", "greet"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: (t / "task.toml").unlink(), "[task-invalid]"),
        (lambda t: (t / "task.toml").write_text("= x"), "[task-invalid]"),
        (
            lambda t: (t / "task.toml").write_text('schema_version = "2.0"'),
            "[task-unsupported]",
        ),
        (lambda t: (t / "task.toml").write_text("[[steps]]\nname = 'a'"), "[task-unsupported]"),
        (lambda t: (t / "task.toml").write_text("[environment]\nos = 'windows'"), "[task-unsupported]"),
        (lambda t: (t / "task.toml").write_text("agent = 3"), "[task-invalid]"),
        (lambda t: (t / "task.toml").write_text("[agent]\ntimeout_sec = 'x'"), "[task-invalid]"),
        (
            lambda t: (t / "task.toml").write_text("[environment]\ndocker_image = '${HOME}'"),
            "[task-invalid]",
        ),
        (lambda t: (t / "environment/Dockerfile").write_text("FROM a\nCOPY **zz /app/\n"), "there is no **zz"),
        (lambda t: shutil.copytree(t, t.parent / "other"), "[import-refused]"),
        (lambda t: (t / "instruction.md").unlink(), "cannot read tasks/greet/instruction.md"),
        (lambda t: (t / "instruction.md").write_bytes(b"\xff"), "[task-invalid]"),
        (lambda t: (t / "tests/test.sh").unlink(), "there is no tests/test.sh"),
        (lambda t: (t / "environment/Dockerfile").write_text("FROM a\nRUN <<EOF\nx\nEOF\n"), "[task-unsupported]"),
        (lambda t: (t / "tests/link").symlink_to("/etc/passwd"), "[task-invalid]"),
        (lambda t: (t / "environment/data/loop").symlink_to("loop"), "[task-invalid]"),
        (lambda t: shutil.rmtree(t / "solution"), "[task-invalid]"),
    ],
)
def test_a_folder_that_is_no_task_is_refused_and_nothing_is_written(
    made: Project, change: Callable[[Path], object], said: str
) -> None:
    change(made.folder / "tasks/greet")
    sources = [f"tasks/{name}" for name in ("greet", "other") if (made.folder / "tasks" / name).exists()]
    result = made.cli("import", "tasks/answer", *sources, "--solution", "-o", "specs")
    assert (result.code, result.out) == (4, "")
    assert said in result.err
    assert not (made.folder / "specs").exists()


def test_one_task_of_a_folder_that_cannot_be_imported_does_not_stop_the_others(made: Project) -> None:
    (made.folder / "tasks/greet/instruction.md").unlink()
    result = made.cli("import", "tasks", "-o", "specs")
    assert result.code == 0
    assert [path.name for path in (made.folder / "specs").iterdir()] == ["answer"]
    assert "tasks/greet/instruction.md" in result.err
    assert "[task-invalid]" in result.err
    (made.folder / "tasks/answer/run-tests.sh").unlink()
    assert made.cli("import", "tasks", "-o", "others").code == 4
    assert not (made.folder / "others").exists()


def test_a_prompt_that_no_spec_can_hold_is_refused_whole(made: Project) -> None:
    (made.folder / "tasks/greet/instruction.md").write_text("Say {{ secrets.X }}.")
    result = made.cli("import", "tasks/greet", "-o", "specs")
    assert result.code == 4
    assert ": task.prompt: " in result.err
    assert "[task-invalid]" in result.err
    assert list((made.folder / "specs").iterdir()) == []


def test_logs_and_traces_become_sessions_by_what_they_are(made: Project) -> None:
    log = Path(__file__).parents[1] / "unit/replay/shop.eval"
    shutil.copy(log, made.folder / "again.eval")
    (made.folder / "chat.jsonl").write_text('{"messages": [{"role": "user", "content": "Hello?"}]}\n')
    result = made.cli("import", str(log), "again.eval", "chat.jsonl", "-o", "replays")
    assert (result.code, result.out) == (0, "5 sessions in replays\n")
    names = {path.name for path in (made.folder / "replays").iterdir()}
    assert {"shop-anvils.yaml", "shop-anvils-2.yaml", "shop-talk.yaml", "shop-talk-2.yaml"} < names


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere",), "there is no nowhere"),
        (("agent.py",), "agent.py"),
        (("agent.py", "--agent", "x"), "--agent and --solution apply only to tasks"),
        (("tasks", "--agent", "x", "--solution"), "cannot be combined"),
    ],
)
def test_what_cannot_be_imported_is_a_usage_error(made: Project, words: tuple[str, ...], said: str) -> None:
    result = made.cli("import", *words)
    assert result.code == 4
    assert said in result.err


def test_tests_that_leave_no_summary_show_the_last_line_they_printed(made: Project) -> None:
    (made.folder / "tasks/answer/run-tests.sh").write_text("echo started\necho 'cannot open sources.tar'\n")
    assert made.cli("import", "tasks/answer", "--solution", "-o", "solved").code == 0
    code, why, _ = judged(made, "solved/answer/holdfast.yaml")
    assert code == 3
    assert "cannot open sources.tar" in why
