"""A pattern that is called dead matches nothing: patterns of every construct, against every short text."""

from __future__ import annotations

import itertools
import warnings

import regex
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from example_counts import examples
from holdfast.checks.never_matches import never_matches

TEXTS = ["".join(text) for n in range(4) for text in itertools.product("ab1 \n\u00e9_K", repeat=n)]
TEXTS += [
    *"\u212a\u017f\u0130\u0661\u0300\u200d\u4e00\u00a0\x1c",
    "a\u0301b",
    "1\u0661 ",
    "k\u212a",
    "\u00e9\u00c9",
    "a\n\n\n",
    "aaaa",
    "abab",
]

SETS = st.sampled_from(
    [r"\w", r"\W", r"\d", r"\D", r"\s", r"\S", ".", "[ab]", "[^ab]", "[^a]", r"[^\w]", r"[\Wa]", r"[^\s1]", "[a-z]",
     "[^a-z]", "[\u00e0-\u00ff]", "[^\u00e0-\u00ff]", r"[^\W\d]", "[K-\u4e00]", r"[\n]", r"[^\n]", "[^\u4e00]"]
)  # fmt: skip
SIGNS = st.sampled_from([*"abk1_ K", "\u00e9", "\u00c9", r"\n", "\u4e00", r"\\", r"\$"])
PLACES = st.sampled_from(["^", "$", r"\A", r"\Z", r"\b", r"\B"])


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    group = st.sampled_from(
        ["(?:{})", "({})", "(?={})", "(?!{})", "(?>{})", "(?i:{})", "(?-i:{})", "(?m:{})", "(?s:{})", "(?a:{})"]
    )
    times = st.sampled_from(["*", "+", "?", "{2}", "{0}", "{1,3}", "{3,}", "*?", "+?", "??", "*+", "++", "?+"])
    behind = st.builds(
        lambda form, one: form.format(one), st.sampled_from(["(?<={})", "(?<!{})"]), SETS | SIGNS | PLACES
    )
    return st.one_of(
        st.builds(lambda form, part: form.format(part), group, inner),
        st.builds(lambda part, often: f"(?:{part}){often}", inner, times),
        st.builds(lambda one, often: f"{one}{often}", SETS | SIGNS, times),
        st.builds(lambda *parts: "".join(parts), inner, inner),
        st.builds(lambda *parts: "".join(parts), inner, inner, inner),
        st.builds(lambda *parts: "(?:" + "|".join(parts) + ")", inner, inner),
        st.builds(lambda one, yes, no: f"({one})?(?:{yes})(?:{no}|\\1)", SIGNS, inner, inner),
        behind,
    )


PATTERNS = st.recursive(SETS | SIGNS | PLACES, larger, max_leaves=8)
FLAGS = {"": 0, "s": regex.DOTALL, "i": regex.IGNORECASE, "si": regex.DOTALL | regex.IGNORECASE}


@settings(max_examples=examples(600), deadline=None, derandomize=True)
@given(PATTERNS, st.sampled_from(sorted(FLAGS)), st.sampled_from(["", "", "(?m)", "(?i)", "(?s)", "(?a)", "(?im)"]))
@example("(?!\\B)", "", "")
@example("(?!a*+a)a", "", "")
@example("$\\n", "", "")
@example("(?=k)\u212a", "i", "")
def test_what_is_called_dead_matches_nothing(pattern: str, flags: str, inline: str) -> None:
    pattern = inline + pattern
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            made = regex.compile(pattern, FLAGS[flags])
        except regex.error:
            assume(False)
    if never_matches(pattern, flags):
        assert [text for text in TEXTS if made.search(text)] == []


@settings(max_examples=examples(300), deadline=None, derandomize=True)
@given(st.data(), PATTERNS)
def test_a_text_made_to_match_a_pattern_is_never_denied(data: st.DataObject, pattern: str) -> None:
    """The other way round: a pattern that holds some text, whole, between what may or may not match."""
    text = data.draw(st.text("ab1 \n\u00e9\u4e00", min_size=1, max_size=4))
    whole = f"^(?:{pattern})?{regex.escape(text)}(?:{pattern})?$"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert regex.search(whole, text) is None or not never_matches(whole)


def test_spaces_end_where_the_alphabet_takes_them_to_end() -> None:
    from holdfast.checks.pattern_alphabet import FOLDED_INTO_ASCII, LAST_SPACE

    beyond = "".join(map(chr, range(LAST_SPACE + 1, 0x110000)))
    assert regex.search(r"\s", beyond) is None
    others = "".join(map(chr, range(128, 0x110000)))
    assert set(regex.findall("[\\x00-\\x7f]", others, regex.I)) == set(map(chr, FOLDED_INTO_ASCII))
    assert regex.findall(r"(?=\d)\W|(?=\s)\w", others) == []


def test_what_is_taken_to_have_no_case_matches_itself_alone() -> None:
    from holdfast.checks.pattern_alphabet import CASELESS

    text = "".join(map(chr, CASELESS))
    others = "".join(map(chr, (code for code in range(0x110000) if code not in CASELESS)))
    assert regex.findall(f"[{text[0]}-{text[-1]}]", others, regex.I) == []
    assert [one for one in text if not one == one.lower() == one.upper() == one.casefold()] == []
