"""An agent that tells what it met: two tools and a model function, each failure spelt out in its answer."""

from __future__ import annotations

from pathlib import Path

from files1 import CALM, RULES, Told, contract_run

AGENT = """
import json


def search(query):
    return "source on " + query


def look(query, limit=3):
    return {"rows": [1, 2, 3, 4, 5, 6], "total": 6, "text": "source " + query}


def model(prompt):
    return "The source says that this is a rather long answer with very many words in it, " + prompt


def tried(call, *args):
    try:
        return call(*args)
    except Exception as failure:
        told = {name: getattr(failure, name, None) for name in ("status_code", "retry_after", "body")}
        return f"{type(failure).__name__}|{failure}|{json.dumps(told, default=str)}"


def answer(prompt):
    calls = int(prompt) if prompt.isdigit() else 1
    lines = [f"asked {prompt}"]
    for n in range(calls):
        lines.append(f"search {n + 1}: {tried(search, prompt)}")
    lines.append(f"look: {tried(look, prompt)}")
    lines.append(f"model: {tried(model, prompt)}")
    return "\\n".join(str(line) for line in lines)
"""
SECTION = """
agent: {type: python, endpoint: "bot:answer", tools: ["bot:search", "bot:look"], llm: "bot:model"}
golden_prompts: [%s]
"""


def run(folder: Path, scenario: str, prompt: str = "total", *args: str) -> Told:
    """A run of that one scenario."""
    spec = SECTION % prompt + RULES + CALM + f"  - {{name: x, {scenario}}}\n"
    return contract_run(folder, spec, AGENT, "--scenario", "x", *args)
