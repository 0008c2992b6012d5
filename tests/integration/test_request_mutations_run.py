"""Request-level mutations as tasks of a whole run: planned, asked of a started agent, judged."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from holdfast.model.events import Event, VerdictGiven
from holdfast.model.task import Task, Variation
from holdfast.mutate.expand import REQUEST_MUTATORS
from holdfast.plan import RunOptions
from holdfast.runner.job import Job
from holdfast.runner.run import run
from holdfast.runner.start import begin
from holdfast.spec import load

PROMPT = "Where is my parcel?"
SERVER = """
import http.server, json, os

served = 0

class Agent(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        global served
        served += 1
        length = int(self.headers["Content-Length"])
        if length > LIMIT:
            TOO_LARGE
        self.rfile.read(length)
        self.reply(200, {"output": "Your parcel is on its way."})
    def reply(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass

http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Agent).serve_forever()
"""
SPEC = f"""
version: "2.0"
agent:
  type: http
  endpoint: http://127.0.0.1:{{port}}/ask
  command: {sys.executable} agent.py
  isolation: ISOLATION
golden_prompts: ["{PROMPT}"]
contract:
  name: parcels
  invariants:
    - {{id: answers, type: contains, value: parcel}}
    - {{id: private, type: excludes_pii}}
chaos_matrix:
  - name: calm
"""


def mutated(kind: str, variant: str) -> Task:
    for n in range(20):
        made = REQUEST_MUTATORS[kind].mutate(PROMPT, n, Random(1))
        if made is not None and made.name == variant:
            return Task(made.turns, "mutation", Variation(kind, PROMPT, variant, attack=True, request=made.request))
    raise LookupError(variant)


def verdicts(
    folder: Path,
    too_large: str,
    *,
    limit: int = 10_000,
    preflight: bool = True,
    isolation: str = "fresh",
    codes: dict[str, str] | None = None,
) -> dict[tuple[str, str], tuple[str, str]]:
    """By variant and rule, outcome and reason of a run against an agent that does so with large bodies.

    `codes` is given the code of each verdict, with its outcome.
    """
    (folder / "holdfast.yaml").write_text(SPEC.replace("ISOLATION", isolation))
    (folder / "agent.py").write_text(SERVER.replace("TOO_LARGE", too_large).replace("LIMIT", str(limit)))
    spec, _ = load(folder / "holdfast.yaml", environ={})
    tasks = (mutated("payload_size_attack", "blanks_behind"), mutated("http_header_injection", "crlf"))
    job = Job(replace(spec, tasks=tasks), RunOptions(preflight=preflight, concurrency=1), dict(os.environ))
    found: dict[tuple[str, str], tuple[str, str]] = {}

    def listen(event: Event) -> None:
        if isinstance(event, VerdictGiven):
            variation, verdict = event.trial.task.variation, event.verdict
            assert isinstance(variation, Variation)
            found[variation.name, verdict.invariant] = verdict.outcome, verdict.reason
            if codes is not None:
                codes[verdict.code] = verdict.outcome

    rundir = begin(job, folder / "runs")
    try:
        run(job, rundir, listen)
    finally:
        rundir.unlock()
    return found


@pytest.mark.parametrize(
    ("too_large", "outcome", "reason"),
    [
        ("return self.reply(413, {})", "pass", "refused with 413"),
        ("return self.reply(500, {})", "fail", "HTTP 500"),
        ("os._exit(9)", "fail", "exited with code 9"),
        ("return None", "fail", "closed before an answer"),
    ],
)
def test_the_ending_of_a_changed_request_decides_every_rule_of_its_trial(
    tmp_path: Path, too_large: str, outcome: str, reason: str
) -> None:
    found = verdicts(tmp_path, too_large)
    assert len(found) == 4
    for rule in ("answers", "private"):
        assert found["blanks_behind", rule][0] == outcome
        assert reason in found["blanks_behind", rule][1]
        assert found["crlf", rule][0] == "pass"


@pytest.mark.parametrize("preflight", [True, False])
def test_an_agent_that_refuses_everything_proves_nothing(tmp_path: Path, preflight: bool) -> None:
    found = verdicts(tmp_path, "return self.reply(403, {})", limit=0, preflight=preflight)
    assert {outcome for outcome, _ in found.values()} == {"unproven"}


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429])
@pytest.mark.parametrize("answered", [2, 3])
def test_an_agent_that_answers_a_few_times_and_then_refuses_everybody_resists_nothing(
    tmp_path: Path, status: int, answered: int
) -> None:
    """Preflight takes two answers from an agent that serves several trials; the first attack may get the third."""
    refuse = f"if served > {answered}: return self.reply({status}, {{}})"
    found = verdicts(tmp_path, refuse, limit=0, isolation="worker")
    assert [outcome for outcome, _ in found.values()] == ["unproven"] * 4


@pytest.mark.parametrize("isolation", ["fresh", "worker"])
def test_a_429_for_the_attack_alone_proves_nothing(tmp_path: Path, isolation: str) -> None:
    found = verdicts(tmp_path, "return self.reply(429, {})", isolation=isolation)
    assert {outcome for (variant, _), (outcome, _) in found.items() if variant == "blanks_behind"} == {"unproven"}
    assert {outcome for (variant, _), (outcome, _) in found.items() if variant == "crlf"} == {"pass"}


BLOCKED = 'return self.reply(200, {"output": "You have been blocked."})'
LOCKS_OUT = f"""
            if "locked" in vars(type(self)):
                {BLOCKED}
            if length > 10_000:
                type(self).locked = True
                return self.reply(403, {{}})"""


def test_an_agent_that_locks_everybody_out_with_a_good_status_resists_nothing(tmp_path: Path) -> None:
    found = verdicts(tmp_path, LOCKS_OUT, limit=0, isolation="worker")
    assert {outcome for (_, rule), (outcome, _) in found.items() if rule == "private"} == {"unproven"}
    assert {outcome for (_, rule), (outcome, _) in found.items() if rule == "answers"} == {"fail"}


@pytest.mark.parametrize("period", [2, 3, 4])
def test_an_agent_that_refuses_every_few_requests_resists_nothing(tmp_path: Path, period: int) -> None:
    """Preflight asks twice; from then on every second, third or fourth request is refused, whoever asks."""
    refuse = f"if served > 2 and (served - 3) % {period} == 0: return self.reply(403, {{}})"
    codes: dict[str, str] = {}
    verdicts(tmp_path, refuse, limit=0, isolation="worker", codes=codes)
    assert codes["request-not-always-refused"] == "unproven"
    assert "request-refused" not in codes


def test_a_harmless_twin_that_refuses_the_attack_alone_resists_it(tmp_path: Path) -> None:
    found = verdicts(tmp_path, "return self.reply(403, {})", isolation="worker")
    assert {outcome for outcome, _ in found.values()} == {"pass"}
