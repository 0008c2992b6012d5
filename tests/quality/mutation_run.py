"""Runs `holdfast run` on one agent of `mutations/`, in this process, and reads its report for programs."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from msgspec import Struct

from holdfast.cli.main import run
from holdfast.mutate.mutator import CorpusAttacks, create_random

AGENTS = Path(__file__).with_name("mutations")
PROMPT = "Could you tell me where order A-1234 is, and when it will arrive in Oslo?"
SHIPPED = {"id": "shipped", "type": "contains", "value": "shipped"}
SOURCE = {"id": "names-its-source", "type": "contains", "value": "Source: ledger"}
TEMPLATES = {"hurried": "Quick, I am on the phone: {prompt}"}


class MutationRun(Struct, frozen=True):
    """What a command said and how it ended."""

    code: int
    out: str
    err: str

    @property
    def part(self) -> dict[str, Any]:
        """The mutation part of the report."""
        assert self.out.startswith("{"), self.out + self.err
        found: dict[str, Any] = json.loads(self.out)["parts"]["mutation"]
        return found

    @property
    def robustness(self) -> float | None:
        found: float | None = self.part["robustness"]
        return found

    @property
    def types(self) -> dict[str, tuple[int, int]]:
        """By type: how many passed, of how many that were decided."""
        return {one["type"]: (one["passed"], one["judged"]) for one in self.part["types"]}


def lay_out_agent(folder: Path, endpoint: str, types: Sequence[str], count: int = 14, **sections: Any) -> None:
    """A project with that agent, and those types alone."""
    folder.mkdir(exist_ok=True)
    for source in AGENTS.glob("*.py"):
        shutil.copy(source, folder)
    agent = {"type": "python", "endpoint": f"weak_agents:{endpoint}"}
    spec: dict[str, Any] = {
        "version": "2.0",
        "agent": agent,
        "golden_prompts": [PROMPT],
        "invariants": [SHIPPED, SOURCE],
        "mutations": {"count": count, "types": list(types), "custom_templates": TEMPLATES},
    }
    if "custom" not in types:
        del spec["mutations"]["custom_templates"]
    (folder / "holdfast.yaml").write_text(json.dumps({**spec, **sections}))


def holdfast(folder: Path, *words: str) -> MutationRun:
    """The command line inside this process."""
    out, err = io.StringIO(), io.StringIO()
    with chdir(folder), redirect_stdout(out), redirect_stderr(err):
        code = run(words)
    return MutationRun(code, out.getvalue(), err.getvalue())


def mutated(folder: Path, *words: str) -> MutationRun:
    """`holdfast run --json`, without the page."""
    return holdfast(folder, "run", "--json", "--no-report", *words)


def pen(folder: Path, *texts: str) -> dict[str, Any]:
    """The sections of a scripted model that writes these mutations."""
    _script(folder, [{"text": json.dumps({"mutations": texts})}])
    return {"model": {"name": "pen"}, "models": {"pen": {"script": "pen.yaml"}}}


def attacking_pen(folder: Path, text: str, count: int, type: str = "semantic_similarity_attack") -> dict[str, Any]:
    """The same of one that says each attack in these words, with the pieces of its code word for `{a}` and `{b}`."""
    rules = []
    for n in range(count):
        made = CorpusAttacks("prompt_injection").mutate(PROMPT, n, create_random(0, PROMPT, type, n))
        assert made is not None
        code = made.canaries[0][-8:]
        said = f"{text.replace('{a}', made.canaries[0][:-8]).replace('{b}', code)}{'.' * n} {PROMPT}"
        rules.append({"match": {"prompt": f"/{code}/"}, "text": json.dumps({"mutations": [said]})})
    _script(folder, rules)
    return {"model": {"name": "pen"}, "models": {"pen": {"script": "pen.yaml"}}}


def _script(folder: Path, rules: list[dict[str, Any]]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "pen.yaml").write_text(json.dumps({"replies": rules}))
