import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.report.safe import count_columns, escape_commands, make_visible, shorten, to_ascii, to_one_line

ANY = st.text(st.characters(exclude_categories=()))


def test_escape_codes_are_shown_not_sent() -> None:
    assert make_visible("\x1b[31mred\x9b2J") == r"\x1b[31mred\x9b2J"


def test_bidi_controls_are_shown() -> None:
    assert make_visible("\u202egnp.exe\u2066") == r"\u202egnp.exe\u2066"


@given(ANY)
def test_no_control_or_surrogate_survives(text: str) -> None:
    assert not {unicodedata.category(c) for c in to_one_line(text)} & {"Cc", "Cs", "Zl", "Zp"}


@given(ANY)
def test_one_line_is_one_line_that_can_be_encoded(text: str) -> None:
    assert len(to_one_line(text).encode().decode().splitlines()) <= 1


@given(ANY, st.integers(1, 40))
def test_shortened_text_fits_its_room(text: str, room: int) -> None:
    assert count_columns(shorten(text, room)) <= room


@given(ANY)
def test_ascii_fallback_is_ascii(text: str) -> None:
    assert to_ascii(text).isascii()


def test_ascii_signs_take_the_same_room() -> None:
    assert to_ascii("✔ ✘ – …") == "+ x - ."


def test_wide_characters_take_two_columns() -> None:
    assert count_columns("金a") == 3
    assert shorten("金金金", 4) == "金…"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error::x", "\\::error::x"),
        ("a\n  ::stop-commands::t\nb", "a\n  \\::stop-commands::t\nb"),
        ("answered ##[add-mask]x", "answered ##\\[add-mask]x"),
        ("std::vector ## [x] a :: b\n\n", "std::vector ## [x] a :: b\n\n"),
    ],
)
def test_a_workflow_command_in_an_answer_is_not_obeyed(text: str, shown: str) -> None:
    assert escape_commands(text) == shown
