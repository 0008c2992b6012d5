"""Who does what to whom: two things that changed places, and steps that changed their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from holdfast.checks.text.folding import fold
from holdfast.checks.text.languages import Language
from holdfast.checks.text.partners import Pairs
from holdfast.checks.text.sentence import ARTICLES, Sentence, TextToken

_LONGEST = 40
"""Content words of a sentence whose places are compared pair by pair."""
_LONG = 150
"""Tokens of a sentence in which it is looked who does what."""
_REACH = 2
_BETWEEN = frozenset({":", "to", "bis", "-", "<", ">", "<=", ">=", "≤", "≥"})
"""What stands between two things whose order counts."""
_PERSONS = ("first", "second", "third")
_BY_PARTICLES = frozenset({"zh", "ja", "hi"})
"""Languages in which particles, not places, say who does what."""
_PLACES = frozenset({"in", "at", "inside"})
_DOER = ("ом", "ем", "ём", "ой", "ей", "ами", "ями")
_CASES = {"der": "who", "den": "whom", "dem": "to whom", "ein": "who", "einen": "whom", "einem": "to whom"}


def differences(one: Sequence[Sentence], other: Sequence[Sentence], pairs: Pairs, lang: Language) -> Iterator[str]:
    """In a few words each, what changed places."""
    for sentence, counterpart in pairs:
        if len({token.key for token in sentence.content} & {token.key for token in counterpart.content}) >= 2:
            yield from _swapped(sentence, counterpart, lang)
            yield from _directions(sentence, counterpart)
            yield from _repeated(sentence, counterpart, lang)
    yield from _changed_hands(one, other)
    yield from _parted(one, other)
    yield from _parted(other, one)
    yield from _steps(one, other)
    yield from _ranges(one, other)


def _ranges(one: Sequence[Sentence], other: Sequence[Sentence]) -> Iterator[str]:
    """From where to where, and how much to how much: `9-5`, `1:2`, `x > y`."""
    ours, theirs = _ordered_pairs(one), _ordered_pairs(other)
    for (first, sign, last), shown in ours.items():
        turned = (last, sign, first)
        if turned in theirs and turned not in ours and (first, sign, last) not in theirs:
            yield f"{shown} was turned round"


def _ordered_pairs(sentences: Sequence[Sentence]) -> dict[tuple[str, str, str], str]:
    found = {}
    for sentence in sentences:
        tokens = sentence.tokens
        for at, token in enumerate(tokens[:-1]):
            sign = tokens[at + 1] if tokens[at + 1].text in _BETWEEN else None
            last = tokens[min(at + 2, len(tokens) - 1)] if sign else tokens[at + 1]
            if (sign is not None and sign.name) or _same_kind(token, last):
                said = (token.key or token.text, sign.key if sign else "", last.key or last.text)
                found[said] = " ".join(t.text for t in (token, sign, last) if t is not None)
    return found


def _same_kind(one: TextToken, other: TextToken) -> bool:
    return one.fact is not None and other.fact is not None and one.fact.kind == other.fact.kind


def _repeated(one: Sentence, other: Sentence, lang: Language) -> Iterator[str]:
    """Names that are said more than once keep the words beside them, where all words are the same."""
    if bool(_passive(one, lang)) != bool(_passive(other, lang)) or not _same_words(one, other):
        return
    counts = Counter(token.key for token in one.content if token.name)
    for name in [name for name, count in counts.items() if count > 1]:
        if _beside(one, name) != _beside(other, name):
            yield f"'{name}' stands by other words"


def _beside(sentence: Sentence, name: str) -> Counter[str]:
    """What stands before and after a name, each time."""
    keys = ["", *(token.key for token in sentence.content), ""]
    return Counter(
        found
        for at, key in enumerate(keys)
        if key == name
        for found in (f"<{keys[at - 1]}", f">{keys[at + 1]}")
        if len(found) > 1
    )


def _changed_hands(one: Sequence[Sentence], other: Sequence[Sentence]) -> Iterator[str]:
    """Two names that took over what the other did, however the sentences are cut."""
    said, told = _said_once(one), _said_once(other)
    names = [name for name in said if name in told][:_LONGEST]
    ours, theirs = ({name: _deeds(where[name], name) for name in names} for where in (said, told))
    for n, x in enumerate(names):
        for y in names[n + 1 :]:
            crossed = ours[x] & theirs[y] and ours[y] & theirs[x]
            if crossed and not (ours[x] & theirs[x] or ours[y] & theirs[y]):
                yield f"'{x}' and '{y}' changed places"
                return


def _said_once(sentences: Sequence[Sentence]) -> dict[str, Sentence]:
    """By name that is said once: its sentence."""
    counts = Counter(t.key for s in sentences for t in s.content if t.name)
    return {t.key: s for s in sentences for t in s.content if t.name and counts[t.key] == 1}


def _deeds(sentence: Sentence, name: str) -> frozenset[str]:
    """The words between the `and` or comma before a name and the next one."""
    places = _unique(sentence)
    return _mates(sentence, places, name) if name in places else frozenset()


def _parted(one: Sequence[Sentence], other: Sequence[Sentence]) -> Iterator[str]:
    """A number, date or name stays with words of its sentence."""
    if len(one) > _LONGEST or len(other) > _LONGEST:
        return
    words = [{t.key for t in s.content if t.fact is None and not t.name} for s in other]
    told = [{t.key for t in s.content if t.fact is not None or t.name} for s in other]
    for sentence in one:
        mine = {t.key for t in sentence.content if t.fact is None and not t.name and t.weight == 1.0}
        rivals = [n for n, own in enumerate(words) if mine & own]
        for token in (t for t in sentence.content if (t.fact is not None or t.name) and t.matched):
            holders = [n for n, own in enumerate(told) if token.key in own]
            if holders and rivals and not set(holders) & set(rivals) and any(mine <= words[n] for n in rivals):
                yield f"'{token.text}' stands by other words"


def _directions(one: Sentence, other: Sentence) -> Iterator[str]:
    """`to Rome` is not `from Rome`."""
    ours, theirs = _unique(one), _unique(other)
    for key in [key for key in ours if key in theirs][:_LONGEST]:
        a, b = _direction(one.tokens, ours[key]), _direction(other.tokens, theirs[key])
        if a and b and not a & b:
            yield f"'{other.tokens[theirs[key]].text}' changed from where it goes to where it comes from, or back"


def _direction(tokens: list[TextToken], at: int) -> frozenset[str]:
    before = next((token for token in reversed(tokens[max(0, at - 3) : at]) if fold(token.text) not in ARTICLES), None)
    return before.marks & {"toward", "away"} if before is not None else frozenset()


def _swapped(one: Sentence, other: Sentence, lang: Language) -> Iterator[str]:
    ours, theirs = _unique(one), _unique(other)
    shared = [key for key in ours if key in theirs and fold(one.tokens[ours[key]].text) not in lang.times_of_day][
        :_LONGEST
    ]
    turned = bool(_passive(one, lang)) != bool(_passive(other, lang))
    if turned:
        yield from _turned_wrong(one, other, lang)
        return
    alike = _same_words(one, other)
    around_a = {key: _around(one.tokens, ours[key]) for key in shared}
    around_b = {key: _around(other.tokens, theirs[key]) for key in shared}
    for n, x in enumerate(shared):
        for y in shared[n + 1 :]:
            if x.startswith("@") != y.startswith("@") or not (alike or _both_told(one.tokens, ours[x], ours[y])):
                continue
            mates = alike and _mates_swapped(one, other, ours, theirs, (x, y))
            if mates or (
                _exchanged(x, y, around_a, around_b) and not _may_move(one, other, ours, theirs, (x, y), lang)
            ):
                yield f"'{one.tokens[ours[x]].text}' and '{one.tokens[ours[y]].text}' changed places"
                return
    if lang.name == "de":
        yield from _cases(one, other, ours, theirs, shared)


def _may_move(
    one: Sentence, other: Sentence, ours: dict[str, int], theirs: dict[str, int], pair: tuple[str, str], lang: Language
) -> bool:
    """Whether two words may change places and say the same."""
    x, y = pair
    sides = ((one, ours[x], ours[y]), (other, theirs[x], theirs[y]))
    if any(_equals(*side) or _side_by_side(*side, lang) for side in sides) or all(_identity(*side) for side in sides):
        return True
    if _facts_kept(one, other, ours, theirs, pair) or (lang.name == "en" and _where_it_is_done(sides)):
        return True
    if lang.name == "ru" and _instrumental(one, other, ours, theirs, pair):
        return True
    return lang.name in ("ru", "pl") and _same_forms(one, other, ours, theirs, pair)


def _where_it_is_done(sides: Sequence[tuple[Sentence, int, int]]) -> bool:
    """`The shop takes cash` is `cash is taken at the shop`: what did it in one stands after `at` in the passive."""
    told = [any(t.marks & {"is", "was"} for t in sentence.tokens) for sentence, _, _ in sides]
    if told[0] == told[1]:
        return False
    sentence, x, y = sides[told.index(True)]
    before = [fold(t.text) for t in sentence.tokens[max(0, max(x, y) - 2) : max(x, y)]]
    return any(word in _PLACES for word in before)


def _same_words(one: Sentence, other: Sentence) -> bool:
    """Whether nearly all words are in both: only then does their order tell who does what."""
    a, b = Counter(filter(None, map(_said, one.tokens))), Counter(filter(None, map(_said, other.tokens)))
    return 10 * sum((a & b).values()) >= 9 * max(sum(a.values()), sum(b.values()))


def _both_told(tokens: list[TextToken], at: int, other: int) -> bool:
    """Whether both are names, numbers or dates."""
    return all(tokens[n].name or tokens[n].fact is not None for n in (at, other))


def _unique(sentence: Sentence) -> dict[str, int]:
    """By key, the place of every word that stands there once."""
    keys = [token.key or _person(token) for token in sentence.tokens]
    counts = Counter(keys)
    return {key: at for at, key in enumerate(keys) if key and counts[key] == 1}


def _person(token: TextToken) -> str:
    """`we` and `us` are one, and so are all that are spoken to."""
    return next((f"@{person}" for person in _PERSONS if person in token.marks), "")


def _around(tokens: list[TextToken], at: int) -> frozenset[str]:
    """What stands left and right of a word: the next words, small ones too."""
    left = [_said(t) for t in tokens[max(0, at - 6) : at] if _said(t)][-_REACH:]
    right = [_said(t) for t in tokens[at + 1 : at + 7] if _said(t)][:_REACH]
    owner = ["'s"] if tokens[at].text.endswith(("'s", "s'")) else []
    return frozenset([f"<{word}" for word in left] + [f">{word}" for word in right] + owner)


def _said(token: TextToken) -> str:
    word = fold(token.text)
    idle = word in ARTICLES or token.text in ",:" or not token.marks.isdisjoint(("is", "was"))
    return token.key or _person(token) or ("" if idle else word)


def _exchanged(x: str, y: str, a: dict[str, frozenset[str]], b: dict[str, frozenset[str]]) -> bool:
    own = {f"<{x}", f">{x}", f"<{y}", f">{y}"}
    stay = len((a[x] & b[x]) - own) + len((a[y] & b[y]) - own)
    cross_x, cross_y = len((a[x] & b[y]) - own), len((a[y] & b[x]) - own)
    return cross_x > 0 and cross_y > 0 and cross_x + cross_y > stay


def _equals(sentence: Sentence, at: int, other: int) -> bool:
    """Whether only `and`, commas and other members of the list stand between two words."""
    first, last = sorted((at, other))
    between = sentence.tokens[first + 1 : last]
    joins = sum("and" in token.marks or token.text == "," for token in between)
    if sentence.tokens[at].name and sentence.tokens[other].name and any(t.key and not t.name for t in between):
        return False  # `Ann called and Ben answered` is no list
    words = sum(bool(token.key) for token in between)
    return (
        joins > 0
        and words <= 3 * joins
        and not any(token.marks & {"not", "if", "because", "step", "past", "is", "was"} for token in between)
    )


def _both_mates(
    one: Sentence, other: Sentence, ours: dict[str, int], theirs: dict[str, int], pair: tuple[str, str]
) -> list[frozenset[str]]:
    """What stands with the first and the second of a pair, in one sentence and then in the other."""
    return [_mates(sentence, at, word) for sentence, at in ((one, ours), (other, theirs)) for word in pair]


def _mates_swapped(
    one: Sentence, other: Sentence, ours: dict[str, int], theirs: dict[str, int], pair: tuple[str, str]
) -> bool:
    """Whether two members of a list were exchanged, but not what stands with them: `sold the car, kept the house`."""
    a, b, c, d = _both_mates(one, other, ours, theirs, pair)
    return bool(a & d and b & c) and not (a & c or b & d)


def _facts_kept(
    one: Sentence, other: Sentence, ours: dict[str, int], theirs: dict[str, int], pair: tuple[str, str]
) -> bool:
    """Whether both stand in clauses of their own and each took its number along: `gate A at 10, gate B at 11`."""
    x, y = pair
    a, b, c, d = _both_mates(one, other, ours, theirs, pair)
    if x in b or x in d or "#" in (x[0], y[0]):
        return False
    return all(any(key[0] == "#" for key in kept) for kept in (a & c, b & d))


def _mates(sentence: Sentence, places: dict[str, int], key: str) -> frozenset[str]:
    """The other words, said once, between the `and` or comma before a word and the next one."""
    tokens, at = sentence.tokens, places[key]
    ends = [n for n, token in enumerate(tokens) if "and" in token.marks or token.text == ","]
    first = max((n for n in ends if n < at), default=-1)
    last = min((n for n in ends if n > at), default=len(tokens))
    return frozenset(t.key for t in tokens[first + 1 : last] if t.key != key and places.get(t.key) is not None)


def _side_by_side(sentence: Sentence, at: int, other: int, lang: Language) -> bool:
    """Whether they are a verb and what goes with it, which may stand on either side; never two names or numbers."""
    first, last = sorted((at, other))
    tokens = sentence.tokens
    if _says_when(tokens[at]) != _says_when(tokens[other]) or _is_amount(tokens[at]) != _is_amount(tokens[other]):
        return True
    if lang.name in _BY_PARTICLES or _both_told(tokens, at, other):
        return False
    return not any(token.key and fold(token.text) not in lang.times_of_day for token in tokens[first + 1 : last])


def _is_amount(token: TextToken) -> bool:
    """A number neither does a thing nor is it done to."""
    return token.fact is not None and token.fact.kind == "quantity"


def _says_when(token: TextToken) -> bool:
    return token.fact is not None and token.fact.kind in ("date", "clock")


def _identity(sentence: Sentence, at: int, other: int) -> bool:
    """Whether one thing is said to be the other: `Paris is the capital`. Of two names only one can be that."""
    first, last = sorted((at, other))
    tokens = sentence.tokens
    if (tokens[at].name and tokens[other].name) or any("than" in token.marks for token in tokens):
        return False
    if any("agent" in token.marks for token in tokens[first + 1 : last]):
        return False  # in `was praised by` nothing is said to be the other
    return any(token.marks & {"is", "was"} for token in tokens[first:last]) or any("is" in t.marks for t in tokens[:1])


def _same_forms(
    one: Sentence, other: Sentence, ours: dict[str, int], theirs: dict[str, int], keys: tuple[str, str]
) -> bool:
    """Where endings say who does what, words with the same endings keep their roles in any order."""
    return all(fold(one.tokens[ours[key]].text) == fold(other.tokens[theirs[key]].text) for key in keys)


def _instrumental(
    one: Sentence, other: Sentence, ours: dict[str, int], theirs: dict[str, int], keys: tuple[str, str]
) -> bool:
    """Whether one sentence is passive, and the doer has the ending of one: `заменён мастером`."""
    told = [any(t.marks & {"was", "past"} for t in sentence.tokens) for sentence in (one, other)]
    ends = [any(s.tokens[at[key]].text.endswith(_DOER) for key in keys) for s, at in ((one, ours), (other, theirs))]
    return told[0] != told[1] and ends[told.index(True)] and not ends[told.index(False)]


def _passive(sentence: Sentence, lang: Language) -> int:
    """The place of who did it, after `by`; 0 if the sentence does not say so."""
    for at, token in enumerate(sentence.tokens):
        if "agent" in token.marks and at:
            after = next((t for t in sentence.tokens[at + 1 : at + 6] if t.key), None)
            helped = any(t.marks & {"past", "was", "is", "will"} for t in sentence.tokens[:at]) or lang.name == "zh"
            if after is not None and after.fact is None and helped:
                return at + 1
    return 0


def _turned_wrong(one: Sentence, other: Sentence, lang: Language) -> Iterator[str]:
    """Whoever did it in the passive must come before what was done to, in the active."""
    active, passive = (other, one) if _passive(one, lang) else (one, other)
    at = _passive(passive, lang)
    doer = next((t for t in passive.tokens[at:] if t.key), None)
    done_to = next((t for t in passive.tokens[:at] if t.key and t.matched), None)
    places = _unique(active)
    if doer is None or done_to is None or doer.key not in places or done_to.key not in places:
        return
    if any("agent" in token.marks for token in active.tokens[max(0, places[doer.key] - 3) : places[doer.key]]):
        return  # no doer: `par carte`
    if places[doer.key] > places[done_to.key]:
        yield f"'{doer.text}' and '{done_to.text}' changed places"


def _cases(
    one: Sentence, other: Sentence, ours: dict[str, int], theirs: dict[str, int], shared: list[str]
) -> Iterator[str]:
    """German articles say who does what."""
    told = [(key, _case(one, ours[key]), _case(other, theirs[key])) for key in shared]
    changed = [(key, a, b) for key, a, b in told if a and b and a != b]
    if len(changed) >= 2 and {a for _, a, _ in changed} == {b for _, _, b in changed}:
        yield f"'{changed[0][0]}' and '{changed[1][0]}' changed places"


def _case(sentence: Sentence, at: int) -> str:
    return _CASES.get(fold(sentence.tokens[at - 1].text), "") if at else ""


def _steps(one: Sequence[Sentence], other: Sequence[Sentence]) -> Iterator[str]:
    """Where both texts number their steps, or say first and then, the order is part of the answer."""
    if not (_ordered(one) and _ordered(other)):
        return
    first, second = _sequence(one), _sequence(other)
    shared = [key for key in first if key in set(second)]
    again = [key for key in second if key in set(first)]
    if len(shared) >= 2 and _moved(shared, again) * 2 >= len(shared):
        yield "the steps are in another order"


def _ordered(sentences: Sequence[Sentence]) -> bool:
    return sum(s.numbered for s in sentences) > 1 or sum("step" in t.marks for s in sentences for t in s.tokens) > 0


def _sequence(sentences: Sequence[Sentence]) -> list[str]:
    return list(dict.fromkeys(token.key for sentence in sentences for token in sentence.content))[: 4 * _LONGEST]


def _moved(shared: list[str], again: list[str]) -> int:
    """How many words stand on the other side of the middle."""
    half = (len(shared) + 1) // 2
    return len(set(shared[:half]) - set(again[:half])) + len(set(shared[half:]) - set(again[half:]))
