#!/usr/bin/env -S python3 -I
"""Runs the tests of an imported task in the sandbox, when the agent has ended. Written by `holdfast import`.

With `reference: true` in its context it runs the task's own solution first: then the tests have to pass.
"""

from __future__ import annotations

import base64
import contextlib
import glob
import io
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
from typing import Any, NoReturn

SETTINGS: dict[str, Any] = {}
"""The tests' settings and paths."""
TESTS = ""
"""Their files, as an archive in base64."""
SOLUTION = ""
"""The files of the reference solution, likewise; empty if there is none."""
TOOLS = ""
"""The program that replaces installers, as text."""

UNDECIDED = {"XFAIL": "expected to fail", "SKIPPED": "skipped"}
"""The words of pytest, and of Holdfast, for tests that neither passed nor failed."""
LARGEST_OUTPUT = 64 << 20
OUTPUT_SHOWN = 8000
LACKS_PYTEST = re.compile(r"No module named .?pytest\b|\bpytest: (?:command )?not found")
NO_RESULT = {"reward": "reward", "pytest": "summary of pytest"}
SUMMARY = re.compile(r"=+\s*short test summary info\s*=+", re.IGNORECASE)
NOT_FOUND = """() {
  case $0 in "$HOLDFAST_SCRIPTS"/*) printf '%s\\n' "$1" >> "$HOLDFAST_MISSING";; esac
  printf '%s: %s: command not found\\n' "$0" "$1" >&2
  return 127
}"""
"""bash calls it for a program that is missing. Only those that the task's own scripts name are noted: what a script of
the agent's lacks is the agent's business."""


def main() -> dict[str, Any]:
    context = json.load(sys.stdin)
    workspace = context["workspace_path"]
    place = tempfile.mkdtemp(prefix="holdfast-tests-")
    paths = {f"/{name}": f"{place}/{name}" for name in ("tests", "logs", "solution")}
    if SETTINGS["workdir"] != "/":
        paths[SETTINGS["workdir"]] = workspace
    for name in ("tests", "logs/verifier", "logs/agent", "logs/artifacts", "bin", "solution"):
        os.makedirs(os.path.join(place, name))
    env = build_environment(place, paths)
    if context.get("reference"):
        unpack(SOLUTION, f"{place}/solution", paths)
        if run_script(f"{place}/solution/solve.sh", workspace, env, SETTINGS["solution_timeout_s"]) is None:
            limit = SETTINGS["solution_timeout_s"]
            return {"passed": False, "reason": f"the reference solution did not end within {limit:g} s"}
    unpack(TESTS, f"{place}/tests", paths)
    ran = run_script(os.path.join(place, "tests", SETTINGS["script"]), workspace, env, SETTINGS["timeout_s"])
    if ran is None:
        return {"passed": False, "reason": f"the tests did not end within {SETTINGS['timeout_s']:g} s"}
    code, output = ran
    result = read_reward(place, output) if SETTINGS["result"] == "reward" else read_pytest_summary(output)
    if result is None or not result["passed"]:
        refuse_missing(place, output)
    if result is None:
        last = next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "nothing")
        fail(f"the tests left no {NO_RESULT[SETTINGS['result']]}; the last line they printed: {last[:160]}", output)
    return dict(result, details={"output": output[-OUTPUT_SHOWN:], "exit_code": code})


def build_environment(place: str, paths: dict[str, str]) -> dict[str, str]:
    """Build the variables of the task's scripts, with replacements for programs that install packages."""
    tools = f"{place}/bin/tools.py"
    with open(tools, "w") as file:
        file.write(TOOLS)
    python = find_python(os.environ.get("PATH", os.defpath))
    for name in SETTINGS["tools"]:
        with open(f"{place}/bin/{name}", "w") as file:
            file.write(f'#!/bin/sh\nexec {shlex.quote(python)} -I {shlex.quote(tools)} {name} "$@"\n')
        os.chmod(f"{place}/bin/{name}", 0o755)  # noqa: S103
    sourced = os.path.expanduser("~/.local/bin/env")
    with contextlib.suppress(OSError):  # a home that cannot be written to
        os.makedirs(os.path.dirname(sourced), exist_ok=True)
    with contextlib.suppress(OSError):  # one of the agent's would run in the middle of the tests
        os.unlink(sourced)
    with contextlib.suppress(OSError):
        open(sourced, "x").close()
    offline = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return {
        # Only the agent has network access. Without proxy variables, connections of the tests fail immediately.
        **offline,
        "TEST_DIR": paths["/tests"],
        "PATH": f"{place}/bin:{os.environ.get('PATH', os.defpath)}",
        "HOLDFAST_MISSING": f"{place}/missing",
        "HOLDFAST_SCRIPTS": place,
        "BASH_FUNC_command_not_found_handle%%": NOT_FOUND,
        **SETTINGS["env"],
    }


def find_python(path: str) -> str:
    """Return the Python of the active environment if it has pytest, otherwise the one that runs Holdfast.

    Holdfast may be installed on its own, as pipx does, and then lacks the packages of the tests.
    """
    python = shutil.which("python3", path=path)
    prefix = os.path.dirname(os.path.dirname(python)) if python else ""
    is_environment = any(os.path.exists(os.path.join(prefix, name)) for name in ("pyvenv.cfg", "conda-meta"))
    has_pytest = glob.glob(os.path.join(prefix, "lib", "python3*", "site-packages", "pytest"))
    return python if python and is_environment and has_pytest else sys.executable


def run_script(script: str, workspace: str, env: dict[str, str], timeout_s: float) -> tuple[int, str] | None:
    """Return a script's exit code and what it printed; None if it took too long."""
    with tempfile.TemporaryFile() as output:  # no pipe: a server that the tests leave running would hold it open
        try:
            ran = subprocess.run(  # noqa: S603  # the task's own script
                ["bash", script],  # noqa: S607  # the one of the sandbox
                cwd=workspace,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=timeout_s,
            )
        except subprocess.TimeoutExpired:
            return None
        output.seek(0)
        text = output.read(LARGEST_OUTPUT + 1).decode("utf-8", "replace")
    if len(text) > LARGEST_OUTPUT:
        sys.exit(f"the tests printed more than {LARGEST_OUTPUT >> 20} MB")
    return ran.returncode, text


def unpack(archived: str, folder: str, paths: dict[str, str]) -> None:
    """Unpack an archive and adapt the paths in its files to this machine."""
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(archived))) as archive:
        for info in archive.infolist():
            target = os.path.join(folder, info.filename)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            data = archive.read(info)
            with contextlib.suppress(UnicodeDecodeError):  # not text
                data = rewrite_paths(data.decode("utf-8"), paths).encode("utf-8")
            with open(target, "wb") as file:
                file.write(data)
            os.chmod(target, 0o755)  # noqa: S103  # as in an archive of the task


def rewrite_paths(text: str, paths: dict[str, str]) -> str:
    """Replace the paths that differ between this machine and the task's own container."""
    if not paths:
        return text
    alternatives = "|".join(re.escape(old) for old in sorted(paths, key=len, reverse=True))
    return re.sub(rf"(?<![\w.~/-])(?:{alternatives})(?![\w-]|\.\w)", lambda match: paths[match[0]], text)


def refuse_missing(place: str, output: str) -> None:
    """End with an error if the tests lacked a program or a package: then they have not judged the agent."""
    names = ["pytest (python3 -m pip install pytest)"] if LACKS_PYTEST.search(output) else []
    if os.path.exists(f"{place}/missing"):
        with open(f"{place}/missing") as file:
            names += file.read().split("\n")
    if listed := ", ".join(dict.fromkeys(filter(None, names))):
        fail(f"nothing was judged: not installed here: {listed}", output)


def fail(why: str, output: str) -> NoReturn:
    """End with an error: print the output of the tests and, on the last line, why it is not a verdict."""
    sys.exit(f"{output[-OUTPUT_SHOWN:]}\n{why}")


def read_reward(place: str, output: str) -> dict[str, Any] | None:
    """Read the reward that the tests wrote, as Harbor does; None if they wrote none."""
    for name in ("reward.txt", "reward.json"):
        path = os.path.join(place, "logs", "verifier", name)
        if os.path.exists(path):
            with open(path) as file:
                numbers = parse_numbers(file.read(), in_json=name.endswith("json"))
            if not numbers or not all(math.isfinite(value) for value in numbers):
                fail("the tests wrote no number as their reward", output)
            score = min(1.0, max(0.0, sum(numbers) / len(numbers)))
            passed = all(value >= 1.0 for value in numbers)
            listed = ", ".join(f"{value:g}" for value in numbers)
            return {"passed": passed, "score": score, "reason": f"reward {listed}"}
    return None


def parse_numbers(text: str, *, in_json: bool) -> list[float]:
    """Return the rewards in a file: one, or one per measure; none if they are not numbers."""
    try:
        written = json.loads(text) if in_json else text
        if isinstance(written, dict):
            return [float(value) for value in ([written["reward"]] if "reward" in written else written.values())]
        return [float(written)]
    except (TypeError, ValueError):
        return []


def read_pytest_summary(output: str) -> dict[str, Any] | None:
    """Read the summary of `pytest -rA`, as terminal-bench does: every test has to pass. None without one."""
    # The exit code says less: it is also 0 if every test was skipped, and that is no verdict.
    parts = SUMMARY.split(output, maxsplit=1)
    lines = [line.split(None, 1) for line in parts[1].splitlines()] if len(parts) == 2 else []
    outcomes = ("PASSED", *UNDECIDED, "FAILED", "XPASS", "ERROR")
    results = [words[0].strip(":") for words in lines if len(words) == 2 and words[0].strip(":") in outcomes]
    if not results:
        return None
    if all(word in UNDECIDED for word in results):  # else an agent that does nothing would pass
        fail("no test passed or failed, all were skipped", output)
    passed = results.count("PASSED")
    rest = [f"{results.count(word)} {name}" for word, name in UNDECIDED.items() if word in results]
    reason = ", ".join([f"{passed} of {len(results)} tests passed", *rest])
    return {"passed": passed + sum(map(results.count, UNDECIDED)) == len(results), "reason": reason}


if __name__ == "__main__":
    print(json.dumps(main()))
