"""The line of a program's output that tells why it ended."""

from __future__ import annotations

import pytest

from holdfast.processes.pipes import Tail

BOX = """
 Usage: sgpt [OPTIONS] [prompt]
╭─ Error ──────────────────────────────────────╮
│ No such option: --no-interaction (Possible   │
│ options: --install-integration)              │
╰──────────────────────────────────────────────╯
"""
TRACEBACK = """
╭────── Traceback (most recent call last) ──────╮
│ /bot.py:1 in <module>                         │
│ ❱ 1 raise ValueError("Error of ours")         │
╰───────────────────────────────────────────────╯
ValueError: Error of ours
"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (BOX, "Error: No such option: --no-interaction (Possible options: --install-integration)"),
        (TRACEBACK, "ValueError: Error of ours"),
        (TRACEBACK + "bye\n", "ValueError: Error of ours"),
        (BOX + "bye\n", "Error: No such option: --no-interaction (Possible options: --install-integration)"),
        ("one\nfatal: no\nlast\n", "fatal: no"),
        ("╭─ Error\n│ that is never closed", "Error: that is never closed"),
        ("plain\n", "plain"),
        ("\x1b[91mError\x1b[0m: \x1b]8;;http://x\x07no disk\x1b]8;;\x07\n\x1b[2K", "Error: no disk"),
        ("", ""),
    ],
)
def test_the_line_that_tells_why(text: str, told: str) -> None:
    tail = Tail()
    tail.add(text.encode())
    assert tail.error_line == told
