"""Words that people read are written once, in `tests/golden/words/`, one file for each test module.

    def test_a_cut_answer_has_a_note(golden: Golden) -> None:
        golden(answer.notes)

`UPDATE_GOLDEN=1` writes the file. Paths of the test, ports and the line numbers of test files are left out.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

Golden = Callable[[object], None]
FOLDER = Path(__file__).parent / "golden/words"


def words_file(module: str) -> Path:
    return FOLDER / f"{module}.json"


def read(file: Path) -> dict[str, list[Any]]:
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def write(file: Path, test: str, values: list[Any]) -> None:
    """Replaces the values of one test; other workers may be writing to the same file."""
    lock = os.open(FOLDER, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        texts = dict(sorted({**read(file), test: values}.items()))
        new = file.with_suffix(".new")
        new.write_text(json.dumps(texts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        new.replace(file)  # another worker may be reading it
    finally:
        os.close(lock)


def normalized(value: object, tmp_path: Path) -> Any:
    text = json.dumps(value, ensure_ascii=False)
    for path, name in ((str(tmp_path), "<tmp>"), (tmp_path.name, "<tmp>"), (os.path.dirname(__file__), "")):
        text = text.replace(path, name)
    text = re.sub(r"(test_\w+\.py:)\d+", r"\1<line>", text)
    return json.loads(re.sub(r"(\w\]?:|', )\d{4,5}\b", r"\1<port>", text))
