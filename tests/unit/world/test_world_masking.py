"""Secrets are taken out of a folder, whatever is in it."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.world.masking import mask_dump, mask_files

SECRET = b"sesame-sesame"
pieces = st.lists(st.one_of(st.binary(max_size=20), st.just(SECRET), st.just(b"")), max_size=6).map(b"".join)


@settings(deadline=None, max_examples=50)
@given(st.lists(pieces, max_size=4))
def test_no_file_holds_a_secret_afterwards_and_the_others_are_as_they_were(contents):
    with TemporaryDirectory() as name:
        folder = Path(name)
        for n, content in enumerate(contents):
            (folder / f"{n}").write_bytes(content)
        assert list(mask_files(folder, [SECRET], lambda text: text)) == []
        for n, content in enumerate(contents):
            assert (folder / f"{n}").read_bytes() == content.replace(SECRET, b"[masked]")


def test_a_files_mode_stays(tmp_path):
    (tmp_path / "a").write_bytes(SECRET)
    (tmp_path / "a").chmod(0o555)
    assert list(mask_files(tmp_path, [SECRET], lambda text: text.replace("masked", "hidden"))) == []
    assert (tmp_path / "a").read_bytes() == b"[hidden]"
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o555


def test_where_there_is_no_secret_nothing_is_read(tmp_path):
    (tmp_path / "a").write_bytes(SECRET)
    assert list(mask_files(tmp_path, [], lambda text: "changed")) == []
    assert (tmp_path / "a").read_bytes() == SECRET


def dumped(tmp_path, data, *, text, mask=str, secrets=(b"sesame-sesame",)):
    path = tmp_path / "x.dump"
    path.write_bytes(data)
    return mask_dump(path, secrets, mask, text=text), path.read_bytes()


def test_a_mask_in_a_dump_is_as_long_as_its_secret(tmp_path):
    before = b"\x00\x0dsesame-sesame\xff\x0dsesame-sesame"
    assert dumped(tmp_path, before, text=False) == (True, b"\x00\x0d[masked]*****\xff\x0d[masked]*****")
    assert dumped(tmp_path, b"\x06sesame", text=False, secrets=[b"sesame"]) == (True, b"\x06[maske")


def test_a_script_has_secrets_in_its_own_spelling(tmp_path):
    done, data = dumped(tmp_path, rb"'it''s-a\\b' 'it\'s-a\\b'", text=True, secrets=[rb"it's-a\b"])
    assert done
    assert b"s-a" not in data


def test_other_spellings_are_masked_in_a_script_alone(tmp_path):
    def mask(text):
        return text.replace("c2VzYW1l", "[masked]")

    assert dumped(tmp_path, b"c2VzYW1l \xff\r\n", text=True, mask=mask) == (True, b"[masked] \xff\r\n")
    assert dumped(tmp_path, b"c2VzYW1l \xff\r\n", text=False, mask=mask) == (False, b"c2VzYW1l \xff\r\n")
