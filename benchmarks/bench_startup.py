"""How long a person waits for the first word."""

from __future__ import annotations

import sys

from measure import HOLDFAST, best, row


def main() -> None:
    print("startup: CPU seconds, best of 5")
    bare = best([sys.executable, "-c", "pass"], 5).cpu_s
    row("python -c pass", f"{bare:.3f}")
    for option in ("--version", "--help"):
        spent = best([*HOLDFAST, option], 5).cpu_s
        row(f"holdfast {option}", f"{spent:.3f}", f"{spent / max(bare, 0.001):.1f} x bare, target 0.12")
