"""What makes two like-sounding texts different answers. No embedding sees a negation or a changed number."""

from __future__ import annotations

from collections.abc import Iterator, Set

from holdfast.checks.facts import Facts, stem

_OPPOSITES = (
    "true/false",
    "open/closed",
    "approved accepted granted allowed/rejected denied refused forbidden prohibited",
    "up increased rose risen grew grown climbed gained higher/down decreased fell fallen dropped shrank lost lower",
    "succeeded success passed/failed failure",
    "favour favor/against",
    "left/right",
    "enabled/disabled",
    "included/excluded",
    "before/after",
    "above/below",
    "buy bought/sell sold",
    "public/private",
    "safe/dangerous harmful",
    "high/low",
    "early/late",
    "first/last",
    "profit/loss",
    "won/lost",
    "hot/cold",
    "positive/negative",
    "minimum/maximum",
    "started/stopped",
    "added/removed",
    "online/offline",
    "today/tomorrow/yesterday",
    "morning/afternoon/evening",
    "daily/weekly/monthly/yearly",
    "north/south/east/west",
    "red/green/blue/yellow/orange/black/white",
    "kilometres km/miles",
    "celsius/fahrenheit",
    "euros/dollars",
    "am/pm",
)
_PREFIXES = ("un", "in", "im", "dis", "non")


def _table() -> dict[str, frozenset[str]]:
    table: dict[str, frozenset[str]] = {}
    for line in _OPPOSITES:
        sides = [frozenset(stem(word) for word in side.split()) for side in line.split("/")]
        for side in sides:
            others = frozenset().union(*sides) - side
            table.update({word: table.get(word, frozenset()) | others for word in side})
    return table


_OPPOSITE_OF = _table()


def conflicts(expected: Facts, answer: Facts) -> list[str]:
    """In a few words each, what the answer says otherwise than expected; empty if nothing."""
    return [
        *_numbers(expected, answer),
        *_names(expected, answer),
        *_negations(expected, answer),
        *_opposites(expected, answer),
    ]


def _numbers(expected: Facts, answer: Facts) -> Iterator[str]:
    # 'one' is more often a pronoun than a number, so it is never missed.
    lost, new = expected.numbers - answer.numbers - {1.0}, answer.numbers - expected.numbers
    if lost:
        became = f"became {_shown(new)}" if new else "is missing"
        yield f"number {_shown(lost)} {became}"


def _shown(numbers: frozenset[float]) -> str:
    return ", ".join(f"{n:.12g}" for n in sorted(numbers)[:3])


def _names(expected: Facts, answer: Facts) -> Iterator[str]:
    lost = {n for n in expected.names if not _known(n, answer)}
    new = {n for n in answer.names if not _known(n, expected)}
    lost_openers, new_openers = expected.openers - answer.words, answer.openers - expected.words
    if not lost and not new and expected.words - lost_openers == answer.words - new_openers:
        # All else is the same: then the word that begins the sentence is what the sentence is about.
        lost, new = set(lost_openers), set(new_openers)
    if lost and (new or new_openers):
        yield f"name {_written(lost, expected)} became {_written(new or new_openers, answer)}"
    elif len(lost) > 1 and 2 * len(lost) > len(expected.names):
        yield f"name {_written(lost, expected)} and others are missing"


def _written(stems: Set[str], facts: Facts) -> str:
    """One of the stems, as the text writes it."""
    first = min(stems)
    return facts.spelling.get(first, first)


def _known(name: str, facts: Facts) -> bool:
    """Whether the other text has the name too, or a form of it (Norway, Norwegian)."""
    return name in facts.words or any(name[:4] == n[:4] and len(name) > 4 for n in facts.names | facts.openers)


def _negations(expected: Facts, answer: Facts) -> Iterator[str]:
    if expected.verdict and answer.verdict and expected.verdict != answer.verdict:
        yield f"{expected.verdict} became {answer.verdict}"
    lost, gained = _turned(expected, answer), _turned(answer, expected)
    # Turned both ways, the negation only moved: 'do not need a receipt', 'no receipt is needed'.
    if lost and not gained:
        yield f"'{_written(lost, expected)}' is now denied"
    if gained and not lost:
        yield f"'{_written(gained, answer)}' is no longer denied"


def _turned(one: Facts, other: Facts) -> Set[str]:
    """Words that one text states and the other denies, by a negation or by a prefix."""
    turned = (one.stated - one.denied) & (other.denied - other.stated)
    only = one.stated - other.words
    prefixed = {w for w in only for p in _PREFIXES if p + w in other.stated - one.words}
    # Irregular forms: 'sent' and 'not send'.
    bent = {w for w in only for d in other.denied - one.words if len(w) == len(d) > 3 and w[:3] == d[:3]}
    return turned | prefixed | bent


def _opposites(expected: Facts, answer: Facts) -> Iterator[str]:
    for word in sorted(expected.stated - answer.words):
        turned = _OPPOSITE_OF.get(word, frozenset()) & (answer.stated - expected.words)
        if turned:
            yield f"'{_written({word}, expected)}' became '{_written(turned, answer)}'"
