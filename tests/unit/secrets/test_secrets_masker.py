import html
import json
import re
import time
from base64 import b64decode, b64encode, urlsafe_b64encode
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from example_counts import examples
from holdfast.errors import AgentUnavailable
from holdfast.model.observation import FaultMet, Observation, Turn
from holdfast.model.verdict import Verdict
from holdfast.secrets.masker import MASK, Masker


def test_with_no_secret_nothing_is_copied() -> None:
    seen = Observation("a", turns=(Turn("q", "text"),))
    assert Masker(()).mask_observation(seen) is seen


def test_a_secret_is_masked_in_every_text_of_an_observation() -> None:
    seen = Observation(
        "a",
        turns=(Turn("ask s3cret-value", "it is s3cret-value!", detail="s3cret-value"),),
        ledger=(FaultMet(0, "tool", "t", "error", 1, would="s3cret-value"),),
        output="s3cret-value",
        notes=("s3cret-value",),
    )
    shown = Masker(["s3cret-value"]).mask_observation(seen)
    assert "s3cret-value" not in repr(shown)
    assert shown.masked
    assert seen.turns[0].text == "it is s3cret-value!"


def test_masked_says_that_the_agent_output_a_secret() -> None:
    seen = Observation("a", turns=(Turn("q", "fine"),), output="s3cret-value")
    assert not Masker(["s3cret-value"]).mask_observation(seen).masked


def test_secrets_with_quotes_and_newlines_are_masked_too() -> None:
    secret = 'pa"ss\nword\\x'
    seen = Observation("a", turns=(Turn("q", f"<{secret}>"),))
    assert Masker([secret]).mask_observation(seen).turns[0].text == "<[masked]>"


def test_the_longer_of_two_overlapping_secrets_is_masked_first() -> None:
    assert Masker(["abcdef", "abcdefghi"]).mask_text("abcdefghi") == "[masked]"


def test_verdicts_are_masked() -> None:
    verdict = Verdict("a", "r", "fail", 0.0, "found s3cret-value", details={"x": ["s3cret-value"]})
    assert "s3cret-value" not in repr(Masker(["s3cret-value"]).mask_struct(verdict))


def test_a_secret_equal_to_a_word_of_holdfast_does_not_break_the_record() -> None:
    for secret in ("timeout", "latency_ms", "http_error", "123456", "no_effect"):
        seen = Observation(
            "0123456789ab",
            turns=(Turn("q", f"said {secret}", latency_ms=0.123456, ending="timeout", detail=secret),),
            ledger=(FaultMet(0, "tool", "t", "timeout", 1, "no_effect", got=secret),),
        )
        shown = Masker([secret]).mask_observation(seen)
        assert shown.turns[0].text == "said [masked]"
        assert shown.turns[0].detail == shown.ledger[0].got == "[masked]"
        assert (shown.trial, shown.turns[0].ending, shown.turns[0].latency_ms) == ("0123456789ab", "timeout", 0.123456)
        assert shown.ledger[0].effect == "no_effect"


def test_a_failure_to_reach_the_agent_is_masked() -> None:
    gone = AgentUnavailable("no s3cret-value", hint="try s3cret-value", body="a s3cret-value", config=True)
    shown = Masker(["s3cret-value"]).mask_error(gone)
    assert (str(shown), shown.hint, shown.body, shown.config) == ("no [masked]", "try [masked]", "a [masked]", True)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("we say s3cret-va … to the end", "we say [masked] … to the end"),
        ("we say … t-value, no more", "we say … [masked], no more"),
        ("s3cret-… t-value", "[masked]… [masked]"),
        ("the answer ends in s3cret-v", "the answer ends in [masked]"),
        ("er-one and s3cret-value", "[masked] and [masked]"),
        ("s3cret-va is no cut … s3cre … alue", "s3cret-va is no cut … s3cre … alue"),
    ],
)
def test_the_rest_of_a_secret_at_a_cut_is_masked(text: str, shown: str) -> None:
    assert Masker(["s3cret-value", "another-one"]).mask_text(text) == shown


def test_the_rest_of_a_secret_at_a_cut_is_masked_in_a_record() -> None:
    assert Masker(["s3cret-value"]).mask_struct(Turn("q", "…t-value")).text == "…[masked]"


# Secrets are masked however they are written: escaped for JSON, for a URL, or inside of base64.


SECRETS = ["s3cret-value", 'pa"ss\\word\n/é', "a b+c/d=e&f", "zwölf\tGeißen€😀", "\\\\server\\share", "'''\"\"\"///"]
secrets = st.text(st.characters(codec="utf-8"), min_size=6, max_size=40)
around = st.text(st.characters(codec="utf-8"), max_size=12)


WAYS = {
    "as it is": str,
    "json": lambda s: json.dumps(s, ensure_ascii=False)[1:-1],
    "json, ascii": lambda s: json.dumps(s)[1:-1],
    "json, upper case": lambda s: "".join(c if c.isascii() else "".join(f"\\u{u:04X}" for u in units(c)) for c in s),
    "json in json": lambda s: json.dumps(json.dumps(s))[3:-3],
    "json in json in json": lambda s: json.dumps(json.dumps(json.dumps(s)))[7:-7],
    "repr": lambda s: repr(s)[1:-1],
    "url": lambda s: quote(s, safe=""),
    "url path": quote,
    "javascript's encodeURIComponent": lambda s: quote(s, safe="!'()*"),
    "form": quote_plus,
    "url in url": lambda s: quote(quote(s, safe=""), safe=""),
    "html": html.escape,
    "html text": lambda s: html.escape(s, quote=False),
    "html, ascii": lambda s: html.escape(s).encode("ascii", "xmlcharrefreplace").decode(),
    "html, hexadecimal": lambda s: re.sub(r"[^\w.~-]|[^\x00-\x7f]", lambda one: f"&#x{ord(one[0]):X};", s),
    "html in html": lambda s: html.escape(html.escape(s)),
    "json in a url": lambda s: quote(json.dumps(s)[1:-1], safe=""),
    "hexadecimal": lambda s: s.encode().hex(),
    "hexadecimal, upper case": lambda s: s.encode().hex().upper(),
}


def units(char: str) -> list[int]:
    data = char.encode("utf-16-be")
    return [int.from_bytes(data[at : at + 2]) for at in range(0, len(data), 2)]


def test_a_secret_is_masked_however_it_is_written():
    for way in WAYS.values():
        for secret in SECRETS:
            masker = Masker(["another-secret", secret])
            assert masker.mask_text(f"<{way(secret)}>") == f"<{MASK}>", secret
            shown = masker.mask_struct(Turn("q", f"<{way(secret)}>"))
            assert shown.text == f"<{MASK}>", secret


def test_hex_digits_may_be_in_lower_case():
    assert Masker(["pass/wörd+"]).mask_text("x=pass%2fw%c3%b6rd%2b&y") == f"x={MASK}&y"
    assert Masker(["pass/wörd+"]).mask_text("x=pass%2Fw%c3%B6rd%2b&y") == f"x={MASK}&y"
    assert Masker(["pass wörd"]).mask_text("x=pass+w%C3%B6rd") == f"x={MASK}"


def test_the_password_of_basic_authentication_is_masked():
    for user in ("u", "me", "her", "they"):
        header = "Basic " + b64encode(f"{user}:s3cret-value".encode()).decode()
        shown = Masker(["s3cret-value"]).mask_text(header)
        assert MASK in shown
        assert "s3cret" not in b64decode(shown.split()[1].replace(MASK, "AAAA") + "===").decode("latin-1")


@settings(max_examples=examples(100), deadline=None)
@given(secret=secrets, before=st.binary(max_size=6), after=st.binary(max_size=6), url=st.booleans())
def test_a_secret_is_masked_inside_of_base64_wherever_it_begins(secret, before, after, url):
    code = urlsafe_b64encode if url else b64encode
    coded = code(before + secret.encode() + after).decode()
    begin, end = -(-len(before) * 8 // 6), (len(before) + len(secret.encode())) * 8 // 6
    own = coded[begin:end]
    shown = Masker([secret]).mask_text(f"<{coded}>")
    assert MASK in shown
    assert own not in shown
    assert MASK in Masker([secret]).mask_text(f"x={quote(coded, safe='')}")


@settings(max_examples=examples(150), deadline=None)
@given(secret=secrets, way=st.sampled_from(sorted(WAYS)), before=around, after=around)
def test_nothing_is_left_of_any_secret_in_any_text(secret, way, before, after):
    written = WAYS[way](secret)
    seen = Observation(
        "0123456789ab", turns=(Turn("q", f"{before}<{written}>{after}"),), output=urlencode({"k": secret})
    )
    shown = Masker([secret]).mask_observation(seen)
    assert shown.masked
    assert written not in shown.turns[0].text.replace(MASK, "\0") or written in MASK
    assert MASK in shown.output


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
@given(secret=st.text(st.characters(codec="utf-8", exclude_characters="…"), min_size=20, max_size=40), data=st.data())
def test_the_rest_of_an_escaped_secret_at_a_cut_is_masked(secret, data):
    way = data.draw(st.sampled_from(["as it is", "json", "json, ascii", "url", "form", "hexadecimal", "base64"]))
    written = b64encode(secret.encode()).decode().rstrip("=")[:-1] if way == "base64" else WAYS[way](secret)
    least = 1 + 6 * len(written) // len(secret)
    at = data.draw(st.integers(least, len(written) - least))
    assert Masker([secret]).mask_text(f"<{written[:at]}…").endswith(f"{MASK}…")
    if way != "base64":
        assert Masker([secret]).mask_struct(Turn("q", f"{written[at:]}>")).text == f"{MASK}>"


def test_other_texts_are_left_as_they_are():
    masker = Masker(SECRETS)
    for text in (
        "",
        "the revenue was up",
        "%2F%2F \\\\\\ \\u00e9",
        "…",
        "x … y",
        b64encode(bytes(range(256))).decode(),
    ):
        assert masker.mask_text(text) == text


@pytest.mark.slow
@pytest.mark.parametrize("flood", ["\\", "\\\\u", "%25", '\\"', "…", "s3cret", "s3cret…", "+", "'"])
def test_a_flood_of_escapes_is_masked_in_time(flood):
    masker = Masker([*SECRETS, '"\\"\\"\\"', "%25%25%25"])
    began = time.process_time()
    masker.mask_text(flood * (100_000 // len(flood)))
    assert time.process_time() - began < 2
