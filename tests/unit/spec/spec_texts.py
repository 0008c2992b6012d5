"""Texts that many spec tests start from, and a file to write them to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from holdfast.model.spec import Problem, Spec
from holdfast.spec import CheckResult, LoadOptions, check
from holdfast.spec.explain import explain

HTTP = """
agent: {endpoint: "http://localhost:8000/ask", simulate: answer}
golden_prompts: ["What is the capital of France?"]
"""
RULES = """
contract:
  name: C
  invariants:
    - {id: cites, type: contains, value: Paris}
"""
MATRIX = """
chaos_matrix:
  - name: no-chaos
"""


class File:
    """A spec file in a folder of its own, and what reading it gives."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def beside(self, name: str, text: str = "") -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def check(self, text: str, environ: Mapping[str, str] | None = None, **overrides: object) -> CheckResult:
        path = self.folder / "spec.yaml"
        path.write_text(text, "utf-8")
        return check(path, environ=environ or {}, options=LoadOptions(**overrides))  # type: ignore[arg-type]

    def spec(self, text: str, environ: Mapping[str, str] | None = None, **overrides: object) -> Spec:
        """The Spec of a text that must load."""
        checked = self.check(text, environ, **overrides)
        assert checked.spec is not None, explain("spec.yaml", checked.source, checked.problems)
        return checked.spec

    def errors(self, text: str, **overrides: object) -> list[Problem]:
        return [p for p in self.check(text, **overrides).problems if p.severity == "error"]

    def error(self, text: str, **overrides: object) -> Problem:
        """The one error of a text."""
        found = self.errors(text, **overrides)
        assert len(found) == 1, found
        return found[0]

    def warnings(self, text: str, code: str, **overrides: object) -> list[Problem]:
        """The warnings of one kind; the text must load."""
        checked = self.check(text, **overrides)
        assert checked.spec is not None, explain("spec.yaml", checked.source, checked.problems)
        return [p for p in checked.problems if p.code == code]
