"""The readings of a text: canonical, and without Markdown marks."""

from __future__ import annotations

import pytest

from holdfast.model.plain_text import iter_readings, locate_spans, strip_marks, to_canonical_text, to_typed_text

CANONICAL = {
    "nfc": ("cafe\u0301", "café"),
    "zero width": ("pass\u200bw\u2060o\ufeffrd", "password"),
    "soft hyphen": ("pass\u00adword", "password"),
    "bidi marks and tags": ("a\u202eb\u200f\U000e0041c", "abc"),
    "no-break spaces": ("10\u00a0000\u202fEUR\u2009x", "10 000 EUR x"),
    "quotes": ("‘it’s’ “so”", "'it's' \"so\""),
    "named entity": ("a &lt; b &amp; c&nbsp;d", "a < b & c d"),
    "decimal entity": ("ann&#64;example.org", "ann@example.org"),
    "hex entity": ("ann&#x40;example.org", "ann@example.org"),
    "entity without a semicolon": ("ann&#64example.org", "ann@example.org"),
    "entity of an invisible character": ("pass&#8203;word&shy;s", "passwords"),
    "entity resolved once": ("&amp;#64;", "&#64;"),
    "entity in a fence": ("a &lt; b\n```html\n&lt;b&gt;\n```\n&gt;", "a < b\n```html\n&lt;b&gt;\n```\n>"),
    "entity in a tilde fence": ("~~~\n&#64;\n~~~\n&#64;", "~~~\n&#64;\n~~~\n@"),
    "entity in a quoted fence": ("> ```\n> &#64;\n> ```\n&#64;", "> ```\n> &#64;\n> ```\n@"),
    "entity in an open fence": ("```\n&#64;", "```\n&#64;"),
    "entity in a longer fence": ("````\n```\n&#64;\n````\n&#64;", "````\n```\n&#64;\n````\n@"),
    "entity in a code span": ("`&lt;` ``a ` &lt;`` &lt;", "`&lt;` ``a ` &lt;`` <"),
    "entity after a lone backtick": ("a ` b &lt;", "a ` b <"),
    "no entity": ("?a=1&copy=2 AT&T &nosuch; &", "?a=1&copy=2 AT&T &nosuch; &"),
    "hyphens": ("sk\u2011abc, well\u2010known", "sk-abc, well-known"),
    "guillemets and dashes stay": ("«a» – b", "«a» – b"),
}


def test_canonical_is_what_a_person_sees() -> None:
    for text, wanted in CANONICAL.values():
        assert to_canonical_text(text) == wanted, (text, wanted)
        if "`" not in wanted:
            assert to_canonical_text(wanted.replace("&#64;", "")) == wanted.replace("&#64;", ""), (text, wanted)


def test_plain_ascii_is_given_back_as_it_is() -> None:
    text = "the same " + "object"
    assert to_canonical_text(text) is text
    assert strip_marks(text) is text


def test_typed_keeps_entities_and_invisible_characters() -> None:
    assert to_typed_text("I can’t &lt;\u200b") == "I can't &lt;\u200b"


UNMARKED = {
    "bold and italics": ("**pass***word* ~~x~~ ***y***", "password x y"),
    "inline code": ("the `pass`word ``x``", "the password x"),
    "escapes": ("HOLDFAST\\-CANARY \\*not bold\\*", "HOLDFAST-CANARY *not bold*"),
    "entities too": ("**ann**&#64;example.org", "ann@example.org"),
    "a word's own underscores": ("snake_case_name, _emphasis_, x_", "snake_case_name, emphasis, x_"),
    "a sum": ("2*3 = 6, 2 * 3 * 4, a ~ b", "2*3 = 6, 2 * 3 * 4, a ~ b"),
    "links": ("[pass](https://a.example/b_(c))word ![pic](x.png) [a][1]", "password pic a"),
    "autolinks": ("<ann@b.example> <https://a.example>", "ann@b.example https://a.example"),
    "tags": ("pass<b>word</b> a<br/>b <span class='x'>c</span>d <!-- hidden -->e", "password a b cd e"),
    "comparisons": ("if a < b and c > d: e", "if a < b and c > d: e"),
    "heading": ("## Total\nsum of\nall", "Total\nsum of all"),
    "wrapped lines": ("one two\nthree\r\nfour", "one two three four"),
    "paragraphs": ("one\n\ntwo\n\n\nthree", "one\ntwo\nthree"),
    "wrapped at a hyphen": ("HOLDFAST-\nCANARY a -\nb", "HOLDFAST-CANARY a - b"),
    "wrapped without a space": ("密\n码", "密码"),
    "hard break": ("one  \ntwo\\\nthree", "one two three"),
    "quotation": ("> one\n> > two\n>three", "one two three"),
    "list": ("- one\n- two\n  three\n1. four\n* five", "- one\n- two three\n1. four\n* five"),
    "table": ("| a | b |\n| c | d |", "| a | b |\n| c | d |"),
    "column of numbers": ("555\n123\n4567", "555\n123\n4567"),
    "groups of one number": ("4111 **1111**\n1111 1111", "4111 1111 1111 1111"),
    "fenced code": ("so:\n```py\na*b*c\n_x_\n```\n**end**", "so:\na*b*c\n_x_\nend"),
    "a fence in a longer one": ("````\n```\n*a*\n````\n*b*", "```\n*a*\nb"),
    "a fence that never ends": ("a\n~~~\n*b*\nc", "a\n*b*\nc"),
}


def test_unmarked_is_the_rendered_text() -> None:
    for text, wanted in UNMARKED.values():
        assert strip_marks(text) == wanted, (text, wanted)


def test_each_reading_comes_once_and_the_text_itself_first() -> None:
    assert list(iter_readings("plain", forbids=True)) == ["plain"]
    assert list(iter_readings("caf\u0065\u0301", forbids=True)) == ["cafe\u0301", "café"]
    assert list(iter_readings("a%40b", forbids=True)) == ["a%40b", "a@b"]
    assert list(iter_readings("a%40b 50%", forbids=False)) == ["a%40b 50%"]
    assert list(iter_readings("**a**&#64;b", forbids=False)) == ["**a**&#64;b", "**a**@b"]
    assert list(iter_readings("**a**&#64;b", forbids=True)) == ["**a**&#64;b", "**a**@b", "a@b"]
    assert list(iter_readings("**a**&amp;#64;", forbids=True))[-1] == "a&#64;"


@pytest.mark.parametrize(
    "part", ["*a ", "[", "<a ", "_a", "a\n", "<!--", "&#", "[a](", "<a@", "\\", "`", "**a**", "> "]
)
@pytest.mark.timeout(60)  # a fraction of a second if it is read in proportion to its size, minutes if not
def test_reading_takes_time_in_proportion_to_the_text(part: str) -> None:
    assert len(strip_marks(part * 30_000)) <= len(part) * 30_000


@pytest.mark.parametrize(
    ("text", "reading"),
    [
        ("sent to j***@example.com and m***@example.org", "sent to j***@example.com and m***@example.org"),
        ("cards ****1234/****5678", "cards ****1234/****5678"),
        ("call `__init__` of `*.py` and `*.pyi`", "call __init__ of *.py and *.pyi"),
        ("```x``` I **believe** so", "x I believe so"),
        ("un**believ**able, 4**111** 1", "unbelievable, 4111 1"),
        ("I \x1b[1mbelieve\x1b[0m so", "I believe so"),
        ("\x1b[2Kthe \x1b]8;;https://x.example\x07link", "[2Kthe ]8;;https://x.examplelink"),
        ("the sec\x9bret", "the secret"),
        ("the\tpassword  is\x0bthis", "the password is this"),
        ("the pass\x00wo\x07rd", "the password"),
        ("the sec\x9dret", "the secret"),
        ("the s\x80e\x84c\x86r\x9fet", "the secret"),
        ("the sec\x9b31mret", "the secret"),
        ("one\x85two", "one two"),
        ('**"quoted"** (*note*) ~~gone~~', '"quoted" (note) gone'),
    ],
)
def test_only_what_a_renderer_takes_for_a_mark_is_removed(text: str, reading: str) -> None:
    assert strip_marks(text) == reading


@pytest.mark.slow
def test_marks_are_found_in_the_text_itself_unless_it_is_long() -> None:
    text = "write to ann&#64;example.org"
    spans = [(9, 24)]
    assert locate_spans(text, to_canonical_text(text), spans) == ((9, 28),)
    long = text + " or **not**\n" * 70_000
    assert locate_spans(long, strip_marks(long), spans) == ()


def test_lines_stay_as_they_are_if_asked_for() -> None:
    text = "**one** two\nthree\n\n> four\n> five\n"
    assert list(iter_readings(text, forbids=True)) == [text, "one two three\nfour five"]
    assert list(iter_readings(text, forbids=True, by_line=True)) == [text, "one two\nthree\nfour\nfive"]
