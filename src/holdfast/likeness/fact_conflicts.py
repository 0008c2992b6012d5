"""Finds facts that two texts state differently: numbers, dates, names and codes that were replaced or swapped."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

from holdfast.likeness.align import COMPARABLE, Conflict, Statement, TextPair, is_same_fact
from holdfast.likeness.tokens import TextToken

_REACH = 8
"""Words on either side of a fact that are its context."""
_OUTSIDE = 0.4
"""Weight of a context word in another clause."""
_REPLACED = 0.35
_TURNED, _TRIED = 0.2, 5
"""How strongly contexts must point the other way, and how many occurrences of one fact are tried."""

TokenContext = dict[str, float]


def get_context(token: TextToken, statement: Statement) -> TokenContext:
    """Return the words around a token, weighted by distance.

    For a row or item also its label, and the previous word.
    """
    if token.context is None:
        token.context = _build_context(token, statement)
    return token.context


def _build_context(token: TextToken, statement: Statement) -> TokenContext:
    content = statement.content
    at = next(n for n, other in enumerate(content) if other is token)
    clause = next(clause for clause in statement.clauses if any(other is token for other in clause.tokens))
    inside = {id(other) for other in clause.tokens}
    first = (
        {id(other) for other in statement.clauses[0].tokens}
        if statement.line.kind in ("row", "item", "step")
        else set()
    )
    weights: TokenContext = {}
    # The words around a fact say what it is about, and the nearest say it best: weight falls with distance, and again
    # at the border of the clause.
    for n in range(max(0, at - _REACH), min(len(content), at + _REACH + 1)):
        if n != at and content[n].kind != token.kind:  # Two adjacent numbers say nothing about each other.
            weight = (1.0 if id(content[n]) in inside else _OUTSIDE) / abs(n - at)
            weights[content[n].key] = max(weights.get(content[n].key, 0.0), weight)
    # A row or an item begins with its label, which applies to every fact in it, however far away.
    for other in statement.clauses[0].content if first else ():
        if other is not token:
            weights[other.key] = max(weights.get(other.key, 0.0), 0.5)
    words = [other for other in clause.tokens if other.kind != "sign"]
    place = next(n for n, other in enumerate(words) if other is token)
    if place:
        weights[f"<{words[place - 1].text.lower()}"] = 0.7
    return weights


def compute_similarity(one: TokenContext, other: TokenContext) -> float:
    """Return the cosine of two contexts."""
    same = sum(weight * other[key] for key, weight in one.items() if key in other)
    size = sqrt(sum(w * w for w in one.values()) * sum(w * w for w in other.values()))
    return same / size if size else 0.0


def find_replaced_facts(pair: TextPair) -> Iterator[Conflict]:
    """Yield the numbers, dates, names or codes that were replaced, removed, added, or swapped with each other."""
    yield from _find_replaced(pair)
    yield from (Conflict(code, theirs, ours) for code, ours, theirs in _find_replaced(pair.swapped))


def _find_replaced(pair: TextPair) -> Iterator[Conflict]:
    for at, statement in enumerate(pair.one.statements):
        near = [(token, n) for _, n in pair.one_covered[at].nearest for token in pair.other.statements[n].content]
        for token in (token for token in statement.content if token.kind != "word"):
            conflict = _find_fact_conflict(token, at, near, pair)
            if conflict:
                yield conflict


def _find_fact_conflict(
    token: TextToken, at: int, near: list[tuple[TextToken, int]], pair: TextPair
) -> Conflict | None:
    same = pair.other.find_partners(token)
    context = get_context(token, pair.one.statements[at])
    rivals = [
        (compute_similarity(context, get_context(other, pair.other.statements[n])), other, n)
        for other, n in near
        if other.kind in COMPARABLE[token.kind]
        and not is_same_fact(token, other)
        and _is_comparable(token, other, bool(same))
    ]
    best, rival, n = max(rivals, key=lambda candidate: candidate[0], default=(0.0, None, 0))
    # A fact that the other text lacks was replaced if another fact has the same context there and has no counterpart
    # either. Without such a rival it is missing; names and soft facts may be left out.
    if not same:
        if rival is not None and best >= _REPLACED and not pair.one.find_partners(rival):
            return Conflict(token.kind, token.text, rival.text)
        if token.kind == "name" or (token.fact is not None and token.fact.soft):
            return None
        return Conflict(token.kind, token.text, "")
    # A fact that both texts have may have been swapped with another: "A costs 5, B costs 7" against "A costs 7, B costs
    # 5". Every number is there, so only the contexts can show it.
    for _, other, n in rivals:
        if _is_swapped((token, at), (other, n), pair):
            return Conflict("exchanged", token.text, other.text)
    return None


def _is_swapped(ours: tuple[TextToken, int], rival: tuple[TextToken, int], pair: TextPair) -> bool:
    """Return whether a fact and its rival in the other text have each other's context.

    The difference of their contexts in one text is compared with that in the other: if it points the other way for
    every occurrence, the two were swapped.
    """
    same, partners = pair.other.find_partners(ours[0])[:_TRIED], pair.one.find_partners(rival[0])[:_TRIED]
    here = pair.one.statements[ours[1]]
    if not same or not partners or any(_is_listed(ours[0], t, here) for t, n in partners if n == ours[1]):
        return False
    context, rival_context = get_context(ours[0], here), get_context(rival[0], pair.other.statements[rival[1]])
    apart_here = [_subtract_contexts(context, get_context(t, pair.one.statements[n])) for t, n in partners]
    apart_there = [_subtract_contexts(get_context(t, pair.other.statements[n]), rival_context) for t, n in same]
    return max(compute_similarity(this, that) for this in apart_here for that in apart_there) <= -_TURNED


def _is_listed(one: TextToken, other: TextToken, statement: Statement) -> bool:
    """Return whether two facts are members of one list, whose order has no meaning: `Dana, Luis and Mei`."""
    tokens = statement.tokens
    places = [n for n, token in enumerate(tokens) if token is one or token is other]
    between = tokens[places[0] + 1 : places[-1]]
    return all(token.kind in ("sign", one.kind) or "and" in token.marks for token in between)


def _subtract_contexts(one: TokenContext, other: TokenContext) -> TokenContext:
    """Return the difference of two contexts: positive for words of the first, negative for words of the second."""
    return {key: one.get(key, 0.0) - other.get(key, 0.0) for key in one.keys() | other.keys()}


def _is_comparable(one: TextToken, other: TextToken, exactly: bool) -> bool:
    if one.fact and other.fact:
        return one.fact.dimension == other.fact.dimension or (
            not exactly and "" in (one.fact.dimension, other.fact.dimension)
        )
    return True


def find_reversed_bounds(pair: TextPair) -> Iterator[Conflict]:
    """Find reversed bounds: `at least 12` became `at most 12`."""
    for token, at in pair.one.by_kind["number"]:
        if token.bound:
            near = {n for _, n in pair.one_covered[at].nearest}
            same = [t for t, n in pair.other.by_kind["number"] if n in near and is_same_fact(token, t)]
            if same and all(t.bound and t.bound != token.bound for t in same):
                yield Conflict("bound", f"{token.bound} {token.text}", f"{same[0].bound} {same[0].text}")
