"""Selects a part of a plan: globs for scenarios and rules, words for anything, ids or prefixes for trials."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

from msgspec import UNSET, Struct

from holdfast.errors import UsageError
from holdfast.model.codec import encode_canonical
from holdfast.model.task import Task
from holdfast.spec.references import format_param

_TOKEN = re.compile(r"""\s*(?:(?P<sign>[()])|"(?P<double>[^"]+)"|'(?P<single>[^']+)'|(?P<word>[^\s()"']+))""")
_OPERATORS = ("and", "or", "not")

Words = Sequence[str]
Matcher = Callable[[Words], bool]


def parse_keywords(expression: str) -> Matcher:
    """Return a predicate for names by an expression. A word matches if it is part of a name, ignoring case."""
    parser = _Parser(expression)
    matches = parser.parse_either()
    if parser.rest:
        raise parser.build_error(f"found {parser.rest[0][1]!r} after its end")
    return matches


class _Parser:
    """Parses tokens from the left: (kind, text)."""

    def __init__(self, expression: str) -> None:
        self.expression = expression
        self.rest: list[tuple[str, str]] = []
        at, text = 0, expression.rstrip()
        while at < len(text):
            token = _TOKEN.match(text, at)
            if token is None:
                raise self.build_error("a quote is not closed")
            at = token.end()
            word = token["word"]
            sign = token["sign"] or (word if word in _OPERATORS else None)
            self.rest.append(("sign", sign) if sign else ("word", word or token["double"] or token["single"]))

    def build_error(self, why: str) -> UsageError:
        hint = "write names or parts of them, with and, or, not and parentheses; text with spaces in quotes"
        return UsageError(f"-k {self.expression!r} cannot be read: {why}", code="selection-invalid", hint=hint)

    def parse_either(self) -> Matcher:
        left = self.parse_both()
        while self._accept("or"):
            left = _join(any, left, self.parse_both())
        return left

    def parse_both(self) -> Matcher:
        left = self.parse_single()
        while self._accept("and"):
            left = _join(all, left, self.parse_single())
        return left

    def parse_single(self) -> Matcher:
        if self._accept("not"):
            inner = self.parse_single()
            return lambda names: not inner(names)
        if self._accept("("):
            inner = self.parse_either()
            if not self._accept(")"):
                raise self.build_error("a parenthesis is not closed")
            return inner
        if not self.rest or self.rest[0][0] != "word":
            raise self.build_error(f"expected a name, found {self.rest[0][1]!r}" if self.rest else "a name is missing")
        word = self.rest.pop(0)[1].casefold()
        return lambda names: any(word in name.casefold() for name in names)

    def _accept(self, sign: str) -> bool:
        if self.rest and self.rest[0] == ("sign", sign):
            self.rest.pop(0)
            return True
        return False


def _join(how: Callable[[Iterable[bool]], bool], *matchers: Matcher) -> Matcher:
    return lambda names: how(matches(names) for matches in matchers)


SHORTEST = 4
"""Digits of an id that count as a prefix: two of 65,536 rarely collide."""
_SHOWN = 10


class FailedTask(Struct, frozen=True, array_like=True):
    """A task on which a rule failed in an earlier run."""

    invariant: str
    scenario: str
    turns: tuple[str, ...]
    params: str = ""
    """Canonical JSON."""
    made: str = ""
    """What distinguishes it from another task with the same turns: its mutation, session or simulated user."""


class SelectedCell(Struct, frozen=True, array_like=True):
    """A selected cell: a rule in a scenario, with params."""

    invariant: str
    scenario: str
    params: str = "{}"
    """Canonical JSON."""


def build_failed_task(rule: str, scenario: str, task: Task, params: Mapping[str, Any]) -> FailedTask:
    made: list[Any] = []
    if task.variation is not UNSET:
        made += [task.variation.mutation, task.variation.name, task.variation.request]
    if task.recording is not UNSET:
        made.append(task.recording.session)
    made += [part for part in (task.context, task.user) if part is not UNSET]
    return FailedTask(
        rule, scenario, task.turns, encode_canonical(params).decode(), encode_canonical(made).decode() if made else ""
    )


class Shard(Struct, frozen=True, array_like=True):
    """One of several equal shards of a plan, for one machine."""

    number: int
    """From 1."""
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


class Select(Struct, frozen=True):
    """The selected part of a plan; empty means all of it."""

    scenarios: tuple[str, ...] = ()
    invariants: tuple[str, ...] = ()
    trials: tuple[str, ...] = ()
    """Ids, or prefixes of at least four digits that identify one trial."""
    keywords: str = ""
    """An expression over the names of scenarios, rules, types of mutations and sessions, prompts and parameters."""
    failed: tuple[FailedTask, ...] = ()
    """Only what failed in an earlier run."""
    cells: tuple[SelectedCell, ...] = ()
    """Only what these cells need."""
    shard: Shard | None = None

    @property
    def narrows(self) -> bool:
        """Whether it leaves out trials of the selected scenarios and rules."""
        return bool(self.trials or self.filters or self.shard)

    @property
    def filters(self) -> bool:
        """Whether it examines each trial."""
        return bool(self.keywords or self.failed or self.cells)


class TaskFilter:
    """Decides which tasks, for which rule in which scenario, a selection contains."""

    def __init__(self, select: Select) -> None:
        self._fits: Matcher | None = None
        if select.keywords:
            self._fits = parse_keywords(select.keywords)
        self._failed = frozenset(select.failed)
        self._cells = frozenset(select.cells)

    def is_selected(self, rule: str, scenario: str, task: Task, params: Mapping[str, Any]) -> bool:
        if self._failed and build_failed_task(rule, scenario, task, params) not in self._failed:
            return False
        if self._cells and SelectedCell(rule, scenario, encode_canonical(params).decode()) not in self._cells:
            return False
        if self._fits is None:
            return True
        mutation = () if task.variation is UNSET else (task.variation.mutation, task.variation.name)
        session = () if task.recording is UNSET else (task.recording.session, task.recording.name)
        values = (f"{name}={format_param(value)}" for name, value in params.items())
        return self._fits((rule, scenario, *task.turns, *mutation, *session, *values))


EVERYTHING = Select()


def select_names(patterns: Sequence[str], names: Sequence[str], what: str) -> tuple[str, ...]:
    """Return the names that match any of the patterns, in their own order; every pattern must match."""
    if not patterns:
        return tuple(names)
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise UsageError(
                f"no {what} matches {pattern!r}", code="nothing-selected", hint=_suggest_names(pattern, names, what)
            )
    return tuple(name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns))


def find_positions(wanted: Sequence[str], ids: Iterable[str]) -> list[int]:
    """Return the indexes in `ids` of the wanted trials; each must identify exactly one."""
    # All prefixes are searched in one pass: the ids of a large plan are computed one by one and never stored.
    begins = tuple(dict.fromkeys(w.lower() for w in wanted))
    for begin in begins:
        if len(begin) < SHORTEST:
            raise UsageError(
                f"trial {begin!r} is too short",
                code="selection-invalid",
                hint=f"give at least {SHORTEST} digits of its id",
            )
    by_prefix: dict[str, list[tuple[int, str]]] = {begin: [] for begin in begins}
    for position, id in enumerate(ids):
        if id.startswith(begins):
            for begin in begins:
                if id.startswith(begin):
                    by_prefix[begin].append((position, id))
    for begin, hits in by_prefix.items():
        _require_one(begin, hits)
    return sorted({hits[0][0] for hits in by_prefix.values()})


def _require_one(begin: str, hits: Sequence[tuple[int, str]]) -> None:
    if not hits:
        why = "an id changes with the seed, the scenario, the prompt, the rule and the agent section"
        raise UsageError(f"no trial's id begins with {begin!r}", code="nothing-selected", hint=why)
    if len(hits) > 1:
        ids = ", ".join(id for _, id in hits[:_SHOWN])
        raise UsageError(
            f"{len(hits)} trials' ids begin with {begin!r}", code="selection-invalid", hint=f"give more digits: {ids}"
        )


def _suggest_names(pattern: str, names: Sequence[str], what: str) -> str:
    if not names:
        return f"there is no {what}"
    close = get_close_matches(pattern, names, n=3, cutoff=0.5)
    rest = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    there = f"available: {', '.join(names[:_SHOWN])}{rest}"
    return f"did you mean {' or '.join(close)}? {there}" if close else there
