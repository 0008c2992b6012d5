"""Secrets: masked by value in everything that is stored, printed or written; behaviour.md 1 and security.md."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli import CALM, DOWN, Asked, MakeProject, Project, Reply, Serve, contract, forget_end, python, rule, rundir, says

from page_documents import documents

SECRET = 'tok-9f"8\\e7d/ü6'
PLAIN = "sk_live_4242abcd"
ANY = [rule("any", "regex", pattern=".", severity="critical"), rule("no", value="unicorn")]
REPORTS = ("-o", "r.html", "-o", "r.md", "-o", "r.json", "-o", "r.xml")


def written(folder: Path) -> Iterator[tuple[str, str]]:
    """Every file of the project with its text; what a page holds packed is unpacked."""
    for path in folder.rglob("*"):
        if path.is_file():
            text = path.read_bytes().decode("utf-8", "replace")
            yield path.name, text + json.dumps(documents(text), ensure_ascii=False)


def leaks(made: Project, result: Any, secret: str) -> list[str]:
    """Where the secret can be read, as it is or as JSON has it."""
    shapes = {
        secret,
        secret.replace("\\", "\\\\").replace('"', '\\"'),
        secret.encode("ascii", "backslashreplace").decode(),
    }
    places = [("stdout", result.out), ("stderr", result.err)]
    places += [(name, text) for name, text in written(made.folder) if name != "agent.py"]
    return [name for name, text in places if any(shape in text for shape in shapes)]


def echoing(asked: Asked) -> Reply:
    return says(f"your key is {asked.headers['authorization']}")


@pytest.mark.parametrize("value", [PLAIN, "latency_ms", "http_error", "123456"])
def test_3_a_header_secret_is_masked_everywhere_though_the_agent_echoes_it(
    project: MakeProject, serve: Serve, value: str
) -> None:
    status = 500 if value == "http_error" else 200
    server = serve(lambda asked: (status, echoing(asked)[1]))
    section = server.section(headers={"Authorization": "Bearer ${TOKEN}"})
    made = project(contract([rule("no", value="unicorn")], agent=section))
    result = made.show("-v", *REPORTS, env={"TOKEN": value})
    assert result.code == 1
    assert server.requests[0].headers["authorization"] == f"Bearer {value}"
    (told,) = made.stored("observations-0.jsonl")[1:]
    assert told["turns"][0]["text"].endswith("Bearer [masked]")
    assert told["turns"][0]["latency_ms"] > 0
    if value == PLAIN:
        assert leaks(made, result, value) == []


def test_3_an_env_secret_is_masked_everywhere(project: MakeProject) -> None:
    agent = """
import os, sys

def search(query):
    return "found with " + os.environ["API_KEY"]

def ask(prompt):
    key = os.environ["API_KEY"]
    print("debug", key)
    print("debug", key, file=sys.stderr)
    if prompt == "raise":
        raise ValueError("bad key " + key)
    if prompt == "long":
        return "x" * 20_000 + key
    try:
        return search(key)
    except Exception as failure:
        return f"{failure} {key}"
"""
    for secret in (PLAIN, SECRET):
        prompts = ("hello", "raise", "long")
        weather = [CALM, DOWN, {"name": "lie", "tool_faults": [{"tool": "search", "mode": "malformed"}]}]
        spec = contract(ANY, weather, prompts=prompts, agent=python(env={"API_KEY": "${OUR_KEY}"}))
        made = project(spec, agent, name=secret[:3])
        result = made.show("-v", *REPORTS, env={"OUR_KEY": secret})
        assert result.code == 1
        assert "[masked]" in result.out
        assert leaks(made, result, secret) == []


def test_3_an_import_error_that_tells_a_secret_is_masked(project: MakeProject) -> None:
    agent = "import os\nraise ValueError('cannot connect with ' + os.environ['API_KEY'])\n"
    made = project(contract(ANY, agent=python(env={"API_KEY": "${OUR_KEY}"})), agent)
    result = made.show(env={"OUR_KEY": PLAIN})
    assert result.code == 4
    assert "cannot connect with [masked]" in result.err
    assert leaks(made, result, PLAIN) == []
    as_json = made.run(env={"OUR_KEY": PLAIN})
    assert PLAIN not in as_json.out
    assert "[masked]" in as_json.out


def test_3_a_body_that_tells_a_secret_is_masked_when_it_is_shown(project: MakeProject, serve: Serve) -> None:
    server = serve(lambda asked: (200, json.dumps({"words": asked.headers["authorization"]})))
    section = server.section(headers={"Authorization": "${TOKEN}"}, response_path="$.answer")
    made = project(contract(ANY, agent=section))
    result = made.show(env={"TOKEN": PLAIN})
    assert result.code == 4
    assert leaks(made, result, PLAIN) == []


def test_3_verify_masks_too(project: MakeProject, serve: Serve) -> None:
    server = serve(echoing)
    made = project(contract(ANY, agent=server.section(headers={"Authorization": "${TOKEN}"})))
    result = made.cli("verify", env={"TOKEN": PLAIN})
    assert result.code == 0
    assert leaks(made, result, PLAIN) == []
    agent = "import os\nraise ValueError('cannot connect with ' + os.environ['API_KEY'])\n"
    broken = project(contract(ANY, agent=python(env={"API_KEY": "${OUR_KEY}"})), agent, name="broken")
    assert PLAIN not in broken.cli("verify", env={"OUR_KEY": PLAIN}).err


def test_3_a_failing_reset_that_tells_a_secret_is_masked(project: MakeProject) -> None:
    agent = "import os\ndef reset():\n    raise OSError(os.environ['API_KEY'])\n\ndef ask(prompt):\n    return 'x'\n"
    section = {"type": "python", "endpoint": "agent:ask", "env": {"API_KEY": "${OUR_KEY}"}}
    spec = contract(ANY, agent={**section, "reset_function": "agent:reset"}, advanced={"retries": 0})
    made = project(spec, agent)
    for args in ((), ("--no-preflight",)):
        result = made.show("-v", *REPORTS, *args, env={"OUR_KEY": PLAIN})
        assert result.code == 3
        assert leaks(made, result, PLAIN) == []


def test_3_a_rule_sees_the_secret_that_the_record_hides(project: MakeProject) -> None:
    agent = "import os\ndef ask(prompt):\n    return 'key ' + os.environ['API_KEY']\n"
    section = {"type": "python", "endpoint": "agent:ask", "env": {"API_KEY": "${OUR_KEY}"}}
    rules = [rule("no-leak", "regex", pattern="sk_live_", negate=True)]
    made = project(contract(rules, agent=section), agent)
    result = made.run(env={"OUR_KEY": PLAIN})
    assert (result.code, result.cell["outcome"]) == (1, "fail")
    again = made.cli("judge", "1", "--json", env={"OUR_KEY": PLAIN})
    assert again.cell["outcome"] == "unproven"
    assert "masked" in again.cell["reason"]


def test_3_an_observation_that_was_masked_is_not_passed_when_it_is_judged_on_resume(project: MakeProject) -> None:
    agent = "import os\ndef ask(prompt):\n    return 'key ' + os.environ['API_KEY']\n"
    section = {"type": "python", "endpoint": "agent:ask", "env": {"API_KEY": "${OUR_KEY}"}}
    made = project(contract([rule("no-leak", "regex", pattern="sk_live_", negate=True)], agent=section), agent)
    made.run(env={"OUR_KEY": PLAIN})
    (made.folder / ".holdfast/runs/0001/verdicts-1.jsonl").write_text("")
    forget_end(rundir(made))
    resumed = made.run("--resume", "1", env={"OUR_KEY": PLAIN})
    assert resumed.cell["outcome"] == "unproven"


KEY = "sk-abcdefghij0123456789"


@pytest.mark.parametrize("place", [{"env": {"TOKEN": KEY}}, {"env": {"URL": f"http://u:{KEY}@127.0.0.1"}}])
def test_a_literal_key_is_not_in_the_run(project: MakeProject, place: dict[str, Any]) -> None:
    spec = contract(ANY, agent=python(**place))
    made = project(spec)
    made.show(*REPORTS)
    kept = made.folder / ".holdfast" / "runs"
    assert [name for name, text in written(kept) if KEY in text] == []
    assert "masked-" in (kept / "0001/spec.yaml").read_text()
    assert made.cli("report", "1", "--json").json["parts"] == json.loads(made.read("r.json"))["parts"]
    assert made.cli("judge", "1").code == 1
    (made.folder / "holdfast.yaml").unlink()
    assert made.cli("report", "1", "--json").json["parts"] == json.loads(made.read("r.json"))["parts"]
    gone = made.cli("contract", "run", "--resume", "1")
    assert (gone.code, "lacks its secrets" in gone.err) == (4, True)
    made.write(spec)
    assert made.cli("contract", "run", "--resume", "1").code == 1
