"""Whole `holdfast contract run`s on agents that are written with real frameworks, and what came of each scenario."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from framework_weather import FOUND, MODEL, MODEL_NAME, PROMPT, RULES, Story

AGENTS = Path(__file__).parent / "framework_agents"
HOLDFAST = str(Path(sys.executable).with_name("holdfast"))
LIMIT_S = 400


@dataclass(frozen=True)
class Sighting:
    """One trial as it was stored, with the outcomes of its cells."""

    trial: str
    observation: Any
    trace: list[Any]
    outcomes: Mapping[str, str]

    @property
    def turn(self) -> Any:
        return self.observation["turns"][0]

    @property
    def said(self) -> str:
        """The answer, or how it ended instead; of a server what it says of the exception."""
        text = self.turn.get("text")
        match self.turn.get("ending", "answered"):
            case "answered":
                return str(text)
            case "http_error":
                return str(json.loads(text)["error"])
            case _:
                return str(self.turn["detail"])

    @property
    def firings(self) -> list[Any]:
        return list(self.observation.get("ledger", ()))

    @property
    def met(self) -> list[Any]:
        return [fault for fault in self.firings if fault.get("effect", "met") == "met"]

    @property
    def ledger(self) -> list[tuple[str, str, str, int, str, str]]:
        """Trial, plane, target, call, mode and effect of every firing."""
        return [
            (self.trial, f["plane"], f["target"], f["call"], f["mode"], f.get("effect", "met")) for f in self.firings
        ]

    @property
    def story(self) -> Story:
        met = tuple(fault["call"] for fault in self.met)
        return Story(self.turn.get("ending", "answered"), self.said, " ".join(map(_attempt, self.model_calls)), met)

    @property
    def model_calls(self) -> list[Any]:
        return [event for event in self.trace if event["event_type"] == "llm_call"]

    @property
    def tool_calls(self) -> list[Any]:
        """Calls that were made: not those that the model asked for in vain."""
        return [e for e in self.trace if e["event_type"] == "tool_call" and e.get("phase") != "declared"]

    @property
    def canaries(self) -> list[str]:
        """Words that an attack planted and that the answer repeats."""
        return [word for fault in self.firings for word in fault.get("canaries", ()) if word in self.said]


def _attempt(call: Any) -> str:
    """`200`, `429+1` for the first repetition, `200:connection_lost` where the status is not all."""
    status, trouble, retry = call.get("status"), call.get("error_type", ""), call.get("retry", 0)
    how = str(status or trouble)
    if status == 200 and trouble:
        how += f":{trouble}"
    return f"{how}+{retry}" if retry else how


@dataclass(frozen=True)
class Outcome:
    """A whole run."""

    code: int
    report: Any
    trials: Mapping[str, Sighting]
    """By scenario."""
    outside: list[str]
    """Whom the agent's processes looked for outside this machine."""

    @property
    def ledger(self) -> list[Any]:
        """What is promised to be the same for the same seed."""
        return sorted(entry for seen in self.trials.values() for entry in seen.ledger)

    @property
    def attacks(self) -> tuple[int, int]:
        """Trials that were attacked, and those in which the attack succeeded."""
        found = self.report["parts"]["contract"]["attacks"]
        return found["attacked"], found["succeeded"]


def check_story(seen: Sighting, story: Story) -> None:
    """The agent did what is expected of it; of an exception only its beginning is compared."""
    found = seen.story
    if story.ending != "answered" and found.said.startswith(story.said):
        found = replace(found, said=story.said)
    assert found == story, f"{found}, not {story}"


def check_honest(run: Outcome) -> None:
    """Nothing broke on our side, nobody was called outside, and no cell is green without its fault met."""
    assert [seen.observation["error"] for seen in run.trials.values() if "error" in seen.observation] == []
    assert run.report["counts"]["error"] == 0
    assert run.outside == []
    for name, seen in run.trials.items():
        green = {"right": "4200" in seen.said, "completes": _completes(seen)}
        if name == "calm":
            assert set(seen.outcomes.values()) == {"pass"}
        elif seen.met:
            assert dict(seen.outcomes) == {rule: "pass" if held else "fail" for rule, held in green.items()}, name
        else:
            assert "pass" not in seen.outcomes.values(), name


def _completes(seen: Sighting) -> bool:
    return seen.story.ending == "answered" and bool(seen.said)


def check_calm(seen: Sighting, plane: str) -> None:
    """The trace of a healthy trial: the model, its tool with what it gave, the model again; tokens of both calls."""
    assert seen.firings == []
    assert [event["event_type"] for event in seen.trace][:3] == ["llm_call", "tool_call", "llm_call"]
    assert [(e["tool"], e["plane"], json.loads(e["output"])) for e in seen.tool_calls] == [("search", plane, FOUND)]
    assert json.loads(seen.tool_calls[0]["input"])["query"] == "ACME"
    for call in seen.model_calls:
        assert call["tool"] == call["cost"]["model"] == MODEL_NAME
        assert min(call["cost"]["input_tokens"], call["cost"]["output_tokens"]) > 0


class Folder:
    """A project folder with one of the agents in it."""

    def __init__(self, path: Path, agent: str, model: Mapping[str, Any] = MODEL) -> None:
        self.path = path
        path.mkdir()
        shutil.copy(AGENTS / agent, path / "agent.py")
        shutil.copy(AGENTS / "server.py", path)
        (path / "model.yaml").write_text(yaml.safe_dump(model), encoding="utf-8")
        watch = path / "watch"
        watch.mkdir()
        shutil.copy(AGENTS / "watch.py", watch / "sitecustomize.py")
        self._environ = {"AGENT_MODEL": MODEL_NAME, "PYTHONPATH": str(watch), "WATCHED": str(path / "outside.txt")}

    def python(self, **more: Any) -> dict[str, Any]:
        """The agent as a function, imported once, its client too."""
        return {"type": "python", "endpoint": "agent:answer", **more}

    def command(self, **more: Any) -> dict[str, Any]:
        """The agent as a program: asked on stdin, it answers on stdout."""
        return {"type": "command", "command": f"{sys.executable} agent.py", **more}

    def http(self, **more: Any) -> dict[str, Any]:
        """The agent as a server that is started for us; it streams its model's replies."""
        return {
            "endpoint": "http://127.0.0.1:{port}/ask",
            "command": f"{sys.executable} server.py",
            "reset_endpoint": "/reset",
            **more,
        }

    def run(self, agent: Mapping[str, Any], matrix: Sequence[Mapping[str, Any]], *args: str) -> Outcome:
        """`holdfast contract run` on these scenarios: one trial each, judged by two rules."""
        env = {**self._environ, **agent.get("env", {})}
        spec = {
            "agent": {"timeout": 120_000, **agent, "env": env},
            "models": {"*": {"script": "model.yaml"}},
            "golden_prompts": [PROMPT],
            "contract": {"name": "framework", "isolation": "scenario", "invariants": RULES, "chaos_matrix": [*matrix]},
        }
        (self.path / "holdfast.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
        command = [HOLDFAST, "contract", "run", "--json", "--no-report", *args]
        done = subprocess.run(command, cwd=self.path, env=bare_environment(), capture_output=True, timeout=LIMIT_S)
        assert b'"parts"' in done.stdout, done.stdout.decode() + done.stderr.decode()
        return self._outcome(done.returncode, json.loads(done.stdout))

    def _outcome(self, code: int, report: Any) -> Outcome:
        run = self.path / ".holdfast" / "runs" / report["run_id"]
        scenarios = {t["id"]: t["scenario"] for t in _lines(run / "trials.jsonl") if t["kind"] == "contract"}
        seen = {o["trial"]: o for path in run.glob("observations-*.jsonl") for o in _lines(path)}
        outcomes: dict[str, dict[str, str]] = {}
        for cell in report["parts"]["contract"]["cells"]:
            outcomes.setdefault(cell["scenario"], {})[cell["invariant"]] = cell["outcome"]
        trials = {
            name: Sighting(id, seen[id], sorted(_lines(run / "traces" / f"{id}.jsonl"), key=_ts), outcomes[name])
            for id, name in scenarios.items()
        }
        outside = self.path / "outside.txt"
        return Outcome(code, report, trials, outside.read_text().splitlines() if outside.exists() else [])


def _ts(event: Any) -> float:
    return float(event["ts"])


def bare_environment() -> dict[str, str]:
    """The environment without any key or address of a model's."""
    words = ("OPENAI", "ANTHROPIC", "GOOGLE", "GEMINI", "OLLAMA", "LANGSMITH", "LANGCHAIN", "HF_", "PYTEST")
    return {name: value for name, value in os.environ.items() if not name.startswith(words)}


def _lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []
