"""Small agents in the standard library alone, scripted models, and what the tests of launched agents look for."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cli import CALM, Project, Result, rundir
from files1 import text_of

import processes_kit

PYTHON = f"{sys.executable} -S"
"""An interpreter that starts in 15 ms."""
MARK = "ACCEPTANCE_MARK"
"""In the environment of a command and of all that it starts, by which they are found."""

TALK = '''
"""How these agents speak: one request, on a connection of its own."""
import http.client, json, os
from urllib.parse import urlsplit

def request(method, url, body=None, headers={}, proxy=False):
    """(status, text); straight to the address, or by way of the proxy that the environment names."""
    parts = urlsplit(os.environ["HTTP_PROXY"] if proxy else url)
    line = http.client.HTTPConnection(parts.hostname, parts.port, timeout=20)
    given = dict(headers)
    if proxy and parts.password:
        import base64
        word = f"{parts.username}:{parts.password}".encode()
        given["Proxy-Authorization"] = "Basic " + base64.b64encode(word).decode()
    target = url if proxy else parts.path + ("?" + parts.query if parts.query else "")
    line.request(method, target, body, given)
    reply = line.getresponse()
    try:
        return reply.status, reply.read().decode()
    finally:
        line.close()

def chat(messages, tools=(), model="gpt-4o", key=None):
    """(status, the decoded body) of one call of the model."""
    body = {"model": model, "messages": messages}
    if tools:
        body["tools"] = [{"type": "function", "function": {"name": t, "parameters": {}}} for t in tools]
    key = key or os.environ.get("OPENAI_API_KEY", "")
    headers = {"content-type": "application/json", "authorization": "Bearer " + key}
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    status, text = request("POST", url, json.dumps(body), headers)
    return status, json.loads(text)

def ask(prompt, **more):
    """The model's words; what the API said, if it failed."""
    status, body = chat([{"role": "user", "content": prompt}], **more)
    return body["choices"][0]["message"]["content"] if status == 200 else f"model failed: {status}"

def work(prompt, tools):
    """The model's words at the end of a conversation with tools: name to function."""
    messages = [{"role": "user", "content": prompt}]
    for _ in range(8):
        status, body = chat(messages, list(tools))
        if status != 200:
            return f"model failed: {status}"
        said = body["choices"][0]["message"]
        if not said.get("tool_calls"):
            return said["content"]
        messages.append(said)
        for call in said["tool_calls"]:
            name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": tools[name](**arguments)})
    return "gave up"
'''

ASKS = """
import sys, talk
print(talk.ask(sys.stdin.read()))
"""
"""A command that asks its model once."""

TRADES = """
import json, sys, talk
def market_data_api(symbol):
    open("ran.log", "a").write(symbol + "\\n")
    return json.dumps({"symbol": symbol, "price": 12.5})
print(talk.work(sys.stdin.read(), {"market_data_api": market_data_api}))
"""
"""A command with a tool of its own, which its model calls."""

SERVES = """
import http.server, json, os, sys, talk

asked = 0

def answer(prompt):
    return talk.ask(prompt)

class Agent(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        global asked
        given = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/reset":
            asked = 0
            return self.reply("reset")
        asked += 1
        self.reply(answer(json.loads(given)["input"]))
    def do_GET(self):
        self.reply("up")
    def reply(self, text):
        body = json.dumps({"output": text}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass

def main():
    open("started.log", "a").write(f"{os.getpid()} {os.environ['PORT']}\\n")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Agent)
    server.daemon_threads = True
    print("listening", flush=True)
    server.serve_forever()

if __name__ == "__main__":
    main()
"""
"""An HTTP agent that asks its model once; another agent imports it as `serves` and says what it answers."""

ECHO = {"replies": [{"text": "you said {{ prompt }}"}]}
MARKET = {
    "replies": [
        {"match": {"tool": "market_data_api", "result": "*price*"}, "text": "the price is {{ result.price }}"},
        {"match": {"tool": "market_data_api"}, "text": "data unavailable"},
        {"tool_calls": [{"name": "market_data_api", "arguments": {"symbol": "ACME"}}]},
    ]
}
"""Calls the tool, and tells what came of it."""
SCRIPTED = {"*": {"script": "model.yaml"}}


def command(source: str = "agent.py", **more: Any) -> dict[str, Any]:
    """The section of an agent that is run for each trial."""
    return {"type": "command", "command": f"{PYTHON} {source}", **more}


def server(**more: Any) -> dict[str, Any]:
    """The section of an HTTP agent that Holdfast starts."""
    return {"endpoint": "http://127.0.0.1:{port}/ask", "command": f"exec {PYTHON} agent.py", **more}


def equip(made: Project, script: Mapping[str, Any] | None = None, **files: str) -> Project:
    """The modules that these agents import, a scripted model, and further files by name without `.py`."""
    for name, source in {"talk": TALK, "serves": SERVES, **files}.items():
        (made.folder / f"{name}.py").write_text(source)
    if script is not None:
        made.write(script, "model.yaml")
    return made


def run(made: Project, *args: str, env: Mapping[str, str] | None = None) -> Result:
    """`holdfast contract run --json` in a process of its own, as a user starts it."""
    return made.command("contract", "run", "--json", "--no-report", *args, env=env)


def quick(made: Project, *args: str, env: Mapping[str, str] | None = None) -> Result:
    """The same inside this process, where the agent is what matters: it saves the start of Python and its imports."""
    return made.run(*args, env=env)


def ledger(made: Project, run: str = "0001") -> list[tuple[Any, ...]]:
    """What was met, in the order of trials: (trial, plane, target, n, mode, effect)."""
    scenarios = {trial["id"]: trial["kind"] for trial in made.stored("trials.jsonl", run)}
    found = []
    for file in sorted(rundir(made, run).glob("observations-*.jsonl")):
        for seen in made.stored(file.name, run):
            if scenarios.get(seen["trial"]) != "contract":
                continue
            for met in seen.get("ledger", ()):
                effect = met.get("effect", "met")
                found.append((seen["trial"], met["plane"], met["target"], met["call"], met["mode"], effect))
    return sorted(found)


def trace(made: Project, trial: Mapping[str, Any], run: str = "0001") -> list[Any]:
    """The calls of a trial, as they are stored."""
    return made.stored(f"traces/{trial['id']}.jsonl", run)


def marked(value: str) -> list[int]:
    """The live processes whose environment holds this mark."""
    return processes_kit.marked(MARK, value)


def none_left(value: str, within_s: float = 6.0) -> bool:
    """Whether no such process is left, now or soon."""
    return processes_kit.gone(MARK, value, within_s)


def holding(folder: Path, word: str) -> list[str]:
    """The files under a folder that hold a word, in their name, in their bytes or packed in a page."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [str(path.relative_to(folder)) for path in files if word in path.name or word in text_of(path)]


__all__ = [
    "ASKS", "CALM", "ECHO", "MARK", "MARKET", "PYTHON", "SCRIPTED", "SERVES", "TALK", "TRADES", "command", "equip",
    "holding", "ledger", "marked", "none_left", "quick", "run", "server", "trace",
]  # fmt: skip
