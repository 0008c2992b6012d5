"""PyYAML as Holdfast loads it is whole: its own scanner works, and `re` is as it was."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import re
from holdfast.reading.pyyaml import LatePattern, yaml

assert isinstance(yaml.reader.Reader.NON_PRINTABLE, LatePattern), "it was compiled: then there is no use in all this"
assert isinstance(re.compile("\\U0010ffff"), re.Pattern)
assert yaml.load("a: [1, 2]", yaml.SafeLoader) == {"a": [1, 2]}
try:
    yaml.load("a: \\x01", yaml.SafeLoader)
except yaml.reader.ReaderError as refused:
    print(refused.position, refused.reason)
"""


def test_pyyamls_own_scanner_still_refuses_what_is_not_printable() -> None:
    told = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True).stdout
    assert told == "3 special characters are not allowed\n"
