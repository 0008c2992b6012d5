"""CPU time until the first output, and of the shortest run."""

from __future__ import annotations

import sys

from measure import HOLDFAST, best, limited, project, row

FILES = {
    "fast.py": 'def agent(prompt):\n    return "source: " + prompt\n',
    "holdfast.yaml": """
agent: {type: python, endpoint: "fast:agent", isolation: inline}
golden_prompts: ["What was revenue?"]
contract: {name: bench, invariants: [{id: r, type: contains, value: source, description: x}]}
chaos_matrix: [{name: calm}]
""",
}
TIMES = 10
LIMITS = {"--version": 0.03, "--help": 0.06, "contract run": 0.17}


def main() -> None:
    print(f"startup: CPU seconds, best of {TIMES}")
    bare = best([sys.executable, "-c", "pass"], TIMES).cpu_s
    row("python -c pass", f"{bare:.3f}")
    with project(FILES) as folder:
        for words, most in LIMITS.items():
            spent = best([*HOLDFAST, *words.split()], TIMES, folder).cpu_s
            note = f"{spent / max(bare, 0.001):.1f} x bare"
            limited(f"holdfast {words}", spent, "{:.3f}", most=most, note=note)
