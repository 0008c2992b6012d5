"""Finds contradictions between texts other than facts: negation, certainty, words, order, questions, conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from holdfast.likeness.align import Conflict, Side, Statement, StatementCoverage, TextPair
from holdfast.likeness.fact_conflicts import find_replaced_facts, find_reversed_bounds
from holdfast.likeness.tokens import Clause, TextToken

_SAME_CLAUSE, _NEARLY = 0.5, 0.15
_STATEMENT = 0.3
"""The weight of how well the surrounding statements match."""
_REPLACED_WORDS, _FRAME = 2, 1
_SAME_FRAME, _BLOCK = 0.8, 4
_TOWARD = frozenset({"to", "by", "from", "than", "à", "a", "par", "por", "an", "von"})
"""Words that show who acts on whom when two words between them are swapped; `is` does not."""
_SAME_STATEMENT, _SAME_REST = 0.5, 0.5
_NEGATIONS = frozenset({"not", "cannot"})
_SAME_STEP = 0.5
_MISSING = 0.25
_LEAST_WORDS = 2
_DROPPED = 0.5


def find_reversed_statements(pair: TextPair) -> Iterator[Conflict]:
    """Find matching clauses where only one is negated, less certain, or has an opposite word."""
    for clause, statement, at in pair.one.clauses:
        spans = _find_nearest_spans(clause, pair.one_covered[at], pair.other)
        conflicts = [_classify_reversal(ClauseSpan(clause, statement), span) for span in spans]
        # Of spans that match nearly as well, one that says the same is the right one.
        if conflicts and all(conflicts):
            yield Conflict(conflicts[0], _join_tokens(clause), _join_tokens(spans[0].clause))


class ClauseSpan(NamedTuple):
    """A clause with its statement, or a statement as one clause."""

    clause: Clause
    statement: Statement

    @property
    def negated(self) -> frozenset[bool]:
        """Whether it is negated; both values if only its label is: `Not covered: the washing machine`."""
        own = any(token.marks & _NEGATIONS for token in self.clause.tokens if not token.label)
        label = any(token.marks & _NEGATIONS for token in self.statement.tokens if token.label)
        return frozenset({own, own or label})

    @property
    def negations(self) -> int:
        """The number of negations in the statement."""
        return sum(bool(token.marks & _NEGATIONS) for token in self.statement.tokens)


def _find_nearest_spans(clause: Clause, covered: StatementCoverage, side: Side) -> list[ClauseSpan]:
    """Return the spans of the other text that match the clause: the best, and those that match nearly as well."""
    keys = {token.key: token.weight for token in clause.content}
    likely = {n: likeness for likeness, n in covered.nearest}
    # Candidates are the statements that the alignment chose and those that share the rarest words: a long statement may
    # have been split in the other text, and then the alignment knows only one of its parts.
    spans: list[tuple[float, ClauseSpan]] = []
    for n in likely.keys() | {n for _, n in side.find_nearest(keys)}:
        statement = side.statements[n]
        for span in (*statement.clauses, Clause(statement.tokens)):
            other = {token.key: token.weight for token in span.content}
            likeness = _compute_dice(keys, other)
            if likeness >= _SAME_CLAUSE and (
                len(keys.keys() & other.keys()) > 1 or (len(keys) == len(other) == 1 and not statement.is_light)
            ):
                spans.append((likeness + _STATEMENT * likely.get(n, 0.0), ClauseSpan(span, statement)))
    # A complete statement is used only if none of its clauses matches.
    parts = [(likeness, span) for likeness, span in spans if span.clause in span.statement.clauses]
    spans = parts or spans
    best = max((likeness for likeness, _ in spans), default=0.0)
    return [span for likeness, span in sorted(spans, key=lambda one: -one[0]) if likeness >= best - _NEARLY]


def _compute_dice(one: dict[str, float], other: dict[str, float]) -> float:
    total = sum(one.values()) + sum(other.values())
    return 2 * sum(weight for key, weight in one.items() if key in other) / total if total else 0.0


def _classify_reversal(one: ClauseSpan, other: ClauseSpan) -> str:
    """Return the kind of conflict between two otherwise equal clauses; empty if there is none."""
    # The clauses are known to match apart from the words that turn a statement. So the marks of those words are
    # compared in order of weight: negation and opposites first, then certainty, and at last obligation, tense and
    # quantity.
    ours, theirs = one.clause.marks, other.clause.marks
    negated = not one.negated & other.negated
    if negated and one.negations == other.negations and not _has_same_words(one.clause, other.clause):
        negated = False  # The clauses were split differently: both statements have the same number of negations.
    # "Not open" and "closed" are the same: a negation and an opposite cancel each other out.
    opposite = _has_opposite(one.clause, other.clause)
    if opposite != negated:
        return "opposite" if opposite else "negation"
    if _is_unsure(one.clause, other.clause) or _is_unsure(other.clause, one.clause):
        return "certainty"
    for first, second in ((ours, theirs), (theirs, ours)):
        if "must" in first and "must" not in second and second & {"should", "can", "maybe"} and not first & _NEGATIONS:
            return "obligation"
        if "will" in first and "will" not in second and "past" in second and "past" not in first:
            return "tense"
        if "all" in first and "all" not in second and second & {"some", "only"}:
            return "quantity"
    return ""


def find_dropped_negations(pair: TextPair) -> Iterator[Conflict]:
    """Find matching statements where only one is negated, if the other text has that negation nowhere else."""
    # A negation may move to another clause or become a word like "without". Only if one text has more of them than the
    # other in total can one have been dropped.
    if _count_negated(pair.one) <= _count_negated(pair.other):
        return
    for at, covered in enumerate(pair.one_covered):
        for likeness, n in covered.nearest[:1]:
            back = pair.other_covered[n].nearest
            if likeness >= _SAME_STATEMENT and back and back[0][1] == at:
                one, other = pair.one.statements[at], pair.other.statements[n]
                if (
                    _is_negated(one)
                    and not _is_negated(other)
                    and not _has_opposite(Clause(one.tokens), Clause(other.tokens))
                ):
                    yield Conflict("negation", one.line.text, other.line.text)


def _count_negated(side: Side) -> int:
    return sum(bool(clause.marks & _NEGATIONS) for clause, _, _ in side.clauses)


def _is_negated(statement: Statement) -> bool:
    """Return whether a clause other than a condition is negated: `if it is missing` equals `if it is not there`."""
    return any(clause.marks & _NEGATIONS and "if" not in clause.marks for clause in statement.clauses)


def _is_unsure(one: Clause, other: Clause) -> bool:
    """Return whether only one of them is uncertain: `may` can also be a permission, unlike `will`."""
    if "maybe" in other.marks:
        return False
    sure = any("maybe" in token.marks and "can" not in token.marks for token in one.tokens)
    return (sure and not other.marks & {"can", "should"}) or (
        "maybe" in one.marks
        and ("will" in other.marks - one.marks or (_has_same_words(one, other) and "can" not in other.marks))
    )


def _has_same_words(one: Clause, other: Clause) -> bool:
    return {token.key for token in one.content} == {token.key for token in other.content}


def _has_opposite(one: Clause, other: Clause) -> bool:
    """Return whether a word has its opposite in the other clause, and the rest of both is the same."""
    ours = {(token.key, token.side) for token in one.content if token.side is not None}
    theirs = {(token.key, token.side) for token in other.content if token.side is not None}
    turned = {key for key, _ in ours - theirs} & {key for key, _ in theirs - ours}
    rest = [{t.key: t.weight for t in clause.content if t.key not in turned} for clause in (one, other)]
    # "Approved" and "Denied" are nothing but opposites: there is no rest that could differ.
    return bool(turned) and (not any(rest) or _compute_dice(*rest) >= _SAME_REST)


def find_replaced_words(pair: TextPair) -> Iterator[Conflict]:
    """Find one or two replaced words in otherwise equal texts; more changes make a paraphrase."""
    # One replaced word in a frame that is otherwise word for word the same is a replacement: "the lid is red", "the lid
    # is green". With more changes the frame is no evidence, because a paraphrase changes many words, too.
    lost, new = ([(token, n) for n, c in enumerate(covered) for token in c.left] for covered in pair[2:])
    changed = max(len(lost), len(new))
    if not 0 < changed <= _REPLACED_WORDS or len({n for _, n in lost}) > 1 or len({n for _, n in new}) > 1:
        return
    frames = [_get_frame(side, left) for side, left in ((pair.one, lost), (pair.other, new)) if left]
    if len(frames) == 1:  # only added, or only removed: the most similar statement has the rest
        side, covered, left = (pair.other, pair.one_covered, lost) if lost else (pair.one, pair.other_covered, new)
        frames += [_get_frame(side, [(left[0][0], n)]) for _, n in covered[left[0][1]].nearest[:1]]
    if len(frames) == 2 and frames[0] == frames[1] and len(frames[0]) >= _FRAME * changed:
        yield Conflict("word", " ".join(t.text for t, _ in lost), " ".join(t.text for t, _ in new))


def _get_frame(side: Side, left: list[tuple[TextToken, int]]) -> list[str]:
    """Return the words of the statement, in order, without those that have no counterpart."""
    tokens = {id(token) for token, _ in left}
    return [token.key for token in side.statements[left[0][1]].content if id(token) not in tokens]


def find_exchanged_words(pair: TextPair) -> Iterator[Conflict]:
    """Find two words swapped in an otherwise equal sentence: `Ann paid Bob`, `Bob paid Ann`."""
    for statement, covered in zip(pair.one.statements, pair.one_covered, strict=True):
        for likeness, n in covered.nearest[:1]:
            blocks = _find_exchange(statement, pair.other.statements[n]) if likeness > _SAME_FRAME else None
            if blocks:
                yield Conflict("exchanged", *blocks)


def _find_exchange(one: Statement, other: Statement) -> tuple[str, str] | None:
    ours, theirs = (
        [f"{token.key or token.text.lower()}{token.side or ''}" for token in side.tokens] for side in (one, other)
    )
    if len(ours) != len(theirs) or ours == theirs:
        return None
    # Between the first and the last word that differ there must be: block, middle, block against the same blocks in the
    # other order. The middle decides: in "Ann and Bob" the order has no meaning, in "Ann paid Bob" it is everything.
    start = next(n for n, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b)
    end = next(n for n, (a, b) in enumerate(zip(reversed(ours), reversed(theirs), strict=True)) if a != b)
    ours, theirs = ours[start : len(ours) - end], theirs[start : len(theirs) - end]
    marks = [token.marks for token in one.tokens[start : len(one.tokens) - end]]
    for i in range(1, min(_BLOCK, len(ours) - 1) + 1):
        for j in range(1, min(_BLOCK, len(ours) - i - 1) + 1):
            middle = ours[i:-j]
            if ours[:i] == theirs[-i:] and ours[-j:] == theirs[:j] and middle == theirs[j:-i]:
                listed = "," in middle or any("and" in token_marks for token_marks in marks[i:-j])
                says = any(
                    token.key or token.text in _TOWARD for token in one.tokens[start + i : len(one.tokens) - end - j]
                )
                return None if listed or not says else (" ".join(ours[:i]), " ".join(ours[-j:]))
    return None


def find_new_questions(pair: TextPair) -> Iterator[Conflict]:
    """Yield a question in place of a statement."""
    for statement, covered in zip(pair.one.statements, pair.one_covered, strict=True):
        for likeness, n in covered.nearest[:1]:
            other = pair.other.statements[n]
            if likeness >= _SAME_FRAME and _is_question(statement) and not _is_question(other):
                yield Conflict("question", statement.line.text, other.line.text)


def _is_question(statement: Statement) -> bool:
    return statement.line.kind == "sentence" and statement.line.text.rstrip(" *_").endswith(("?", "？", "؟"))


def find_reordered_steps(pair: TextPair) -> Iterator[Conflict]:
    """Yield the steps of a numbered list in another order."""
    lists = {one.line.of for one in pair.one.statements if one.line.kind == "step"}
    for number in sorted(lists):
        steps = [
            (one, covered.nearest[0])
            for one, covered in zip(pair.one.statements, pair.one_covered, strict=True)
            if one.line.kind == "step" and one.line.of == number and covered.nearest
        ]
        matched = [
            (one, n)
            for one, (likeness, n) in steps
            if likeness >= _SAME_STEP and pair.other.statements[n].line.kind == "step"
        ]
        # Steps that the other text does not have as steps are skipped: only two steps that both lists have can be in
        # another order.
        for (first, at), (second, after) in pairwise(matched):
            if after < at:
                yield Conflict("order", first.line.text, second.line.text)


def find_dropped_conditions(pair: TextPair) -> Iterator[Conflict]:
    """Yield a clause with `if` or `unless` that the other text does not have."""
    for statement, covered in zip(pair.one.statements, pair.one_covered, strict=True):
        near = [pair.other.statements[n] for likeness, n in covered.nearest[:1] if likeness >= _SAME_CLAUSE]
        if not near or any("if" in token.marks for one in near for token in one.tokens):
            continue
        for clause in statement.clauses:
            # Only the words after `if` are looked for. A condition that the other text words differently keeps most of
            # them; one that was dropped loses at least half of their weight.
            tail = _get_condition_tokens(clause)
            lost = sum(token.weight for token in tail if token in covered.left)
            if lost and lost >= _DROPPED * sum(token.weight for token in tail):
                yield Conflict("condition", " ".join(token.text for token in tail), "")


def _get_condition_tokens(clause: Clause) -> list[TextToken]:
    at = next((n for n, token in enumerate(clause.tokens) if "if" in token.marks), None)
    return [] if at is None else [token for token in clause.tokens[at:] if token.key]


def find_missing_statements(pair: TextPair) -> Iterator[Conflict]:
    """Yield a statement that the other text hardly covers."""
    for statement, covered in zip(pair.one.statements, pair.one_covered, strict=True):
        if not statement.is_light and covered.share < _MISSING and len(covered.left) >= _LEAST_WORDS:
            yield Conflict("missing", statement.line.text, "")


def _join_tokens(clause: Clause) -> str:
    return " ".join(token.text for token in clause.tokens)


def _apply_both_ways(rule: Callable[[TextPair], Iterator[Conflict]]) -> Callable[[TextPair], Iterator[Conflict]]:
    def apply_rule(pair: TextPair) -> Iterator[Conflict]:
        yield from rule(pair)
        for code, expected, actual in rule(pair.swapped):
            yield Conflict("added" if code == "missing" else code, actual, expected)

    apply_rule.__name__ = rule.__name__
    return apply_rule


RULES: Sequence[Callable[[TextPair], Iterator[Conflict]]] = (
    find_replaced_facts,
    _apply_both_ways(find_reversed_bounds),
    _apply_both_ways(find_reversed_statements),
    _apply_both_ways(find_dropped_negations),
    find_replaced_words,
    find_exchanged_words,
    find_reordered_steps,
    _apply_both_ways(find_new_questions),
    _apply_both_ways(find_dropped_conditions),
    _apply_both_ways(find_missing_statements),
)
