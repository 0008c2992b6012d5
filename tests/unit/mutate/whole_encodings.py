"""How to undo the encodings that change a whole prompt."""

from __future__ import annotations

import codecs
import html
import re
from base64 import b64decode
from urllib.parse import unquote

WHOLE = {
    "base64": lambda text: b64decode(text).decode(),
    "rot13": lambda text: codecs.decode(text, "rot13"),
    "percent": unquote,
    "hexadecimal": lambda text: bytes.fromhex(text).decode(),
    "unicode_escapes": lambda text: re.sub(r"\\u\{([0-9a-f]+)\}", lambda sign: chr(int(sign[1], 16)), text),
    "html_whole": html.unescape,
}
