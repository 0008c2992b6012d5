"""How often `similarity` is right on labelled pairs: `python tests/quality/text_eval.py --half dev [--wrong]`."""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from holdfast.checks.likeness import Method, likeness

THRESHOLD = 0.75
HALVES = Path(__file__).parent / "text"


def halves() -> list[str]:
    """The halves of the set that are there."""
    return sorted(path.parent.name for path in HALVES.glob("*/pairs.jsonl"))


def pairs(half: str) -> list[dict[str, Any]]:
    """The labelled pairs of one half: id, lang, kind, same, a, b."""
    lines = (HALVES / half / "pairs.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def passes(pair: dict[str, Any], method: Method) -> tuple[bool, bool]:
    """Whether the pair passes, as it is and the other way round."""
    return _passes(pair["a"], pair["b"], method), _passes(pair["b"], pair["a"], method)


@cache
def _passes(a: str, b: str, method: Method) -> bool:
    return likeness(a, b, method).score >= THRESHOLD


def rates(half: str, method: Method, by: Callable[[dict[str, Any]], str]) -> dict[tuple[str, bool], tuple[int, int]]:
    """By group and label, how many of how many pass; a pair counts once a direction."""
    found: dict[tuple[str, bool], list[int]] = defaultdict(lambda: [0, 0])
    for pair in pairs(half):
        counted = found[by(pair), pair["same"]]
        counted[0] += sum(passes(pair, method))
        counted[1] += 2
    return {key: (passed, total) for key, (passed, total) in sorted(found.items())}


def rate(half: str, method: Method, *, same: bool) -> float:
    """The share that passes of the pairs with that label."""
    passed, total = rates(half, method, lambda _: "")["", same]
    return passed / total


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--half", choices=halves(), default="dev")
    parser.add_argument("--method", choices=["lexical", "semantic"])
    parser.add_argument("--wrong", action="store_true", help="list the pairs that are judged wrongly")
    asked = parser.parse_args()
    methods: list[Method] = [asked.method] if asked.method else ["lexical", "semantic"]
    for method in methods:
        for title, by in (("all", lambda _: "all"), ("language", lambda p: p["lang"]), ("kind", lambda p: p["kind"])):
            for (group, same), (passed, total) in rates(asked.half, method, by).items():
                label = "same  " if same else "differ"
                print(f"{method:9} {title:9} {group:16} {label} {passed:4} of {total:4} pass, {passed / total:.1%}")
        if asked.wrong:
            for pair in pairs(asked.half):
                if passes(pair, method) != (pair["same"],) * 2:
                    found = likeness(pair["a"], pair["b"], method)
                    print(
                        f"{method} {pair['id']} {pair['kind']} same={pair['same']} {found.score:.2f} {found.conflicts}"
                    )
                    print(f"    {pair['a']!r}\n    {pair['b']!r}")


if __name__ == "__main__":
    main()
