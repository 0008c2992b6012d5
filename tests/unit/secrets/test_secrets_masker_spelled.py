"""Secrets are masked however they are written: escaped for JSON, for a URL, or inside of base64."""

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
from holdfast.model.observation import Observation, Turn
from holdfast.secrets.masker import MASK, Masker

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
def test_whatever_the_secret_and_what_stands_around_it_nothing_of_it_is_left(secret, way, before, after):
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
def test_what_a_cut_has_left_of_an_escaped_secret_is_masked(secret, data):
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


@pytest.mark.parametrize("flood", ["\\", "\\\\u", "%25", '\\"', "…", "s3cret", "s3cret…", "+", "'"])
def test_a_flood_of_escapes_is_masked_in_time(flood):
    masker = Masker([*SECRETS, '"\\"\\"\\"', "%25%25%25"])
    began = time.process_time()
    masker.mask_text(flood * (100_000 // len(flood)))
    assert time.process_time() - began < 2
