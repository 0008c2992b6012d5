"""A conversation of several turns, a line a turn."""

from __future__ import annotations

from golden_words import Golden
from holdfast.model.observation import Turn
from holdfast.report.cases import ROOM, SHOWN, format_conversation


def test_a_line_a_turn_and_the_one_that_decided_as_it_is_told(golden: Golden) -> None:
    turns = (Turn("a\nb", "one"), Turn("c", None, 1.0, "timeout", "no answer within 5 ms"), Turn("d", ""))
    first, *rest = format_conversation(turns, decided=0, answer="ONE")
    assert first[1].endswith("→ ONE")
    assert "\n" not in first[1]
    golden(rest)


def test_long_conversations_and_texts_are_cut_and_the_deciding_turn_stays() -> None:
    turns = [Turn(f"q{n}", "x" * (ROOM + 5)) for n in range(40)]
    lines = [*format_conversation(turns, decided=30, answer="here")]
    assert ("turn 31", "q30 → here") in lines
    assert lines[-1][0] == "turn 40"
    assert len(lines) <= SHOWN + 3
    assert [text for label, text in lines if label == "…" and "19" in text]
    assert lines[0][1].endswith("x …")


def test_what_hides_in_a_text_is_shown() -> None:
    ((_, line),) = format_conversation([Turn("\x1b[2J", "\u202e")])
    assert "\x1b" not in line
    assert "\u202e" not in line
