"""A code agent of smolagents, started as a program: faults of tools meet what its code printed."""

from __future__ import annotations

from pathlib import Path

from framework_kit import Folder
from framework_weather import tool

FIRST = "Thought: I look it up.\n<code>\nprint(search(query='ACME'))\n</code>"
LAST = "Thought: that is it.\n<code>\nfinal_answer('''{{ result }}''')\n</code>"
MODEL = {"replies": [{"match": {"tool": "search"}, "text": LAST}, {"text": FIRST}]}


def test_a_fault_of_a_tool_meets_what_the_code_printed(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "project", "with_smolagents_code.py", MODEL)
    run = folder.run(folder.command(), [tool("down", "error")], "--no-preflight")
    down = run.trials["down"]
    assert (down.said, dict(down.outcomes)["right"]) == ("Error: 503 Service Unavailable", "fail")
    assert [(fault["plane"], fault["target"], fault["call"]) for fault in down.met] == [("tool_result", "search", 1)]
