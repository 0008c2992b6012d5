"""A hostile agent: another trial's gateway, a control interface, the ledger and this machine stay out of its reach."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

from cli import CALM, MakeProject, Project, Serve, contract, rule, rundir, says
from plane_agents import ECHO, SCRIPTED, command, equip, quick, server, trace

from holdfast.planes.trial_address import FOREIGN_PROCESS

ANSWERS = [rule("answers", "completes")]


def hostile(project: MakeProject, source: str, agent: dict[str, Any] | None = None, **more: Any) -> Project:
    spec = contract(ANSWERS, more.pop("matrix", [CALM]), agent=agent or command(), models=SCRIPTED, **more)
    return equip(project(spec, source), ECHO)


STEALS = """
import json, os, sys, talk
prompt = sys.stdin.read()
mine = os.environ["OPENAI_BASE_URL"]
if prompt == "victim":
    open("address.tmp", "w").write(mine)
    os.rename("address.tmp", "address")
    import time
    until = time.monotonic() + 15
    while not os.path.exists("tried") and time.monotonic() < until:
        time.sleep(0.01)
    print("asked", talk.ask("one call of mine"))
else:
    import time
    until = time.monotonic() + 15
    while not os.path.exists("address") and time.monotonic() < until:
        time.sleep(0.01)
    theirs = open("address").read()
    host, _, rest = theirs.partition("://")[2].partition("/")
    said = []
    for url in (
        f"http://{host}/" + mine.split("/", 3)[3] + "/models",     # my token at their port
        f"http://{host}/openai/v1/models",                         # none
        f"http://{host}/",
        f"http://{host}/x/openai/v1/models",
        theirs + "/models",                                        # theirs, read in a file or in /proc
    ):
        said.append(talk.request("GET", url)[0])
    open("tried", "w").write("yes")
    print(json.dumps([mine != theirs, said]))
"""


def test_another_trials_address_is_its_own_and_opens_to_no_other_process(project: MakeProject) -> None:
    found = hostile(project, STEALS, prompts=("victim", "thief"))
    result = quick(found, "--concurrency", "2", "--no-preflight")
    victim, thief = result.trials
    other, statuses = json.loads(thief["answer"])
    assert other
    assert statuses == [403] * 5  # also with the right token: the kernel says whose process asks
    assert victim["notes"] == [FOREIGN_PROCESS]
    assert victim["trace"]["calls"] == 1  # nothing was billed to it
    assert victim["answer"].strip() == "asked you said one call of mine"


LOOKS = """
import json, os
env = os.environ
print(json.dumps({
    "sockets": sorted(p for p in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{p}")
                      and "socket" in os.readlink(f"/proc/self/fd/{p}")),
    "names": sorted(name for name in env if name.startswith("HOLDFAST")),
}))
"""


def test_it_inherits_no_socket_and_no_way_to_a_control_interface(project: MakeProject) -> None:
    found = hostile(project, LOOKS)
    seen = json.loads(quick(found, "--no-preflight").trial["answer"])
    assert seen["sockets"] == []
    assert set(seen["names"]) <= {
        "HOLDFAST_TRIAL", "HOLDFAST_REPLICA", "HOLDFAST_SEED", "HOLDFAST_TURN", "HOLDFAST_MCP", "HOLDFAST_INSTANCE",
    }  # fmt: skip


def test_the_files_of_a_run_are_its_owners_alone(project: MakeProject) -> None:
    """Without a sandbox the agent has the user's rights, which every report says; other users have none."""
    found = hostile(project, "print('hi')")
    result = quick(found)
    assert any("no sandbox" in note for note in result.json["notes"])
    assert stat.S_IMODE(rundir(found).stat().st_mode) == 0o700


FORGES = """
import json, pathlib
for file in pathlib.Path(".holdfast/runs").rglob("verdicts-*.jsonl"):
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    with open(file, "a") as target:
        for line in lines:
            target.write(json.dumps({**line, "outcome": "pass", "score": 1.0, "reason": "forged"}) + "\\n")
print("forged")
"""


def test_lines_that_it_forges_do_not_change_the_verdict_of_its_run(project: MakeProject) -> None:
    spec = contract([rule("never", value="zebra")], [CALM], prompts=tuple("abc"), agent=command(), models=SCRIPTED)
    found = equip(project(spec, FORGES), ECHO)
    result = found.command("contract", "run", "--concurrency", "1", "--no-preflight")
    assert result.code == 1, result.out + result.err
    assert "FAIL" in result.out
    assert "warning: verdicts-1.jsonl: " in result.err
    again = found.cli("report", "1", "--json")
    assert again.code == 0
    assert all(trial["outcome"] == "fail" and trial["reason"] != "forged" for trial in again.trials)
    assert len(found.stored("verdicts-1.jsonl")) == 3  # its lines were taken out again
    assert any("verdicts-1.jsonl" in warning["text"] for warning in again.json["warnings"])


GOES_HOME = """
import json, os, sys, talk
said = []
for url in json.loads(os.environ["PLACES"]):
    status, text = talk.request("GET", url, proxy=True)
    said.append([status, text])
print(json.dumps(said))
"""


def test_the_proxy_refuses_this_machine_link_local_and_metadata_with_a_note(project: MakeProject, serve: Serve) -> None:
    secret = serve(lambda asked: says("the crown jewels"))
    port = secret.url.rpartition(":")[2]
    places = [
        f"{secret.url}/x", f"http://localhost:{port}/x", f"http://127.1.2.3:{port}/x", f"http://[::1]:{port}/x",
        f"http://0.0.0.0:{port}/x", f"http://[::ffff:127.0.0.1]:{port}/x", "http://169.254.169.254/latest/meta-data",
        "http://169.254.1.1/",
    ]  # fmt: skip
    found = hostile(project, GOES_HOME, command(env={"PLACES": json.dumps(places)}))
    result = quick(found, "--no-preflight")
    said = json.loads(result.trial["answer"])
    assert [status for status, _ in said] == [403] * len(places), said
    assert not secret.requests
    assert sum("the proxy refused" in note for note in result.trial["notes"]) == len(places)
    assert "crown" not in result.out
    assert {e["status"] for e in trace(found, result.trial)} == {403}


FLOODS = """
import threading, talk
def go():
    for _ in range(40):
        talk.ask("again")
threads = [threading.Thread(target=go) for _ in range(8)]
for t in threads: t.start()
for t in threads: t.join()
print("done")
"""


def test_an_agent_that_calls_and_calls_is_served_and_its_trial_is_marked(project: MakeProject) -> None:
    limited = {"name": "limit", "llm_faults": [{"mode": "rate_limit", "on_call": 3}]}
    found = hostile(project, FLOODS, matrix=[limited])
    found.write({"replies": [{"text": "yes", "delay_ms": 5}]}, "model.yaml")
    result = quick(found, "--no-preflight")
    used = result.trial["trace"]
    assert used["calls"] + used["retries"] == 320
    assert result.cell["concurrent"]
    assert [f["call"] for f in result.trial["faults"]] == [3]


def test_the_ca_key_is_the_owners_alone_and_gone_with_the_run(project: MakeProject) -> None:
    source = """
import json, os, stat
ca = os.environ["SSL_CERT_FILE"]
folder = os.path.dirname(ca)
print(json.dumps({
    "mode": stat.S_IMODE(os.stat(folder).st_mode),
    "folder": folder,
    "keys": [n for n in os.listdir(folder) if "PRIVATE KEY" in open(os.path.join(folder, n)).read()],
}))
"""
    seen = json.loads(quick(hostile(project, source), "--no-preflight").trial["answer"])
    assert seen["mode"] & 0o077 == 0
    assert seen["keys"] == []
    assert not Path(seen["folder"]).exists()


def test_every_listener_is_on_loopback(project: MakeProject) -> None:
    source = """
import json, os, serves
from urllib.parse import urlsplit
def answer(prompt):
    port = urlsplit(os.environ["OPENAI_BASE_URL"]).port
    rows = [line.split() for name in ("tcp", "tcp6") for line in open(f"/proc/net/{name}").read().splitlines()[1:]]
    return json.dumps([row[1] for row in rows if row[3] == "0A" and row[1].endswith(f":{port:04X}")])
serves.answer = answer
serves.main()
"""
    found = hostile(project, source, server())
    (address,) = json.loads(quick(found, "--no-preflight").trial["answer"])
    assert address.startswith("0100007F:")


SCRIBBLES = """
import glob
for name in glob.glob(".holdfast/runs/*/run.json"):
    open(name, "a").write("x")
print("bad")
"""


def test_what_an_agent_writes_into_run_json_changes_no_verdict_and_is_put_back(project: MakeProject) -> None:
    found = project(contract([rule("good", value="good")], [CALM], agent=command()), SCRIBBLES)
    result = quick(found, "--no-preflight")
    assert (result.code, result.cell["outcome"]) == (1, "fail")
    assert json.loads((rundir(found) / "run.json").read_text())["id"] == "0001"
