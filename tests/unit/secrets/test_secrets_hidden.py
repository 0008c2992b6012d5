"""Secrets are taken out of a folder, whatever is in it."""

import base64
import struct
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from example_counts import examples
from golden_words import Golden
from holdfast.secrets import hidden as hiding
from holdfast.secrets.hidden import CannotMask, HiddenValues, list_secret_forms
from holdfast.secrets.masker import Masker
from holdfast.world.kept_world import mask_dump, mask_files
from refused import refused

SECRET = b"sesame-sesame"
PEM = "-----BEGIN KEY-----\nabc/def\tghi\\\n-----END KEY-----"
pieces = st.lists(st.one_of(st.binary(max_size=20), st.just(SECRET), st.just(b"")), max_size=6).map(b"".join)


def hidden(*values, mask=str):
    return HiddenValues(values or ["sesame-sesame"], mask)


def known(*values):
    """With all spellings that a run knows."""
    return HiddenValues(values, Masker(values).mask_text)


@settings(deadline=None, max_examples=examples(50))
@given(st.lists(pieces, max_size=4))
def test_no_file_holds_a_secret_afterwards_and_the_others_are_as_they_were(contents):
    with TemporaryDirectory() as name:
        folder = Path(name)
        for n, content in enumerate(contents):
            (folder / f"{n}").write_bytes(content)
        assert list(mask_files(folder, hidden())) == []
        for n, content in enumerate(contents):
            assert (folder / f"{n}").read_bytes() == content.replace(SECRET, b"[masked]")


def test_a_files_mode_stays(tmp_path):
    (tmp_path / "a").write_bytes(SECRET)
    (tmp_path / "a").chmod(0o555)
    assert list(mask_files(tmp_path, hidden(mask=lambda text: text.replace("masked", "hidden")))) == []
    assert (tmp_path / "a").read_bytes() == b"[hidden]"
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o555


def test_nothing_is_read_without_secrets(tmp_path):
    (tmp_path / "a").write_bytes(SECRET)
    assert list(mask_files(tmp_path, HiddenValues([], lambda text: "changed"))) == []
    assert (tmp_path / "a").read_bytes() == SECRET


def test_the_longer_of_two_secrets_is_masked_completely_in_files_and_names(tmp_path):
    (tmp_path / "a-hunter2-and-the-rest").write_text("hunter2 hunter2-and-the-rest")
    assert list(mask_files(tmp_path, hidden("hunter2", "hunter2-and-the-rest"))) == []
    (path,) = tmp_path.iterdir()
    assert (path.name, path.read_text()) == ("a-[masked]", "[masked] [masked]")


def test_other_encodings_are_masked_in_large_files(tmp_path):
    coded = base64.b64encode(SECRET)
    (tmp_path / "large").write_bytes(b"\xff" * 1_200_000 + coded + b"\xff" * 1_200_000)
    assert list(mask_files(tmp_path, known("sesame-sesame"))) == []
    data = (tmp_path / "large").read_bytes()
    assert (coded[:12] in data, data.count(b"\xff")) == (False, 2_400_000)


def dumped(tmp_path, data, secrets=None, *, text):
    path = tmp_path / "x.dump"
    path.write_bytes(data)
    mask_dump(path, secrets or hidden(), text=text)
    return path.read_bytes()


def test_a_mask_in_a_dump_is_as_long_as_its_secret(tmp_path):
    before = b"\x00\x0dsesame-sesame\xff\x0dsesame-sesame"
    assert dumped(tmp_path, before, text=False) == b"\x00\x0d[masked]*****\xff\x0d[masked]*****"
    assert dumped(tmp_path, b"\x06sesame", hidden("sesame"), text=False) == b"\x06[maske"


def test_an_empty_dump_stays_empty(tmp_path):
    assert dumped(tmp_path, b"", text=True) == b""
    assert dumped(tmp_path, b"", text=False) == b""


def test_a_script_has_secrets_in_its_own_spelling(tmp_path):
    data = dumped(tmp_path, rb"'it''s-a\\b' 'it\'s-a\\b'", hidden(r"it's-a\b"), text=True)
    assert b"s-a" not in data


@pytest.mark.parametrize("before", [0, 1_200_000])
def test_lines_and_tabs_of_a_secret_are_escaped_in_a_script(tmp_path, before):
    in_copy = PEM.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
    in_mysql = PEM.replace("\\", "\\\\").replace("\n", "\\n")
    data = dumped(tmp_path, f"{'x' * before}{in_copy} '{in_mysql}' {PEM}".encode(), hidden(PEM), text=True)
    assert b"KEY" not in data
    assert b"ghi" not in data


@pytest.mark.parametrize("text", [True, False])
def test_a_mask_is_valid_where_its_secret_was(tmp_path, text):
    secret = "süß\n€-sesame🔑'x"
    data = dumped(tmp_path, f"{secret}|{secret!s}".encode(), hidden(secret), text=text)
    assert [len(part) for part in data.decode().split("|")] == [len(secret)] * 2
    assert "sesame" not in data.decode()
    escaped = secret.replace("\n", "\\n").replace("'", "\\'")
    read = dumped(tmp_path, escaped.encode(), hidden(secret), text=text).decode().encode("unicode_escape")
    assert b"sesame" not in read
    assert read.count(rb"\\n") == read.count(rb"\\'") == 1


@pytest.mark.parametrize("text", [True, False])
def test_hex_stays_hex_in_either_case(tmp_path, text):
    data = dumped(tmp_path, b"\\\\x" + SECRET.hex().encode() + b" 0x" + SECRET.hex().upper().encode(), text=text)
    lower, upper = (word.partition(b"x")[2].decode() for word in data.split())
    assert bytes.fromhex(lower) == bytes.fromhex(upper) == b"[masked]*****"


def test_the_longer_of_two_secrets_is_masked_completely_in_a_dump(tmp_path):
    secrets = hidden("hunter2", "hunter2-and-the-rest")
    assert dumped(tmp_path, b"hunter2-and-the-rest hunter2", secrets, text=True) == b"[masked]************ [masked"
    found = [form.data for form in list_secret_forms(["hunter2", "hunter2-and-the-rest"], text=False)]
    assert [len(form) for form in found] == sorted(map(len, found), reverse=True)


@pytest.mark.parametrize("at", range(30, 70, 3))
def test_a_secret_across_two_windows_is_masked_completely(tmp_path, monkeypatch, at):
    monkeypatch.setattr(hiding, "WINDOW", 50)
    secrets = hidden("hunter2", "hunter2-and-the-rest")
    data = dumped(tmp_path, b"x" * at + b"hunter2-and-the-rest" + b"x" * 100, secrets, text=False)
    assert data == b"x" * at + b"[masked]************" + b"x" * 100


@settings(deadline=None, max_examples=examples(100))
@given(st.lists(st.one_of(st.text(max_size=60), st.just("SECRET"), st.just("CODED"), st.just("sesame")), max_size=12))
def test_windows_change_nothing_in_what_is_masked(parts):
    """A secret between words, in two spellings, in windows that are small."""
    coded = base64.b64encode(SECRET).decode()
    words = [part.replace("SECRET", "sesame-sesame").replace("CODED", coded) for part in parts]
    text = " . ".join(["begin", *words * 6, "end"])
    masker = Masker(["sesame-sesame"])
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(hiding, "WINDOW", 40)
        (Path(name) / "a").write_bytes(text.encode())
        assert list(mask_files(Path(name), known("sesame-sesame"))) == []
        assert (Path(name) / "a").read_bytes().decode() == masker.mask_text(text)


@pytest.mark.parametrize("before", [0, 999_990, 1_200_000])
def test_other_encodings_are_masked_only_in_a_script(tmp_path, before):
    coded = base64.b64encode(SECRET)
    data = b"\xff" * before + b" " + coded + b" \xff\r\n"
    assert dumped(tmp_path, data, known("sesame-sesame"), text=True).startswith(b"\xff" * before + b" [masked]")
    assert not (tmp_path / "x.dump.masked").exists()
    with refused("secret-not-masked"):
        dumped(tmp_path, data, known("sesame-sesame"), text=False)


def test_a_number_stays_one_in_a_script(tmp_path):
    assert dumped(tmp_path, b"(84213377,'84213377')", known("84213377"), text=True) == b"(11111111,'11111111')"


def test_a_number_of_any_length_is_masked(tmp_path):
    assert dumped(tmp_path, b"9" * 5000, known("9" * 5000), text=False) == b"1" * 5000


@pytest.mark.parametrize(
    ("secret", "stored", "masked"),
    [
        ("84213377", b"\xc2" + struct.pack("<i", 84213377), b"\xc2" + struct.pack("<i", 11111111)),
        ("123456", b"\xf2\x40\xe2\x01\x04", b"\xf2\x07\xb2\x01\x04"),
        ("-12345", b"\xc1" + struct.pack("<h", -12345), b"\xc1" + struct.pack("<h", -11111)),
        ("12345678901", struct.pack("<q", 12345678901), struct.pack("<q", 11111111111)),
        ("1234.56", struct.pack("<d", 1234.56), struct.pack("<d", 1111.11)),
    ],
)
def test_numbers_are_masked_as_redis_stores_them(tmp_path, secret, stored, masked):
    assert dumped(tmp_path, b"pin" + stored + b"end", known(secret), text=False) == b"pin" + masked + b"end"


def test_a_text_that_is_a_secret_all_over_is_refused(tmp_path, monkeypatch, golden: Golden):
    monkeypatch.setattr(hiding, "WINDOW", 64)

    def mask(text):
        """Nothing can be cut: whatever is longer is told apart."""
        return f"[{len(text)}]"

    with pytest.raises(CannotMask):
        dumped(tmp_path, b"y" * 5000, hidden(mask=mask), text=True)
    (tmp_path / "x.dump").write_bytes(b"y" * 5000)
    golden(list(mask_files(tmp_path, hidden(mask=mask))))
