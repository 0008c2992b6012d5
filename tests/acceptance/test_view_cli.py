"""`holdfast view` as a command: its address, its ends, and a run that goes on beside it."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cli import CALM, HOLDFAST, MakeProject, Project, contract, heeds_interrupts, kill_group, rule, wait_until

SLOW = """
import time
def ask(prompt):
    time.sleep(0.15)
    return "a source says " + prompt
"""
RULES = [rule("cites", value="source", severity="critical"), rule("quick", "latency", max_ms=60_000)]
INLINE = {"type": "python", "endpoint": "agent:ask", "isolation": "inline"}


@contextmanager
def viewing(made: Project, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """The command, and the address that it prints."""
    process = made.start("view", "--no-open", *words)
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().decode().strip()
    finally:
        if process.returncode is None:
            kill_group(process)


def get(url: str, path: str) -> Any:
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=20)
    connection.request("GET", f"{parts.path}api/{path}")
    reply = connection.getresponse()
    found = json.loads(reply.read())
    connection.close()
    assert reply.status == 200, found
    return found


def small(project: MakeProject, **more: Any) -> Project:
    return project(contract(RULES, [CALM], agent=INLINE, **more))


def test_it_shows_the_runs_of_this_folder_and_ends_at_ctrl_c(project: MakeProject) -> None:
    made = small(project)
    made.run()
    with viewing(made) as (process, url):
        assert urlsplit(url).hostname == "127.0.0.1"
        assert [run["id"] for run in get(url, "runs")["runs"]] == ["0001"]
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out) == (0, b"")
        assert b"Traceback" not in err
        assert b"Keep this address" in err
        assert time.monotonic() - began < 5


def test_it_ends_at_once_while_pages_listen(project: MakeProject) -> None:
    made = small(project)
    made.run()
    with viewing(made) as (process, url):
        parts = urlsplit(url)
        connection = HTTPConnection("127.0.0.1", parts.port, timeout=20)
        connection.request("GET", f"{parts.path}api/events?run=0001")
        assert connection.getresponse().status == 200
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
        assert process.returncode == 0
        connection.close()


def test_a_run_that_is_named_is_opened(project: MakeProject) -> None:
    made = small(project)
    made.run()
    with viewing(made, "latest") as (_, url):
        assert urlsplit(url).fragment == "/run/0001"
        assert get(url, "runs/0001")["verdict"] == "PASS"
    refused = made.command("view", "0042")
    assert (refused.code, "[run-unknown]" in refused.err) == (4, True)


def test_scripts_get_the_address_as_json(project: MakeProject) -> None:
    made = small(project)
    with viewing(made, "--json") as (process, line):
        told = json.loads(line)
        assert told["pid"] == process.pid
        assert urlsplit(told["url"]).port == told["port"]
        assert get(told["url"], "runs")["total"] == 0


def test_a_port_that_is_taken_is_told_with_the_next_step(project: MakeProject) -> None:
    made = small(project)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = made.command("view", "--port", str(taken.getsockname()[1]))
    assert refused.code == 4
    assert "[port-taken]" in refused.err
    assert "Traceback" not in refused.err


def test_a_folder_without_a_project_is_told_where_it_looked(tmp_path: Path) -> None:
    done = subprocess.run([HOLDFAST, "view"], cwd=tmp_path, capture_output=True, timeout=60)
    assert done.returncode == 4
    assert str(tmp_path / ".holdfast" / "runs") in done.stderr.decode()
    assert b"holdfast demo" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_runs_of_another_folder_are_opened_by_their_path(project: MakeProject, tmp_path: Path) -> None:
    made = small(project)
    made.run()
    (tmp_path / "kept").mkdir()
    (made.folder / ".holdfast").rename(tmp_path / "kept" / "artifact")
    with viewing(made, str(tmp_path / "kept" / "artifact" / "runs" / "0001")) as (_, url):
        assert get(url, "runs/0001")["verdict"] == "PASS"
    (tmp_path / "kept" / "artifact" / "runs" / "0001").rename(tmp_path / "kept" / "mine")
    refused = made.command("view", str(tmp_path / "kept" / "mine"))
    assert (refused.code, "[run-unusable]" in refused.err) == (4, True)


def test_no_browser_sees_the_address_in_its_arguments(project: MakeProject) -> None:
    made = small(project)
    made.run()
    browser = made.folder / "browser.sh"
    browser.write_text(f'#!/bin/sh\necho "$@" > {made.folder}/given\ncat "${{1#file://}}" > {made.folder}/page\n')
    browser.chmod(0o755)
    leader, follower = pty.openpty()
    env = {**os.environ, "BROWSER": str(browser)}
    process = subprocess.Popen(
        [HOLDFAST, "view"],
        cwd=made.folder,
        env=env,
        stdout=follower,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=heeds_interrupts,
    )
    try:
        url = os.read(leader, 1000).decode().strip()
        wait_until(lambda: made.read("page"))
        token = urlsplit(url).path.strip("/")
        assert len(token) >= 32
        assert token not in made.read("given")
        assert url in made.read("page")
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        os.close(leader)
        os.close(follower)
    assert not list((made.folder / ".holdfast").glob("view-*"))


def test_a_run_is_seen_while_it_goes_and_is_called_killed_when_it_was(project: MakeProject) -> None:
    slow = {"type": "python", "endpoint": "agent:ask"}
    made = project(contract(RULES, [CALM], agent=slow, replicas=40), SLOW)
    with viewing(made) as (_, url):
        run = made.start("contract", "run", "-q")
        try:
            wait_until(lambda: [row["state"] for row in get(url, "runs")["runs"]] == ["running"])
            wait_until(lambda: get(url, "runs/0001/matrix")["cells"] > 0)
            found = get(url, "runs/0001")
            assert (found["verdict"], found["complete"], found["run"]["state"]) == ("", False, "running")
        finally:
            kill_group(run)
        wait_until(lambda: get(url, "runs")["runs"][0]["state"] == "killed")
        assert get(url, "runs/0001")["resume"] == "holdfast contract run --resume 0001"


def test_help_says_what_it_opens(project: MakeProject) -> None:
    shown = small(project).cli("view", "--help")
    assert shown.code == 0
    assert "holdfast view 0007" in shown.out
    assert "on this machine" in shown.out


@pytest.mark.parametrize("port", ["0", "70000", "x"])
def test_a_port_that_is_none_is_refused(project: MakeProject, port: str) -> None:
    assert small(project).cli("view", "--port", port).code == 4
