"""Finds replies that feed a later call, file, row or answer: the same value appears in both."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias
from urllib.parse import unquote_plus

from msgspec import Struct

from holdfast.hunt.sites import list_service_sites, list_trial_sites, number_logical_calls
from holdfast.model.fingerprint import fingerprint, followed_values
from holdfast.model.judged import DataFlow, FeedKind
from holdfast.model.observation import Observation
from holdfast.model.trace import TraceEvent
from holdfast.model.world import AuditEvent

VALUES_SHOWN, VALUE_KEPT = 3, 40
"""Values of one feed that are kept to be shown, and characters of each."""


_Key: TypeAlias = tuple[int, int | None, FeedKind, str]


class _Step(Struct, frozen=True):
    """Something that the agent sent, or received, at a call site."""

    at: float
    site: int
    values: frozenset[str]
    """Digests: of traffic with services nothing else is stored."""
    sends: bool
    rows: tuple[str, ...] = ()
    """Tables that this writes to."""


class _Texts:
    """The values of texts, as digests; knows the text of each."""

    def __init__(self) -> None:
        self.text: dict[str, str] = {}

    def digest_values(self, text: str) -> frozenset[str]:
        digests = {fingerprint(value): spelled for value, spelled in followed_values(text).items()}
        for digest, spelled in digests.items():
            self.text.setdefault(digest, spelled)
        return frozenset(digests)


class Lineage(Struct, frozen=True):
    """The data flow of a trial. Sites are numbered as in `trial_sites`."""

    feeds: tuple[DataFlow, ...]
    order: tuple[int, ...]
    """The sites in the order in which the agent first reached them; first those whose time is unknown."""
    rows: tuple[int, ...]
    """The sites that wrote to a table of a database."""


def trace_lineage(observation: Observation) -> Lineage:
    """Find which replies feed later calls, files, rows and the answer, and when each site was reached."""
    texts = _Texts()
    steps = sorted(_list_steps(observation, texts), key=lambda one: one.at)
    first = {step.site: -number for number, step in enumerate(reversed(steps))}
    sites = range(len(list_trial_sites(observation)))
    return Lineage(
        tuple(_find_feeds(observation, steps, texts)),
        tuple(sorted(sites, key=lambda number: first.get(number, -len(steps)))),
        tuple(sorted({step.site for step in steps if step.rows})),
    )


def _find_feeds(observation: Observation, steps: Iterable[_Step], texts: _Texts) -> Iterator[DataFlow]:
    """Yield each flow from a reply to a later call, file, row or the answer.

    A value counts for the first reply that brought it. What the agent was asked, or had sent before that reply came,
    it did not learn from the reply.
    """
    known = {value for turn in observation.turns for value in texts.digest_values(turn.asked)}
    source: dict[str, int] = {}
    feeds: dict[_Key, set[str]] = {}

    def feed(values: Collection[str], target: int | None, kind: FeedKind, name: str = "") -> None:
        for value in values:
            at = source.get(value)
            if at is not None and at != target:
                feeds.setdefault((at, target, kind, name), set()).add(value)

    for step in steps:
        if step.sends:
            feed(step.values, step.site, "call")
            for table in step.rows:
                feed(step.values, None, "row", table)
            known |= step.values - source.keys()
        else:
            for value in step.values - known:
                source.setdefault(value, step.site)
    for event in observation.audit:
        feed(_collect_new_content(event, texts), None, "file", str(event.details.get("path", "")))
    feed({value for turn in observation.turns for value in texts.digest_values(turn.text or "")}, None, "answer")
    yield from (_build_flow(key, values, texts.text) for key, values in sorted(feeds.items(), key=_get_sort_key))


def _list_steps(observation: Observation, texts: _Texts) -> Iterator[_Step]:
    services = {
        (one.plane, one.target, one.ordinal): number for number, one in enumerate(list_service_sites(observation))
    }
    for exchange in observation.exchanges:
        site = services.get((exchange.plane, exchange.target, exchange.n))
        if site is not None:
            tables = tuple(f"{exchange.target}.{table}" for table in exchange.tables)
            yield _Step(exchange.ts, site, frozenset(exchange.sent), True, tables)
            yield _Step(exchange.until, site, frozenset(exchange.received), False)
    for number, (events, _) in enumerate(number_logical_calls(observation.trace), len(services)):
        for event in events:
            yield _Step(event.ts, number, texts.digest_values(_collect_arguments(event)), True)
            if not event.failed:
                received = texts.digest_values(f"{event.output}\n{event.reply}")
                yield _Step(event.ts + event.duration_ms / 1000, number, received, False)


def _collect_arguments(event: TraceEvent) -> str:
    """Return the arguments of a call; for an HTTP call also what its URL says after the host."""
    if event.event_type != "http_call":
        return event.input
    url = event.tool.partition(" ")[2].partition("://")[2].partition("/")[2]
    return f"{unquote_plus(url)}\n{event.input}".replace("&", " ")


def _collect_new_content(event: AuditEvent, texts: _Texts) -> frozenset[str]:
    """Return the content that a change added to a file."""
    if event.type != "file_write" or event.texts is None or not event.texts.after:
        return frozenset()
    return texts.digest_values(event.texts.after) - texts.digest_values(event.texts.before or "")


def _get_sort_key(entry: tuple[_Key, set[str]]) -> tuple[int, bool, int, str, str]:
    source, target, kind, name = entry[0]
    return source, target is None, target or 0, kind, name


def _build_flow(key: _Key, values: Iterable[str], text: Mapping[str, str]) -> DataFlow:
    known: Sequence[str] = sorted(text[value] for value in values if value in text)
    return DataFlow(*key, tuple(value[:VALUE_KEPT] for value in known[:VALUES_SHOWN]))
