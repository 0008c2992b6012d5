"""Which words and facts of two texts have their counterpart in the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set

from holdfast.checks.text.folding import fold
from holdfast.checks.text.languages import Language
from holdfast.checks.text.quantities import Fact, agree
from holdfast.checks.text.sentence import Sentence, TextToken
from holdfast.checks.text.synonyms import opposites

Near = Callable[[str, str], bool]
"""Whether two words that are in no group mean the same."""

_PREFIXES = ("un", "in", "im", "ir", "il", "dis", "non", "des", "не", "nie", "on")
NEGATED = frozenset({"not"})
_ALIKE = 20
"""Words of a text that begin alike and are looked at."""
_CALLED = 200
"""Words in a text that are compared with each other one by one."""


def align(one: Sequence[Sentence], other: Sequence[Sentence], lang: Language, near: Near | None) -> None:
    """Marks every token that has a counterpart."""
    ours, theirs = _content(one), _content(other)
    _named(ours, theirs)
    _facts(ours, theirs)
    _weekdays(one, theirs)
    _weekdays(other, ours)
    keys, known = _keys(ours), _keys(theirs)
    for tokens, there in ((ours, known), (theirs, keys)):
        for token in tokens:
            if token.fact is None and token.key in there:
                token.matched = True
    _akin(ours, theirs)
    left, right = _left(ours), _left(theirs)
    _derived(left, right, lang)
    _denied(left, right)
    _denied(right, left)
    _spoken_of(one, other, lang)
    _spoken_of(other, one, lang)
    _not_opposite(one, other, opposites(lang.name))
    _not_opposite(other, one, opposites(lang.name))
    if near is not None and lang.name == "en":  # the vectors are of English words
        _by_meaning(_left(ours), _left(theirs), near, opposites(lang.name))


def _content(sentences: Iterable[Sentence]) -> list[TextToken]:
    return [token for sentence in sentences for token in sentence.content]


def _keys(tokens: Iterable[TextToken]) -> frozenset[str]:
    return frozenset(token.key for token in tokens if token.fact is None)


def _left(tokens: Iterable[TextToken]) -> list[TextToken]:
    return [token for token in tokens if not token.matched and token.fact is None]


def _named(ours: list[TextToken], theirs: list[TextToken]) -> None:
    """What is a name inside of one sentence is one at the beginning of another."""
    names = {token.key for token in (*ours, *theirs) if token.name}
    for token in (*ours, *theirs):
        token.name = token.name or (token.key in names and token.text[:1].isupper())


def _facts(ours: list[TextToken], theirs: list[TextToken]) -> None:
    """Each of the facts is looked up once, however often it is said."""
    mine, yours = _by_fact(ours), _by_fact(theirs)
    by_reading: dict[str, list[Fact]] = {}
    for fact in yours:
        for reading in _readings(fact):
            by_reading.setdefault(reading, []).append(fact)
    for fact, tokens in mine.items():
        found = {other: None for reading in _readings(fact) for other in by_reading.get(reading, ())[:_CALLED]}
        for other in (other for other in found if agree(fact, other)):
            key = "#" + min(fact.readings | other.readings)
            for token in (*tokens, *yours[other]):
                token.matched, token.key = True, key


def _weekdays(one: Sequence[Sentence], theirs: list[TextToken]) -> None:
    """`Friday, 5 April` is `5 April` where the other text names no weekday."""
    if any(token.fact is not None and _is_weekday(token.fact) for token in theirs):
        return
    for sentence in one:
        dated = [t for t in sentence.tokens if t.text != ","]
        for before, token, after in zip([None, *dated], dated, [*dated[1:], None], strict=False):
            beside = [t.fact for t in (before, after) if t is not None and t.matched and t.fact is not None]
            if token.fact is not None and _is_weekday(token.fact) and any("-" in r for f in beside for r in f.readings):
                token.matched, token.weight = True, 0.0


def _is_weekday(fact: Fact) -> bool:
    return fact.kind == "date" and any(reading.startswith("day") for reading in fact.readings)


def _by_fact(tokens: Iterable[TextToken]) -> dict[Fact, list[TextToken]]:
    found: dict[Fact, list[TextToken]] = {}
    for token in tokens:
        if token.fact is not None:
            found.setdefault(token.fact, []).append(token)
    return found


def _readings(fact: Fact) -> set[str]:
    return {*fact.readings, *map(str, fact.bare)}


def _akin(ours: list[TextToken], theirs: list[TextToken]) -> None:
    """Words that stand in one group, whichever of their groups that is."""
    shared = frozenset[str]().union(*(t.kin for t in ours)) & frozenset[str]().union(*(t.kin for t in theirs))
    for token in (*_left(ours), *_left(theirs)):
        if token.kin & shared:
            token.matched, token.key = True, min(token.kin & shared)


def _derived(left: list[TextToken], right: list[TextToken], lang: Language) -> None:
    """`refundable` and `refunded`, `employed` and `employment`: one word begins with the other's stem."""
    starts: dict[str, list[TextToken]] = {}
    for token in right:
        starts.setdefault(token.key[:4], []).append(token)
    for token in left:
        for other in starts.get(token.key[:4], ())[:_ALIKE]:
            if _same_root(token, other) or (lang.name in _INFLECTED and _same_beginning(token, other)):
                token.matched = other.matched = True
                token.key = other.key = min(token.key, other.key)


def _same_root(one: TextToken, other: TextToken) -> bool:
    if one.name or other.name or "=" in (one.key[0], other.key[0]):
        return False
    short, long = sorted((one.key, other.key), key=len)
    return len(short) >= 4 and long.startswith(short) and long[len(short) :] in _SUFFIXES


def _same_beginning(one: TextToken, other: TextToken) -> bool:
    """Where words have many endings: most of both is the same."""
    if one.name or other.name or "=" in (one.key[0], other.key[0]):
        return False
    same = next((n for n, (a, b) in enumerate(zip(one.key, other.key, strict=False)) if a != b), -1)
    same = min(len(one.key), len(other.key)) if same < 0 else same
    rest = max(len(one.key), len(other.key)) - same
    return (same >= 4 and rest <= 3 and same > rest) or (same >= 6 and rest <= 5)


_INFLECTED = frozenset({"de", "fr", "es", "pt", "it", "nl", "pl", "ru"})
_ADDED = """able ible al ally ion ive er or ance ence ity ness y ful r t d n en ung e es s ent ant ment tion keit
heit lich ed ing ation age ure ery ership ly ist ier ic ical"""
_SUFFIXES = frozenset(_ADDED.split())


def _spoken_of(one: Sequence[Sentence], other: Sequence[Sentence], lang: Language) -> None:
    """`Our office is closed` is `we are closed`, and `guests may park` is `you may park`."""
    for words, person in ((lang.house, "first"), (lang.public, "second")):
        if words and any(person in token.marks for sentence in other for token in sentence.tokens):
            for token in (t for s in one for t in s.content if not t.matched and fold(t.text) in words):
                token.matched = True


def _denied(left: list[TextToken], right: list[TextToken]) -> None:
    """`unsuccessful` is `successful`, denied."""
    plain = {fold(token.text): token for token in left}
    for token in right:
        word = fold(token.text)
        for prefix in _PREFIXES:
            bare = word.removeprefix(prefix)
            if word.startswith(prefix) and bare in plain and not token.matched:
                token.matched = plain[bare].matched = True
                token.key = plain[bare].key
                token.marks = token.marks | NEGATED


def _not_opposite(one: Sequence[Sentence], other: Sequence[Sentence], known: Mapping[str, Set[str]]) -> None:
    """`not open` is `closed`."""
    plain = {key: t for s in other for t in s.content if not t.matched for key in (t.key, *t.kin)}
    for tokens in (sentence.tokens for sentence in one):
        for at, token in enumerate(tokens):
            if token.key and not token.matched:
                denial = next((t for t in reversed(tokens[max(0, at - 3) : at]) if "not" in t.marks), None)
                against = frozenset[str]().union(*(known.get(key, ()) for key in (token.key, *token.kin)))
                found = sorted(against & plain.keys())
                if denial is not None and found:
                    token.matched = plain[found[0]].matched = True
                    token.key = plain[found[0]].key
                    denial.marks -= NEGATED


def _by_meaning(left: list[TextToken], right: list[TextToken], near: Near, known: Mapping[str, Set[str]]) -> None:
    for token in left[:_CALLED]:
        for other in right[:_CALLED]:
            apart = other.key in known.get(token.key, ()) or (token.key[0] == "=" and other.key[0] == "=")
            if other.matched or token.name or other.name or apart:
                continue
            if near(fold(token.text), fold(other.text)):
                token.matched = other.matched = True
                token.key = other.key = min(token.key, other.key)
                break
