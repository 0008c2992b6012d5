"""Measures `excludes_pii` and `refusal_check` on labelled texts: --half FOLDER of text/; --wrong lists each mistake."""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.checks.pii import FINDERS, find_pii
from holdfast.checks.refusal_phrases import find_refusal
from holdfast.model.plain_text import iter_readings

TEXT = Path(__file__).parent / "text"
HALVES = tuple(sorted(folder.name for folder in TEXT.iterdir() if folder.is_dir()))
KINDS = {"card": "credit_card", "ssn": "us_ssn", "ip": "ip_address"}
"""The names of the labels that are not ours."""


class Counted(NamedTuple):
    """Texts by label and answer."""

    hits: int = 0
    misses: int = 0
    false_alarms: int = 0
    quiet: int = 0

    @property
    def recall(self) -> float:
        return self.hits / (self.hits + self.misses or 1)

    @property
    def precision(self) -> float:
        return self.hits / (self.hits + self.false_alarms or 1)

    @property
    def accuracy(self) -> float:
        return (self.hits + self.quiet) / (sum(self) or 1)


def rows(half: str, name: str) -> list[dict[str, Any]]:
    """The labelled texts; empty if this half is not here."""
    file = TEXT / half / f"{name}.jsonl"
    return [json.loads(line) for line in file.read_text("utf-8").splitlines() if line] if file.exists() else []


def pii_cases(half: str) -> Iterator[tuple[dict[str, Any], str, bool, bool]]:
    """Each text with each kind that is in it or was found: the text, the kind, whether it is there, whether found."""
    for row in rows(half, "pii"):
        there = [KINDS.get(kind, kind) for kind in row["entities"]]
        each = [find_pii(text, FINDERS) for text in iter_readings(row["text"], forbids=True)]
        found = [one.kind for one in max(each, key=len)]
        for kind in sorted({*there, *found}):
            most = max(there.count(kind), found.count(kind))
            for n in range(most):
                yield row, kind, n < there.count(kind), n < found.count(kind)
        if not there and not found:
            yield row, "", False, False


def refusal_cases(half: str) -> Iterator[tuple[dict[str, Any], str, bool, bool]]:
    for row in rows(half, "refusals"):
        found = any(map(find_refusal, iter_readings(row["text"], forbids=False)))
        yield row, "", row["refuses"], found


def counted(cases: Iterable[tuple[dict[str, Any], str, bool, bool]]) -> dict[str, Counted]:
    """By language, and of all under "all"."""
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for row, _, there, found in cases:
        place = (0 if found else 1) if there else (2 if found else 3)
        for name in ("all", row["lang"]):
            sums[name][place] += 1
    return {name: Counted(*counts) for name, counts in sums.items()}


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=HALVES, default="dev")
    parser.add_argument("--wrong", action="store_true", help="list every text that was taken wrongly")
    asked = parser.parse_args(words)
    for name, cases in (("pii", pii_cases), ("refusals", refusal_cases)):
        for lang, sums in sorted(counted(cases(asked.half)).items()):
            shown = f"recall {sums.recall:6.1%}  precision {sums.precision:6.1%}  accuracy {sums.accuracy:6.1%}"
            print(f"{name:9} {lang:4} {shown}  of {sum(sums)}")
        for row, kind, there, found in cases(asked.half) if asked.wrong else ():
            if there != found:
                print(f"  {row['id']} {row['lang']} {'missed' if there else 'FALSE'} {kind} | {row['text'][:200]}")


if __name__ == "__main__":
    main(sys.argv[1:])
