"""What a page of a run carries."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from typing import Any


def documents(page: str) -> dict[str, Any]:
    """The documents of a report.html, by name; none if it is not one."""
    packed = page.partition('id="data">')[2].partition("<")[0]
    lines = gzip.decompress(b64decode(packed)).decode().splitlines() if packed else []
    return {name: json.loads(text) for name, _, text in (line.partition("\t") for line in lines)}
