"""The call sites of a trial, and which reply feeds which later call, write or answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from holdfast.model.judged import CallSite, Feed, JudgedTrial, VerdictCode
from holdfast.model.observation import Observation
from holdfast.model.trace import REFUSED, TraceEvent
from holdfast.model.verdict import Verdict

SERVICE_PLANES = ("service", "transaction")
"""Where a service's connections and a database's transactions are counted."""
MODEL = "*"
"""The target of every model call: a fault of models counts the calls to all of them."""
_KEY = re.compile(r"""(["'])[^"']{1,60}\1\s*:""")
_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?![\w])")
_WORD = re.compile(r"[^\W_](?:[\w@./:+-]*[^\W_])?")
_DIGITS, _ID, _PHRASE = 3, 5, 8
"""Shortest number, shortest word with a digit and shortest other word that two texts do not share by accident."""


def judged_trial(observation: Observation, verdicts: Sequence[Verdict]) -> JudgedTrial:
    """What a planner may know of the trial."""
    codes = tuple([VerdictCode(one.invariant, one.outcome, one.code, one.key) for one in verdicts])
    made = list(_made(observation.trace))
    services = tuple(service_sites(observation))
    first = len(services)
    arrived = tuple(n for n, event in enumerate(made, first) if event.write and not event.unsent)
    statements = sum(event.type == "db_write" for event in observation.audit)
    return JudgedTrial(
        observation.trial,
        observation.ending,
        codes,
        observation.ledger,
        (*services, *call_sites(observation.trace)),
        tuple(n for n in arrived if not made[n - first].failed),
        tuple(Feed(one.source + first, one.target and one.target + first) for one in lineage(observation)),
        not any(event.cost is not None and event.cost.billed and not event.script for event in made),
        bool(observation.error),
        sum(event.write and not event.unsent for event in observation.trace) + statements,
        {one.invariant: one.reason for one in verdicts if one.outcome == "fail"},
        arrived,
        statements,
    )


def service_sites(observation: Observation) -> Iterator[CallSite]:
    """The connections and transactions of services, which are counted and not traced. When they came is not known, so
    they stand before the calls."""
    for counted, times in sorted(observation.calls.items()):
        plane, _, name = counted.partition(":")
        if plane in SERVICE_PLANES:
            yield from (CallSite(plane, name, n) for n in range(1, times + 1))


def call_sites(trace: Iterable[TraceEvent]) -> Iterator[CallSite]:
    """The calls of a trial, numbered for each target."""
    return (site for _, site in numbered_calls(trace))


def numbered_calls(trace: Iterable[TraceEvent]) -> Iterator[tuple[TraceEvent, CallSite]]:
    """The same, each with what was seen of it."""
    ordinals = Counter[tuple[str, str]]()
    for event in _made(trace):
        # An HTTP call is traced as `METHOD URL`, and its faults wait at the URL.
        target = MODEL if event.plane == "llm" else event.tool
        if event.event_type == "http_call":
            target = event.tool.partition(" ")[2].partition("?")[0]
        ordinals[event.plane, target] += 1
        yield event, CallSite(event.plane, target, ordinals[event.plane, target])


def lineage(observation: Observation) -> Iterator[Feed]:
    """Which replies feed later calls and the answer.

    A value counts for the first reply that brought it. What the agent was asked, or had sent before that reply came,
    it did not learn from the reply.
    """
    known = {value for turn in observation.turns for value in _values(turn.asked)}
    source: dict[str, int] = {}
    for number, event in enumerate(_made(observation.trace)):
        sent = _values(event.input)
        yield from (Feed(at, number) for at in sorted({source[value] for value in sent if value in source}))
        known |= sent - source.keys()
        if not event.failed:
            for value in _values(event.output):
                if value not in known:
                    source.setdefault(value, number)
    answer = {value for turn in observation.turns for value in _values(turn.text or "")}
    yield from (Feed(at, None) for at in sorted({source[value] for value in answer if value in source}))


def _made(trace: Iterable[TraceEvent]) -> Iterator[TraceEvent]:
    """The agent's own calls: not a client's retries, nor calls that were only declared or that egress refused."""
    return (e for e in trace if not e.retry and e.phase != "declared" and e.error_type != REFUSED)


def _values(text: str) -> set[str]:
    """What is worth following in a text: numbers and ids in one spelling, long words; no keys of JSON."""
    text = _KEY.sub(" ", text).casefold()
    numbers = {n.replace(",", "") for n in _NUMBER.findall(text)}
    found = {str(Decimal(n).normalize()) for n in numbers if sum(c.isdigit() for c in n) >= _DIGITS}
    for word in _WORD.findall(_NUMBER.sub(" ", text)):
        if len(word) >= (_ID if any(c.isdigit() for c in word) else _PHRASE):
            found.add(word.replace("-", "").replace("_", ""))
    return found
