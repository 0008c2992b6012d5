#!/usr/bin/env -S python3 -I
"""Runs the tests of an imported task in the sandbox, when the agent has ended. Written by `holdfast import`."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from typing import Any

SETTINGS: dict[str, Any] = {}
"""What the tests are, and where they expect things."""
TESTS = ""
"""Their files, as an archive in base64."""

UNDECIDED = {"XFAIL": "expected to fail", "SKIPPED": "skipped"}
"""What neither passed nor failed, and how it is told."""
LARGEST_OUTPUT = 64 << 20
LACKS_PYTEST = re.compile(r"No module named .?pytest\b|\bpytest: (?:command )?not found")
SUMMARY = re.compile(r"=+\s*short test summary info\s*=+", re.IGNORECASE)


def main() -> dict[str, Any]:
    workspace = json.load(sys.stdin)["workspace_path"]
    place = tempfile.mkdtemp(prefix="holdfast-tests-")
    paths = {"/tests": place + "/tests", "/logs": place + "/logs"}
    if SETTINGS["workdir"] != "/":
        paths[SETTINGS["workdir"]] = workspace
    for name in ("tests", "logs/verifier", "logs/agent", "logs/artifacts"):
        os.makedirs(os.path.join(place, name))
    unpack(os.path.join(place, "tests"), paths)
    script = os.path.join(place, "tests", SETTINGS["script"])
    env = dict(os.environ, TEST_DIR=paths["/tests"]) | SETTINGS["env"]
    with tempfile.TemporaryFile() as output:  # no pipe: a server that the tests leave behind would hold it open
        try:
            ran = subprocess.run(  # noqa: S603  # the task's own script
                ["bash", script],  # noqa: S607  # the one of the sandbox
                cwd=workspace,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=SETTINGS["timeout_s"],
            )
        except subprocess.TimeoutExpired:
            return {"passed": False, "reason": f"the tests did not end within {SETTINGS['timeout_s']:g} s"}
        output.seek(0)
        said = output.read(LARGEST_OUTPUT + 1).decode("utf-8", "replace")
    if len(said) > LARGEST_OUTPUT:
        sys.exit(f"the tests printed more than {LARGEST_OUTPUT >> 20} MB")
    found = by_reward(place, said) if SETTINGS["result"] == "reward" else by_pytest(said)
    return dict(found, details={"output": said[-8000:], "exit_code": ran.returncode})


def unpack(folder: str, paths: dict[str, str]) -> None:
    """The files of the tests, with the paths that they have here."""
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(TESTS))) as archive:
        for info in archive.infolist():
            target = os.path.join(folder, info.filename)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            data = archive.read(info)
            with contextlib.suppress(UnicodeDecodeError):  # else it is no text
                data = moved(data.decode("utf-8"), paths).encode("utf-8")
            with open(target, "wb") as file:
                file.write(data)
            os.chmod(target, 0o755)  # noqa: S103  # as in an archive of the task


def moved(text: str, paths: dict[str, str]) -> str:
    """The text with each path in the place of the one that it had in the task's own container."""
    if not paths:
        return text
    known = "|".join(re.escape(old) for old in sorted(paths, key=len, reverse=True))
    return re.sub(rf"(?<![\w.~/-])(?:{known})(?![\w-]|\.\w)", lambda found: paths[found[0]], text)


def by_reward(place: str, said: str) -> dict[str, Any]:
    """What the tests wrote down, as Harbor reads it."""
    folder = os.path.join(place, "logs", "verifier")
    for name in ("reward.txt", "reward.json"):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            with open(path) as file:
                written = json.load(file) if name.endswith("json") else float(file.read())
            values = list(written.values()) if isinstance(written, dict) else [written]
            if isinstance(written, dict) and "reward" in written:
                values = [written["reward"]]
            numbers = [float(value) for value in values]
            if not numbers or not all(math.isfinite(value) for value in numbers):
                sys.exit("the tests wrote no number as their reward")
            score = min(1.0, max(0.0, sum(numbers) / len(numbers)))
            passed = all(value >= 1.0 for value in numbers)
            shown = ", ".join(f"{value:g}" for value in numbers)
            return {"passed": passed, "score": score, "reason": f"reward {shown}"}
    sys.exit("the tests wrote no reward: " + said[-1000:])


def by_pytest(said: str) -> dict[str, Any]:
    """The summary that pytest prints with -rA, as terminal-bench reads it: every test has to pass."""
    parts = SUMMARY.split(said, maxsplit=1)
    lines = [line.split(None, 1) for line in parts[1].splitlines()] if len(parts) == 2 else []
    known = ("PASSED", *UNDECIDED, "FAILED", "XPASS", "ERROR")
    told = [words[0].strip(":") for words in lines if len(words) == 2 and words[0].strip(":") in known]
    if not told and LACKS_PYTEST.search(said):
        need = "the tests need pytest, which is not installed here: python3 -m pip install pytest"
        sys.exit(f"{need}. They said: {said[-1000:]}")
    if not told:
        sys.exit("the tests printed no summary of pytest: " + said[-1000:])
    if all(word in UNDECIDED for word in told):  # else an agent that does nothing would have done it
        sys.exit("no test passed or failed, all were skipped: " + said[-1000:])
    good = told.count("PASSED")
    beside = [f"{told.count(word)} {name}" for word, name in UNDECIDED.items() if word in told]
    reason = ", ".join([f"{good} of {len(told)} tests passed", *beside])
    return {"passed": good + sum(map(told.count, UNDECIDED)) == len(told), "reason": reason}


if __name__ == "__main__":
    print(json.dumps(main()))
