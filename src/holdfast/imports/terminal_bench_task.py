"""A task folder of terminal-bench: task.yaml, Dockerfile, docker-compose.yaml, run-tests.sh, tests/, solution.sh."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from holdfast.imports.foreign_task import (
    LARGEST_TESTS,
    ForeignTask,
    InvalidTask,
    TaskTests,
    UnsupportedTask,
    read_seconds,
    read_text,
    read_tree,
    strip_canary,
)

MARK = "task.yaml"
ORIGIN = "terminal-bench"
_AGENT_S, _TESTS_S = 360.0, 60.0
"""Default time limits in seconds."""
_CLIENT = "client"
"""The service of docker-compose.yaml that the agent works in."""
_ABOUT = {
    "author_name", "author_email", "difficulty", "category", "tags", "estimated_duration_sec",
    "expert_time_estimate_min", "junior_time_estimate_min", "disable_asciinema",
}  # fmt: skip
"""Keys that have no effect."""
_CARRIED = _ABOUT | {"instruction", "parser_name", "max_agent_timeout_sec", "max_test_timeout_sec"}


def read_terminal_bench_task(folder: Path) -> ForeignTask:
    """Return the task; raises UserError if the folder is incomplete or its kind cannot be a spec."""
    settings = _read_map(folder / MARK)
    prompt = settings.get("instruction")
    if not isinstance(prompt, str) or not prompt.strip():
        raise InvalidTask(f"{folder / MARK}: the task has no instruction", hint="write it as instruction:")
    parser = settings.get("parser_name", "pytest")
    if parser != "pytest":
        hint = "let run-tests.sh run pytest with -rA, and leave out parser_name"
        raise UnsupportedTask(
            f"{folder / MARK}: results are read by {parser}, but Holdfast supports only pytest's", hint=hint
        )
    dockerfile = folder / "Dockerfile"
    left_out = sorted(set(settings) - _CARRIED) + _list_other_services(folder / "docker-compose.yaml")
    return ForeignTask(
        name=folder.resolve().name,
        origin=ORIGIN,
        prompt=strip_canary(prompt),
        tests=_read_tests(folder, read_seconds(settings, "max_test_timeout_sec", _TESTS_S, folder / MARK)),
        dockerfile=dockerfile if dockerfile.is_file() else None,
        context=folder,
        hidden=frozenset(
            {"Dockerfile", "docker-compose.yaml", MARK, "run-tests.sh", "tests", "solution.sh", "solution.yaml"}
        ),
        agent_timeout_s=read_seconds(settings, "max_agent_timeout_sec", _AGENT_S, folder / MARK),
        solution=_read_solution(folder, left_out),
        left_out=tuple(left_out),
    )


def _read_solution(folder: Path, left_out: list[str]) -> dict[str, bytes]:
    """Return the reference solution as one script: solution.sh, or the lines that solution.yaml types."""
    script, typed = folder / "solution.sh", folder / "solution.yaml"
    if script.is_file():
        return {"solve.sh": script.read_bytes()}
    steps = _read_yaml(typed) if typed.is_file() else []
    if not isinstance(steps, list) or not all(isinstance(step, dict) and _is_line(step) for step in steps):
        left_out.append("solution.yaml: it types into a program, so it cannot become a script")
        return {}
    return {"solve.sh": "".join(f"{step['command']}\n" for step in steps).encode()} if steps else {}


def _is_line(step: dict[str, Any]) -> bool:
    """Return whether a step is a command with Enter after it, and not keys for a running program."""
    return isinstance(step.get("command"), str) and step.get("append_enter", True) is True


def _read_tests(folder: Path, timeout_s: float) -> TaskTests:
    script = folder / "run-tests.sh"
    if not script.is_file():
        raise InvalidTask(f"{folder}: there is no run-tests.sh", hint="a terminal-bench task is judged by it")
    files = read_tree(folder / "tests", LARGEST_TESTS, "the tests") if (folder / "tests").is_dir() else {}
    return TaskTests({**files, "run-tests.sh": script.read_bytes()}, "run-tests.sh", "pytest", timeout_s)


def _list_other_services(path: Path) -> list[str]:
    """Report services other than the agent's own: they cannot be converted."""
    if not path.is_file():
        return []
    services = _read_map(path).get("services")
    others = [name for name in (services if isinstance(services, dict) else {}) if name != _CLIENT]
    return [f"docker-compose.yaml: the service {name}: write it under services:" for name in others]


def _read_map(path: Path) -> dict[str, Any]:
    parsed = _read_yaml(path)
    if not isinstance(parsed, dict):
        raise InvalidTask(f"{path}: not a map of keys")
    return parsed


def _read_yaml(path: Path) -> Any:
    try:
        return yaml.safe_load(read_text(path))
    except yaml.YAMLError as broken:
        raise InvalidTask(f"{path}: not readable as YAML: {' '.join(str(broken).split())[:200]}") from broken
