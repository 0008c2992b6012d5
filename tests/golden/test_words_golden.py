"""Every entry of `words/` belongs to a test that is there: nobody has to keep words that no test compares."""

from __future__ import annotations

import re

from golden_words import FOLDER, read

TESTS = FOLDER.parents[1]


def test_words_of_a_test_that_is_gone_are_gone() -> None:
    modules = {path.stem: path.read_text() for path in TESTS.rglob("test_*.py")}
    stale = [
        f"{file.name}: {test}"
        for file in sorted(FOLDER.iterdir())
        for test in read(file)
        if not re.search(rf"def {test.partition('[')[0]}\([^)]*\bgolden\b", modules.get(file.stem, ""))
    ]
    assert stale == []
