"""Limits on what a Python agent says and prints: where they act, a note says so."""

from __future__ import annotations

from pathlib import Path

from agent_python_site import ask
from golden_words import Golden

TALKS = """
import os
def ask(p):
    for n in range(3):
        yield "x" * 600_000
    if p == "dies":
        os._exit(3)
    for n in range(70):
        yield "y" * 1_000_000
"""


def test_what_was_said_before_a_crash_is_marked_where_it_was_cut(tmp_path: Path, golden: Golden) -> None:
    seen = ask(tmp_path, TALKS, "dies")
    (turn,) = seen.turns
    assert (turn.ending, len(turn.text or ""), turn.cut) == ("crashed", 1_000_000, True)
    golden(seen.notes)


def test_an_answer_that_is_not_read_to_its_end_says_so(tmp_path: Path, golden: Golden) -> None:
    seen = ask(tmp_path, TALKS, "goes on")
    assert seen.turns[0].cut
    golden(seen.notes)


def test_output_of_which_only_the_end_is_kept_says_so(tmp_path: Path, golden: Golden) -> None:
    seen = ask(tmp_path, "def ask(p):\n    print('x' * 99_999)\n    return p")
    golden(seen.notes)
