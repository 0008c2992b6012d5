"""A project with runs to look at, the viewer over it, and a browser: what its tests and its pictures share."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]

AGENT = '''"""A support agent for invoices, in three versions."""

import time

INVOICES = {"A17": "$61.45", "B02": "$1,204.00"}


def invoice_api(number: str) -> dict[str, str]:
    """The amount of an invoice."""
    return {"number": number, "amount": INVOICES[number], "currency": "USD"}


def customer_api(number: str) -> dict[str, str]:
    """Whose invoice it is."""
    return {"number": number, "name": "Ada Lovelace", "since": "2019"}


def model(question: str, facts: dict[str, str]) -> dict[str, str]:
    """A scripted model."""
    text = f"Invoice {facts['number']} of {facts['name']} amounts to {facts['amount']}, according to invoice_api."
    return {"text": text, "finish_reason": "stop"}


def number_in(question: str) -> str:
    return "B02" if "B02" in question else "A17"


def careful(question: str) -> str:
    """Says what failed, and never hands on half an answer."""
    number = number_in(question)
    try:
        facts = {**customer_api(number), **invoice_api(number)}
        reply = model(question, facts)
        if reply["finish_reason"] == "stop" and reply["text"]:
            return reply["text"]
        return f"Invoice {number}: {facts['amount']}. Source: invoice_api."
    except Exception as failure:
        return f"I cannot tell what invoice {number} amounts to: the source failed ({failure})."


def hasty(question: str) -> str:
    """Says what failed, but hands on whatever the model gives."""
    number = number_in(question)
    try:
        facts = {**customer_api(number), **invoice_api(number)}
    except Exception as failure:
        return f"I cannot tell what invoice {number} amounts to: the source failed ({failure})."
    try:
        return model(question, facts)["text"]
    except Exception:
        return "Please try again later."


def careless(question: str) -> str:
    """Fills a gap with an amount that it remembers."""
    number = number_in(question)
    try:
        facts = {**customer_api(number), **invoice_api(number)}
    except Exception:
        facts = {"number": number, "name": "the customer", "amount": "$59.00"}
    try:
        return model(question, facts)["text"]
    except Exception:
        return f"Invoice {number} amounts to $59.00."


def unhurried(question: str) -> str:
    time.sleep(0.15)
    return careless(question)
'''

SPEC = """agent:
  type: python
  endpoint: invoices:{version}
  tools: [invoices:invoice_api, invoices:customer_api]
  llm: invoices:model

golden_prompts:
  - "How much is invoice A17?"
  - "What do I owe on invoice B02?"

contract:
  name: "Invoice Desk"
  description: "What customers are told about their invoices, whatever breaks behind the desk"
  invariants:
    - id: names-its-source
      type: regex
      pattern: "(?i)(source|according to)"
      severity: critical
      description: "Says where an amount comes from"
    - id: no-amount-without-the-invoice
      type: regex
      pattern: '\\$[\\d,]+\\.\\d{{2}}'
      negate: true
      severity: critical
      when: tool_faults_active
      description: "Tells no amount when it could not be looked up"
    - id: answers-at-all
      type: completes
      severity: high
      description: "No crash, no silence"
    - id: keeps-to-the-invoice
      type: contains
      value: voice
      severity: medium
      description: "Speaks of the invoice that was asked for"
  chaos_matrix:
    - name: no-chaos
    - name: invoice-service-unavailable-503
      tool_faults: [{{tool: invoice_api, mode: error, error_code: 503}}]
    - name: invoice-service-unavailable-429
      tool_faults: [{{tool: invoice_api, mode: rate_limit}}]
    - name: customer-service-token-expired
      tool_faults: [{{tool: customer_api, mode: auth_expired}}]
    - name: model-reply-truncated
      llm_faults: [{{mode: truncated_response, max_tokens: 8}}]
    - name: model-reply-empty
      llm_faults: [{{mode: empty}}]
    - name: model-overloaded
      llm_faults: [{{mode: overloaded}}]
"""


def invoice_desk(folder: Path, version: str = "careless") -> Path:
    """A folder with the agent and its spec."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "invoices.py").write_text(AGENT)
    (folder / "holdfast.yaml").write_text(SPEC.format(version=version))
    return folder


def holdfast(folder: Path, *words: str) -> int:
    """The command line in this process, and in a thread of its own: the browser's has an event loop already."""
    from holdfast.cli.main import run

    said = StringIO()
    with chdir(folder), redirect_stdout(said), redirect_stderr(said), ThreadPoolExecutor(1) as thread:
        code = thread.submit(run, words).result()
    assert code in (0, 1), said.getvalue()
    return code


def contract_run(folder: Path, *words: str) -> int:
    return holdfast(folder, "contract", "run", "--no-report", "-q", *words)


def many_runs(folder: Path, count: int, after: int = 0) -> None:
    """Runs that the history knows and that hold nothing else: enough for a list. `after` so many that are there."""
    from holdfast.folders import HISTORY
    from holdfast.store.history import HistoryRow, build_stamp, write_row
    from holdfast.store.past_run import PastRun

    runs = folder / ".holdfast" / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    dice, score, began = Random(7), 70.0, datetime(2026, 3, 1, 8, tzinfo=UTC)
    for number in range(after + 1, after + count + 1):
        path = runs / f"{number:04d}"
        path.mkdir()
        (path / "run.json").touch()
        score = min(100.0, max(20.0, score + dice.uniform(-6, 6.4)))
        passed = score > 72
        row = PastRun(
            id=path.name,
            part="contract",
            started=(began + timedelta(minutes=25 * number)).isoformat(),
            duration_s=dice.uniform(4, 90),
            spec=f"/project/{('desk', 'refunds', 'mail')[number % 3]}.yaml",
            commit=f"{dice.getrandbits(160):040x}",
            branch="main",
            ended=True,
            complete=True,
            whole=True,
            score=round(score, 2),
            low=max(0.0, score - 12),
            high=min(100.0, score + 9),
            passed=passed,
            exit_code=0 if passed else 1,
            trials=40,
            judged=40,
            total=40,
            counts={"pass": int(score * 0.4), "fail": 40 - int(score * 0.4)},
            calls=120,
            cost_usd=dice.uniform(0.01, 0.4),
        )
        write_row(runs.parent / HISTORY, HistoryRow(build_stamp(path), row), ())


def large_spec(rules: int, scenarios: int) -> str:
    """A matrix of that size; every 17th rule fails everywhere."""
    lines = [
        'agent: {type: python, endpoint: "fast:agent", isolation: inline}',
        'golden_prompts: ["What was revenue?"]',
        "contract:",
        "  name: large",
        "  invariants:",
    ]
    for rule in range(rules):
        value = "absent" if rule % 17 == 3 else "source"
        name = f"the-answer-names-its-source-{rule:04d}"
        lines.append(f"    - {{id: {name}, type: contains, value: {value}, description: Rule {rule} of many}}")
    lines.append("  chaos_matrix:")
    lines += [f"    - {{name: payment-provider-outage-region-{n:03d}-primary-database}}" for n in range(scenarios)]
    return "\n".join(lines) + "\n"


def large_run(folder: Path, rules: int, scenarios: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "fast.py").write_text('def agent(prompt):\n    return "source: " + prompt\n')
    (folder / "holdfast.yaml").write_text(large_spec(rules, scenarios))
    contract_run(folder)


@contextmanager
def viewing(folder: Path) -> Iterator[str]:
    """The address of a viewer over the runs of that folder, served by a thread."""
    from holdfast.web.viewer import Viewer

    started, done, found = threading.Event(), threading.Event(), list[Any]()

    async def serve() -> None:
        viewer = Viewer(folder / ".holdfast" / "runs", os.environ)
        await viewer.open()
        found.extend([viewer.url, asyncio.get_running_loop(), over := asyncio.Event()])
        started.set()
        await over.wait()
        await viewer.close()

    def work() -> None:
        try:
            asyncio.run(serve())
        finally:
            started.set()
            done.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    started.wait(20)
    url, loop, over = found
    try:
        yield url
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(10)


def watched_page(browser: Any, troubles: list[str], home: str, **settings: Any) -> Any:
    """A page whose errors, dialogs and requests to any place but `home` become troubles."""
    page = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings}).new_page()
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("dialog", lambda dialog: troubles.append(dialog.message))
    page.on("console", lambda said: troubles.append(said.text) if said.type in ("error", "warning") else None)
    page.on("request", lambda asked: troubles.append(asked.url) if not asked.url.startswith(home) else None)
    return page
