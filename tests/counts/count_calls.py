"""Runs a command of Holdfast in this process and writes how many calls it made and modules it had: FILE WORDS..."""

from __future__ import annotations

import json
import sys
from types import FrameType
from typing import Any

from holdfast.cli import main as holdfast


def main(file: str, words: list[str]) -> None:
    calls = 0

    def count(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal calls
        if event in ("call", "c_call"):
            calls += 1

    sys.argv = ["holdfast", *words]
    code: Any = 0
    sys.setprofile(count)
    try:
        holdfast()
    except SystemExit as ended:
        code = ended.code
    finally:
        sys.setprofile(None)
    with open(file, "w", encoding="utf-8") as out:
        json.dump({"calls": calls, "modules": len(sys.modules), "code": code}, out)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
