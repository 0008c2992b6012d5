"""What the streams of a command do with text that they cannot write."""

from __future__ import annotations

import io
import json

import pytest

from holdfast.cli.main import tolerate_write_errors


@pytest.mark.parametrize(
    ("encoding", "text", "written"),
    [
        ("ascii", "✔ ✘ – … é 金 \U0001f41a", b"+ x - . \\u00e9 \\u91d1 \\ud83d\\udc1a"),
        ("cp1252", "✔ – é", b"+ \x96 \xe9"),
        ("utf-8", "✔ é \udc80", b"\xe2\x9c\x94 \xc3\xa9 \\udc80"),
    ],
)
def test_characters_that_the_encoding_lacks_are_replaced(encoding: str, text: str, written: bytes) -> None:
    out = io.BytesIO()
    stream = tolerate_write_errors(io.TextIOWrapper(out, encoding=encoding, newline=""))
    stream.write(text)
    stream.flush()
    assert out.getvalue() == written


def test_json_stays_json() -> None:
    out = io.BytesIO()
    stream = tolerate_write_errors(io.TextIOWrapper(out, encoding="ascii"))
    stream.write(json.dumps({"reason": "✔ é 🐚"}, ensure_ascii=False).replace("✔", "é"))
    stream.flush()
    assert json.loads(out.getvalue()) == {"reason": "é é 🐚"}
