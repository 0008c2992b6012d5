"""A task folder of Harbor: task.toml (schema 1.x), instruction.md, environment/, tests/, solution/."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.imports.foreign_task import (
    LARGEST_TESTS,
    ForeignTask,
    InvalidTask,
    TaskEgress,
    TaskTests,
    UnsupportedTask,
    read_seconds,
    read_text,
    read_tree,
    strip_canary,
)

MARK = "task.toml"
ORIGIN = "Harbor"
_COMPOSE = frozenset({"docker-compose.yaml", "docker-compose.yml"})
_SCHEMA = 1
"""The latest known major version: Harbor 0.25.0 writes 1.4."""
_AGENT_S = 600.0
_VERIFIER_S = 600.0
"""The default time limit in seconds."""
_CARRIED = {
    "": {"schema_version", "version", "task", "metadata", "source", "verifier", "agent", "environment", "solution"},
    "agent.": {"timeout_sec", "network_mode", "allowed_hosts"},
    "verifier.": {"timeout_sec", "env"},
    "environment.": {
        "docker_image", "os", "cpus", "memory_mb", "storage_mb", "memory", "storage", "env", "workdir",
        "network_mode", "allowed_hosts", "allow_internet", "build_timeout_sec",
    },
    "solution.": set(),
}  # fmt: skip


def read_harbor_task(folder: Path) -> ForeignTask:
    """Return the task; raises UserError if the folder is incomplete or its kind cannot be a spec."""
    settings = _read_settings(folder / MARK)
    agent, verifier, environment = (_get_table(settings, name) for name in ("agent", "verifier", "environment"))
    _check_supported(folder, settings, environment)
    package = _get_table(settings, "task")
    left_out = _list_left_out(settings)
    env, env_left_out = _split_literals(_get_table(environment, "env"), "environment.env.")
    test_env, test_env_left_out = _split_literals(_get_table(verifier, "env"), "verifier.env.")
    dockerfile = folder / "environment" / "Dockerfile"
    compose = [name for name in sorted(_COMPOSE) if (folder / "environment" / name).is_file()]
    left_out += [*env_left_out, *test_env_left_out]
    left_out += [f"environment/{name}: describe its services under services:" for name in compose]
    return ForeignTask(
        name=str(package.get("name") or folder.resolve().name).rpartition("/")[2],
        origin=f"{ORIGIN}, schema {settings.get('schema_version', settings.get('version', '1'))}",
        description=str(package.get("description") or ""),
        prompt=strip_canary(read_text(folder / "instruction.md")),
        tests=_read_tests(folder, verifier, test_env),
        dockerfile=dockerfile if dockerfile.is_file() else None,
        context=folder / "environment",
        hidden=frozenset({"Dockerfile", *_COMPOSE}),
        image=environment.get("docker_image"),
        workdir=str(environment["workdir"]) if environment.get("workdir") else None,
        agent_timeout_s=read_seconds(agent, "timeout_sec", _AGENT_S, folder / MARK),
        resources=_read_resources(environment),
        env=env,
        egress=_read_egress(environment, agent, left_out),
        solution=_read_solution(folder / "solution"),
        left_out=tuple(left_out),
    )


def _read_settings(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as broken:
        raise InvalidTask(f"{path}: not readable as TOML: {broken}") from broken


def _check_supported(folder: Path, settings: Mapping[str, Any], environment: Mapping[str, Any]) -> None:
    version = str(settings.get("schema_version", settings.get("version", "1")))
    major = version.partition(".")[0]
    if not major.isdecimal() or int(major) > _SCHEMA:
        hint = "update Holdfast, or write the task with an earlier Harbor"
        raise UnsupportedTask(
            f"{folder / MARK}: schema {version}, and {_SCHEMA}.x is the latest version that Holdfast knows", hint=hint
        )
    if settings.get("steps"):
        hint = "import each step as its own task"
        raise UnsupportedTask(f"{folder / MARK}: a task with several steps cannot become one spec", hint=hint)
    if str(environment.get("os", "linux")).lower() != "linux":
        raise UnsupportedTask(f"{folder / MARK}: a task for {environment['os']}; sandboxes here are Linux")


def _list_left_out(settings: Mapping[str, Any]) -> list[str]:
    """Return every key that a spec cannot express, by name."""
    tables = {"": settings} | {name: _get_table(settings, name.strip(".")) for name in _CARRIED if name}
    return [f"{place}{key}" for place, table in tables.items() for key in sorted(set(table) - _CARRIED[place])]


def _split_literals(env: Mapping[str, Any], place: str) -> tuple[dict[str, str], list[str]]:
    """Return literal values; those that Harbor takes from its user's environment are listed."""
    values = {str(name): str(value) for name, value in env.items()}
    plain = {name: value for name, value in values.items() if "${" not in value}
    return plain, [f"{place}{name}: it is read from the environment" for name in values if name not in plain]


def _read_tests(folder: Path, verifier: Mapping[str, Any], env: dict[str, str]) -> TaskTests:
    files = read_tree(folder / "tests", LARGEST_TESTS, "the tests")
    if "test.sh" not in files:
        raise InvalidTask(f"{folder}: there is no tests/test.sh", hint="a Harbor task reports its result with it")
    timeout_s = read_seconds(verifier, "timeout_sec", _VERIFIER_S, folder / MARK)
    return TaskTests(files, "test.sh", "reward", timeout_s, env)


def _read_solution(folder: Path) -> dict[str, bytes]:
    files = read_tree(folder, LARGEST_TESTS, "the files of the solution") if folder.is_dir() else {}
    return files if "solve.sh" in files else {}


def _read_resources(environment: Mapping[str, Any]) -> dict[str, int | float | str]:
    sizes = {"memory": environment.get("memory_mb"), "disk": environment.get("storage_mb")}
    old = {"memory": environment.get("memory"), "disk": environment.get("storage")}
    resources = {key: f"{size}Mi" for key, size in sizes.items() if size}
    resources |= {
        key: f"{size}i" for key, size in old.items() if size and key not in resources
    }  # Harbor's 2G is 2 × 1024 MB
    return ({"cpu": environment["cpus"]} if environment.get("cpus") else {}) | resources


def _read_egress(environment: Mapping[str, Any], agent: Mapping[str, Any], left_out: list[str]) -> TaskEgress | None:
    mode = agent.get("network_mode") or environment.get("network_mode")
    hosts = agent.get("allowed_hosts") or environment.get("allowed_hosts") or []
    if mode == "allowlist":
        return TaskEgress("deny", tuple(map(str, hosts)))
    if mode == "public" or (mode is None and environment.get("allow_internet")):
        return TaskEgress("allow")
    if mode not in (None, "no-network"):
        left_out.append(f"network_mode {str(mode)[:40]!r}, which Holdfast does not know: the network stays closed")
    if mode is None and environment.get("allow_internet") is None:
        left_out.append("the internet, which a Harbor task may use unless it says otherwise: network.egress opens it")
    return None


def _get_table(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    table = value.get(name, {})
    if not isinstance(table, dict):
        raise InvalidTask(f"{MARK}: {name} is not a table")
    return table
