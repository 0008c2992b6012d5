"""Proof that a regex matches nothing, whatever the text.

A walk over the parsed pattern with every state the engine could be in: the character before, and the characters that
may come next. What is not understood widens the states, so that a pattern that could match is never called dead.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from holdfast.checks.pattern_alphabet import WORD, WORD_ASCII, Alphabet, CharSet, char_set

State = tuple[int, int]
"""The kind of the character before, as a bit (the end's bit: nothing is before), and the kinds that may come next."""
Items = Sequence[tuple[Any, Any]]

_LIMIT = 20_000
"""States that are looked at before the proof is given up."""
_ONE_CHARACTER = (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN)
_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
_TYPES = re.ASCII | re.LOCALE | re.UNICODE
_FLAGS = {"s": re.DOTALL, "i": re.IGNORECASE}
# Only a condition on the place, or a set that says what not, can leave nothing.
_CONDITION = re.compile(r"[$^]|\\[AZbB]|\(\?[=!<]")
# Where the engine and Python's parser read different things: `[[:alpha:]]`, and `{e<=1}` behind what may be misspelt.
_OTHER_DIALECT = re.compile(r"\[:|\{(?!\d+(?:,\d*)?\}|,\d+\})")


class _GivenUp(Exception):
    """The pattern is too large, or holds what is not known here."""


@lru_cache(maxsize=4096)
def never_matches(pattern: str, flags: str = "") -> bool:
    """Whether the pattern provably matches no text; False also where that cannot be told."""
    if not _CONDITION.search(pattern) or _OTHER_DIALECT.search(re.sub(r"\\.", "", pattern, flags=re.DOTALL)):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = parser.parse(pattern, sum(_FLAGS[letter] for letter in flags))
        if tree.state.flags & (re.VERBOSE | re.LOCALE):
            return False
        return not _PatternWalk(tree, tree.state.flags).ends
    except (re.error, ValueError, OverflowError, RecursionError, _GivenUp):
        return False


class _PatternWalk:
    """One walk; `ends` holds the states in which a match may end."""

    def __init__(self, tree: Items, flags: int) -> None:
        self._left = _LIMIT
        self._alphabet = alphabet = Alphabet(_char_sets(tree, flags))
        kinds = [1 << n for n in range(alphabet.count)]
        self._start = alphabet.end
        free = {(before, alphabet.everything) for before in (*kinds, self._start)}
        self._anywhere = frozenset(free | {(alphabet.last_newline, alphabet.end)})
        self.ends = self._after(tree, self._anywhere, flags)

    def _after(self, items: Items, states: Iterable[State], flags: int) -> set[State]:
        """The states that can follow once all items have matched."""
        reached = set(states)
        for op, argument in items:
            self._left -= len(reached) + 1
            if self._left < 0:
                raise _GivenUp
            if not reached:
                return reached
            reached = self._follow(op, argument, reached, flags)
        return reached

    def _follow(self, op: Any, argument: Any, states: set[State], flags: int) -> set[State]:
        if op in _ONE_CHARACTER:
            return self._read(states, self._alphabet.mask(char_set(op, argument, flags)))
        if op is sre.AT:
            return {(before, left) for before, may in states if (left := may & self._fits(argument, before, flags))}
        if op in _REPEATS:
            return self._repeated(argument, states, flags)
        if op in (sre.ASSERT, sre.ASSERT_NOT):
            return self._looked(op is sre.ASSERT, argument, states, flags)
        if op is sre.GROUPREF:
            return states | set(self._anywhere)
        return set().union(*(self._after(items, states, within) for items, within in _parts(op, argument, flags)))

    def _read(self, states: Iterable[State], chars: int) -> set[State]:
        """One character of these kinds is read; behind a last line break is the end."""
        alphabet = self._alphabet
        read = {bit for _, may in states for bit in _bits(may & chars)}
        return {(bit, alphabet.end if bit == alphabet.last_newline else alphabet.everything) for bit in read}

    def _fits(self, place: Any, before: int, flags: int) -> int:
        """The kinds that may come next where this condition on the place holds."""
        alphabet = self._alphabet
        lines = bool(flags & re.MULTILINE)
        if place in (sre.AT_BEGINNING, sre.AT_BEGINNING_STRING):
            broken = lines and place is sre.AT_BEGINNING and before & (alphabet.newline | alphabet.last_newline)
            return alphabet.everything if before == self._start or broken else 0
        if place is sre.AT_END_STRING:
            return alphabet.end
        if place is sre.AT_END:
            return alphabet.end | alphabet.last_newline | (alphabet.newline if lines else 0)
        if place not in (sre.AT_BOUNDARY, sre.AT_NON_BOUNDARY):
            raise _GivenUp
        word = alphabet.mask(WORD_ASCII if flags & re.ASCII else WORD)
        inside = bool(before & word)
        return alphabet.everything & ~word if inside == (place is sre.AT_BOUNDARY) else word

    def _repeated(self, argument: Any, states: set[State], flags: int) -> set[State]:
        """Two rounds are walked one by one; from there on it counts as any number of them."""
        least, most, body = argument
        walked = min(int(least), 2)
        for _ in range(walked):
            states = self._after(body, states, flags)
        rounds = float("inf") if least > 2 else int(most) - walked
        reached, new = set(states), states
        while new and rounds > 0:
            new = self._after(body, new, flags) - reached
            reached |= new
            rounds -= 1
        return reached

    # -- what stands before or behind -------------------------------------------------------------
    def _looked(self, wanted: bool, argument: Any, states: set[State], flags: int) -> set[State]:
        direction, body = argument
        if direction < 0:
            return self._behind(body, states, flags) if wanted else self._not_behind(body, states, flags)
        found = set()
        for before, may in states:
            if wanted:
                left = sum(bit for bit in _bits(may) if self._after(body, [(before, bit)], flags))
            else:
                left = sum(bit for bit in _bits(may) if not self._surely(list(body), before, bit, flags))
            if left:
                found.add((before, left))
        return found

    def _behind(self, body: Items, states: set[State], flags: int) -> set[State]:
        ends = self._after(body, self._anywhere, flags)
        return {(before, may & then) for before, may in states for end, then in ends if end == before and may & then}

    def _not_behind(self, body: Items, states: set[State], flags: int) -> set[State]:
        if not body:
            return set()
        (op, argument), more = body[0], body[1:]
        if op not in _ONE_CHARACTER or more:
            return states
        chars = char_set(op, argument, flags)
        refused = self._alphabet.mask(chars) if chars.exact else 0
        return {(before, may) for before, may in states if before == self._start or not before & refused}

    def _surely(self, items: Items, before: int, bit: int, flags: int) -> bool:
        """Whether the items match every text that goes on like this; False where that cannot be told."""
        if not items:
            return True
        (op, argument), rest = items[0], items[1:]
        if op in _ONE_CHARACTER:
            chars = char_set(op, argument, flags)
            return chars.exact and bool(self._alphabet.mask(chars) & bit) and all(map(_optional, rest))
        if op is sre.AT:  # engines differ in what \B is in an empty text
            known = before != self._start or argument not in (sre.AT_BOUNDARY, sre.AT_NON_BOUNDARY)
            return known and bool(self._fits(argument, before, flags) & bit) and self._surely(rest, before, bit, flags)
        if op in (sre.SUBPATTERN, sre.BRANCH):
            parts = _parts(op, argument, flags)
            return any(within == flags and self._surely([*part, *rest], before, bit, flags) for part, within in parts)
        return _optional(items[0]) and op is not sre.POSSESSIVE_REPEAT and self._surely(rest, before, bit, flags)


def _parts(op: Any, argument: Any, flags: int) -> list[tuple[Items, int]]:
    """The parts of a group, of which any may match, with the flags inside."""
    if op is sre.SUBPATTERN:
        _, added, removed, body = argument
        kept = flags & ~_TYPES if added & _TYPES else flags
        return [(body, (kept | added) & ~removed)]
    if op is sre.BRANCH:
        return [(branch, flags) for branch in argument[1]]
    if op is sre.ATOMIC_GROUP:
        return [(argument, flags)]
    if op is sre.GROUPREF_EXISTS:
        return [(argument[1], flags), (argument[2] or [], flags)]
    if op is sre.FAILURE:
        return []
    raise _GivenUp


def _char_sets(items: Items, flags: int) -> Iterator[CharSet]:
    for op, argument in items:
        if op in _ONE_CHARACTER:
            yield char_set(op, argument, flags)
        elif op in _REPEATS:
            yield from _char_sets(argument[2], flags)
        elif op in (sre.ASSERT, sre.ASSERT_NOT):
            yield from _char_sets(argument[1], flags)
        elif op not in (sre.AT, sre.GROUPREF):
            for part, within in _parts(op, argument, flags):
                yield from _char_sets(part, within)


def _optional(item: tuple[Any, Any]) -> bool:
    op, argument = item
    return op in _REPEATS and argument[0] == 0


def _bits(mask: int) -> Iterator[int]:
    while mask:
        bit = mask & -mask
        yield bit
        mask ^= bit
