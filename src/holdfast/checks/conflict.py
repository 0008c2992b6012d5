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
    lost, new = _strange(expected.names, answer), _strange(answer.names, expected)
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


def _strange(names: Set[str], facts: Facts) -> set[str]:
    """The names that the other text has in no form (Norway, Norwegian)."""
    words, forms = facts.words, {name[:4] for name in facts.names | facts.openers}
    return {n for n in names if n not in words and not (len(n) > 4 and n[:4] in forms)}


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
    known = one.words
    new = other.stated - known
    prefixed = {w for p in _PREFIXES for n in new if n.startswith(p) and (w := n.removeprefix(p)) in only}
    # Irregular forms: 'sent' and 'not send'.
    shapes = {(len(d), d[:3]) for d in other.denied - known if len(d) > 3}
    return turned | prefixed | {w for w in only if (len(w), w[:3]) in shapes}


def _opposites(expected: Facts, answer: Facts) -> Iterator[str]:
    gone, come = expected.stated - answer.words, answer.stated - expected.words
    for word in sorted(gone & _OPPOSITE_OF.keys()):
        turned = _OPPOSITE_OF[word] & come
        if turned:
            yield f"'{_written({word}, expected)}' became '{_written(turned, answer)}'"
