"""`holdfast gateway` and `agent.gateway: true`: faults in an agent that already runs, one trial at a time."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import stat
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cli import CALM, HOLDFAST, MakeProject, Project, Result, contract, finish, rule, wait_until
from plane_agents import ECHO, PYTHON, SCRIPTED, equip, ledger, quick, run

FLOOD = {"name": "limit", "llm_faults": [{"mode": "rate_limit"}]}
RULES = [rule("echoes", value="you said")]
HOLDS = "serving at 127.0.0.1:"


@contextmanager
def gateway(made: Project, *args: str, ends: signal.Signals = signal.SIGINT) -> Iterator[dict[str, str]]:
    """A gateway that stands by in the folder, till that signal; the variables that it prints."""
    ignored = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # a program takes over what its starter ignores: nohup
    process = made.start("gateway", "--json", *args)
    signal.signal(signal.SIGHUP, ignored)
    try:
        assert process.stderr is not None
        assert process.stdout is not None
        line = process.stderr.readline().decode()
        assert line.startswith(HOLDS), line
        text = b""
        while not text.endswith(b"}\n"):
            text += process.stdout.readline()
        yield json.loads(text)
    finally:
        process.send_signal(ends)
        assert finish(process, 10).code == 0


@contextmanager
def agent(made: Project, environ: dict[str, str]) -> Iterator[None]:
    """The user's own agent, started with the gateway's variables."""
    env = {**os.environ, **environ, "PORT": str(port_of(made))}
    process = subprocess.Popen([*PYTHON.split(), "agent.py"], cwd=made.folder, env=env, stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: reachable(port_of(made)))
        yield
    finally:
        process.kill()
        process.wait()


def port_of(made: Project) -> int:
    return int(made.read("port"))


def reachable(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def made(project: MakeProject, source: str = "import serves\nserves.main()\n", **more: Any) -> Project:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    section = {"endpoint": f"http://127.0.0.1:{port}/ask", "gateway": True, **more.pop("agent", {})}
    rules = more.pop("rules", RULES)
    found = project(contract(rules, more.pop("matrix", [CALM, FLOOD]), agent=section, models=SCRIPTED, **more), source)
    (found.folder / "port").write_text(str(port))
    return equip(found, ECHO)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_gateway_that_is_told_to_end_leaves_nothing(project: MakeProject, number: signal.Signals) -> None:
    there = made(project)
    with gateway(there, ends=number):
        assert (there.folder / ".holdfast" / "gateway.sock").exists()
    assert not (there.folder / ".holdfast" / "gateway.sock").exists()


def ask_model(environ: dict[str, str]) -> tuple[int, str]:
    """A call of the model from outside, as any program with these variables makes it."""
    url = urlsplit(environ["OPENAI_BASE_URL"])
    body = json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": "me"}]})
    with closing(http.client.HTTPConnection(url.hostname or "", url.port, timeout=10)) as line:
        line.request("POST", f"{url.path}/chat/completions", body, {"content-type": "application/json"})
        reply = line.getresponse()
        return reply.status, reply.read().decode()


def held(result: Result) -> None:
    assert result.outcomes == {("echoes", "calm"): "pass", ("echoes", "limit"): "fail"}, result.out + result.err
    met = [f for t in result.trials for f in t["faults"]]
    assert [(f["plane"], f["mode"], f["effect"]) for f in met] == [("llm", "rate_limit", "met")]


def test_faults_are_driven_into_a_running_agent_in_one_run_after_another(project: MakeProject) -> None:
    found = made(project)
    with gateway(found) as environ, agent(found, environ):
        assert ask_model(environ)[0] == 503  # no run has it
        held(run(found))
        assert ask_model(environ)[0] == 503
        held(run(found))  # the same agent, not started anew
        assert ask_model(environ)[0] == 503
    assert ledger(found, "0001") == ledger(found, "0002") != []


def test_trials_run_one_at_a_time_whatever_is_asked(project: MakeProject) -> None:
    source = """
import serves, talk, time
under_way = most = 0
def answer(prompt):
    global under_way, most
    under_way += 1
    most = max(most, under_way)
    time.sleep(0.02)
    under_way -= 1
    return talk.ask(prompt) + f", {most} at once"
serves.answer = answer
serves.main()
"""
    found = made(project, source, matrix=[CALM], replicas=6)
    with gateway(found) as environ, agent(found, environ):
        result = quick(found, "--concurrency", "8")
    assert {t["answer"] for t in result.trials} == {"you said hello, 1 at once"}


def test_a_request_on_a_connection_older_than_the_trial_gets_503(project: MakeProject) -> None:
    """The agent keeps the line of its first trial open, and tries it in the next."""
    source = """
import http.client, json, os, serves, talk
from urllib.parse import urlsplit
url = urlsplit(os.environ["OPENAI_BASE_URL"])
lines = []
def answer(prompt):
    lines.append(http.client.HTTPConnection(url.hostname, url.port, timeout=10))
    said = []
    for line in lines[-2:]:
        line.auto_open = 1 if line is lines[-1] else 0
        body = json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": prompt}]})
        try:
            line.request("POST", url.path + "/chat/completions", body, {"content-type": "application/json"})
            reply = line.getresponse()
            reply.read()
            said.append(str(reply.status))
        except (OSError, http.client.HTTPException):
            said.append("closed")
    return "you said " + " ".join(said)
serves.answer = answer
serves.main()
"""
    found = made(project, source, matrix=[CALM], replicas=2)
    with gateway(found) as environ, agent(found, environ):
        result = quick(found, "--no-preflight")
    first, second = [t["answer"] for t in result.trials]
    assert first == "you said 200"
    assert second in ("you said 503 200", "you said closed 200")
    assert [t["trace"]["calls"] for t in result.trials] == [1, 1]


def test_a_run_that_was_left_is_taken_up_with_the_same_running_agent(project: MakeProject) -> None:
    found = made(project, matrix=[CALM], prompts=tuple("abcd"))
    with gateway(found) as environ, agent(found, environ):
        process = found.start("contract", "run", "--no-report", "--no-preflight")
        wait_until(lambda: len(found.stored("observations-0.jsonl")) >= 1)
        process.kill()
        process.communicate(timeout=10)
        result = quick(found, "--resume", "1", "--no-preflight")
    assert result.code == 0, result.err
    assert [t["answer"] for t in result.trials] == [f"you said {p}" for p in "abcd"]


def test_a_killed_run_gives_the_address_back(project: MakeProject) -> None:
    found = made(project, "import serves, time\nserves.answer = lambda p: time.sleep(60)\nserves.main()\n")
    with gateway(found) as environ, agent(found, environ):
        process = found.start("contract", "run", "--no-report", "--no-preflight")
        wait_until(lambda: found.stored("trials.jsonl"))
        process.kill()
        process.communicate(timeout=10)
        wait_until(lambda: ask_model(environ)[0] == 503)


def test_two_runs_at_once_the_second_is_told(project: MakeProject) -> None:
    found = made(project, "import serves, time\nserves.answer = lambda p: time.sleep(60)\nserves.main()\n")
    with gateway(found) as environ, agent(found, environ):
        process = found.start("contract", "run", "--no-report", "--no-preflight")
        wait_until(lambda: found.stored("trials.jsonl"))
        second = found.command("contract", "run", "--no-preflight")
        process.send_signal(signal.SIGINT)
        assert finish(process).code == 2
    assert second.code == 4
    assert "[gateway-busy]" in second.err


def test_without_a_gateway_the_run_ends_and_says_how_to_start_one(project: MakeProject) -> None:
    found = made(project)
    result = found.command("contract", "run")
    assert result.code == 4
    assert "[gateway-missing]" in result.err
    assert "holdfast gateway" in result.err
    printed = found.command("gateway", "--print")
    assert (printed.code, printed.out) == (4, "")
    assert "[gateway-missing]" in printed.err


def test_print_gives_a_shell_what_an_agent_is_started_with(project: MakeProject) -> None:
    found = made(project)
    with gateway(found) as environ:
        shown = found.command("gateway", "--print")
        read = subprocess.run(
            ["sh", "-c", f'eval "$({HOLDFAST} gateway --print)"; env'], cwd=found.folder, capture_output=True, text=True
        )
    assert all(line.startswith("export ") for line in shown.out.splitlines())
    known = dict(line.split("=", 1) for line in read.stdout.splitlines() if "=" in line)
    assert {name: known.get(name) for name in environ} == environ
    for name in (
        "OPENAI_BASE_URL", "OPENAI_API_BASE", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "OLLAMA_HOST",
        "OLLAMA_BASE_URL", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
        "AWS_CA_BUNDLE", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "GIT_SSL_CAINFO", "HTTP_PROXY", "HTTPS_PROXY",
    ):  # fmt: skip
        assert environ[name]
    assert environ["OPENAI_BASE_URL"].endswith("/v1")
    assert not environ["ANTHROPIC_BASE_URL"].endswith("/v1")


def test_its_address_is_the_same_after_a_restart_and_its_key_gone_between(project: MakeProject) -> None:
    found = made(project)
    with gateway(found) as first:
        pass
    assert not list((found.folder / ".holdfast").rglob("*.pem"))
    with gateway(found) as second:
        assert first == second


def test_a_port_that_is_taken_is_told_with_the_way_out(project: MakeProject) -> None:
    found = made(project)
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        result = found.command("gateway", "--port", str(port))
    assert result.code == 4
    assert f"port {port} " in result.err
    assert "[port-taken]" in result.err
    assert "holdfast gateway --port N" in result.err


def test_everything_binds_loopback_or_a_socket_of_its_owner_alone(project: MakeProject) -> None:
    found = made(project)
    folder = found.folder / ".holdfast"
    with gateway(found) as environ:
        port = urlsplit(environ["OPENAI_BASE_URL"]).port
        listening = [
            line.split()[1]
            for table in ("/proc/net/tcp", "/proc/net/tcp6")
            for line in Path(table).read_text().splitlines()[1:]
            if line.split()[3] == "0A" and line.split()[1].endswith(f":{port:04X}")
        ]
        assert listening == [f"0100007F:{port:04X}"]
        for name in ("gateway.sock", "gateway.json"):
            assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600, name
        assert stat.S_IMODE((folder / "gateway").stat().st_mode) == 0o700


def test_the_wrong_token_gets_nothing(project: MakeProject) -> None:
    found = made(project)
    with gateway(found) as environ, agent(found, environ):
        url = urlsplit(environ["OPENAI_BASE_URL"])
        wrong = {"OPENAI_BASE_URL": f"http://{url.netloc}/{'x' * 24}/openai/v1"}
        assert ask_model(wrong)[0] in (404, 503)
        result = quick(found, "--scenario", "calm")
    assert result.code == 0


# -- an agent that was started without the variables -------------------------------------------------
CARELESS = "import serves\nserves.answer = lambda prompt: 'you said ' + prompt\nserves.main()\n"
COMMAND = 'eval "$(holdfast gateway --print)"'


def test_an_agent_started_without_the_variables_is_told_what_to_do(project: MakeProject) -> None:
    found = made(project, CARELESS)
    with gateway(found), agent(found, {}):
        result = quick(found)
        assert result.code == 5
        assert "holdfast gateway --print" in result.err
        shown = found.show()
        assert re.search(r"next +[^\n]* gateway", shown.out)
        assert COMMAND in " ".join(shown.out.split())


def test_doctor_says_that_nothing_came_through_the_gateway(project: MakeProject) -> None:
    found = made(project, CARELESS)
    with gateway(found), agent(found, {}):
        result = found.cli("doctor", "--json")
    (told,) = [one for one in json.loads(result.out)["agent"]["findings"] if one["route"] == "agent.gateway"]
    assert (result.code, told["outcome"], told["needed"]) == (3, "not", True)
    assert told["code"] == "gateway-bypassed"
    assert COMMAND in told["fix"]
    assert "OPENAI_BASE_URL" in told["fix"]


# -- one at a time ------------------------------------------------------------------------------------
def test_a_second_gateway_names_the_first_and_leaves_it_alone(project: MakeProject) -> None:
    found = made(project)
    with gateway(found) as environ:
        pid = int((found.folder / ".holdfast" / "gateway.lock").read_text())
        before = found.read(".holdfast/gateway.json")
        for args in ((), ("--port", "1")):
            second = found.command("gateway", *args)
            assert (second.code, "[gateway-running]" in second.err) == (4, True)
            assert f"kill {pid}\n" in second.err
        assert found.read(".holdfast/gateway.json") == before
        assert ask_model(environ)[0] == 503
        assert Path(environ["SSL_CERT_FILE"]).exists()


def test_a_gateway_that_was_killed_keeps_no_other_out_and_is_cleaned_away(project: MakeProject) -> None:
    found = made(project)
    process = found.start("gateway", "--json")
    try:
        assert process.stderr is not None
        assert process.stderr.readline().decode().startswith(HOLDS)
        assert "removed .holdfast" not in found.cli("clean").out
    finally:
        process.kill()
        finish(process, 10)
    cleaned = found.cli("clean").out
    assert "removed .holdfast/gateway\n" in cleaned
    assert not (found.folder / ".holdfast" / "gateway").exists()
    with gateway(found) as environ:
        assert ask_model(environ)[0] == 503


def test_a_place_that_cannot_be_read_is_named(project: MakeProject) -> None:
    found = made(project)
    (found.folder / ".holdfast").mkdir(exist_ok=True)
    (found.folder / ".holdfast" / "gateway.json").write_text("{")
    told = found.command("gateway")
    assert (told.code, "bug" in told.err) == (4, False)
    assert ("gateway.json: " in told.err, "[gateway-missing]" in told.err) == (True, True)


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["--bind", "192.0.2.7"], "--allow-network"),
        (["--bind", "0.0.0.0", "--allow-network"], "not a single IPv4 address"),
        (["--bind", "::1"], "not a single IPv4 address"),
        (["--bind", "example.com"], "not an IP address"),
    ],
)
def test_a_gateway_is_not_open_by_accident(project: MakeProject, args: list[str], why: str) -> None:
    told = project(contract(RULES, [CALM])).cli("gateway", *args)
    assert told.code == 4
    assert why in told.err


def test_a_gateway_stands_at_the_address_that_was_chosen(project: MakeProject) -> None:
    made = project(contract(RULES, [CALM]))
    process = made.start("gateway", "--json", "--bind", "127.0.0.2")
    try:
        assert process.stderr is not None
        line = process.stderr.readline().decode()
        assert line.startswith("serving at 127.0.0.2:"), line
        found = json.loads(made.cli("gateway", "--print", "--json").out)
        at = urlsplit(found["OPENAI_BASE_URL"])
        assert (at.hostname, urlsplit(found["HTTPS_PROXY"]).hostname) == ("127.0.0.2", "127.0.0.2")
        assert "127.0.0.2" in found["NO_PROXY"]
        with closing(http.client.HTTPConnection("127.0.0.2", at.port or 0, timeout=10)) as client:
            client.request("POST", at.path + "/chat/completions")
            assert client.getresponse().status == 503
    finally:
        process.send_signal(signal.SIGINT)
        assert finish(process, 10).code == 0
