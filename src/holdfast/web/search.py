"""Searches prompts, answers, reasons and notes in the files, newest run first.

There is no index: lines without the words are skipped as bytes, which is as fast as the disk. It stops after two
seconds and says how far it got.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import MsgspecError

from holdfast.checks.patterns import find_folded
from holdfast.model.codec import create_decoder, encode
from holdfast.model.observation import Observation
from holdfast.model.verdict import Verdict
from holdfast.report.page.values import to_utf16_span
from holdfast.report.wording import format_head
from holdfast.store.blobs import unpack
from holdfast.store.lines import read_lines
from holdfast.store.record import TrialRecord
from holdfast.store.rundir import RunDir
from holdfast.web.notes import KeptNote

LEAST = 2
"""Minimum length of a search text."""
SECONDS = 2.0
AROUND = 80
"""Characters of context on each side of a match."""
PER_RUN = 50
_BLOB = b'"blob":'
_verdicts, _trials = create_decoder(Verdict), create_decoder(TrialRecord)
_BROKEN = (MsgspecError, ValueError, RecursionError, OSError)


class FoundText(NamedTuple):
    """A place that contains the words."""

    trial: str
    rule: str
    where: str
    text: str
    at: tuple[int, int]


class Needle:
    """The search text, ignoring case."""

    def __init__(self, text: str) -> None:
        self._text = text.casefold()
        self._ascii = text.isascii()
        self._bytes = encode(text)[1:-1].lower()

    def may_contain(self, line: bytes) -> bool:
        """Return whether a line of JSON may contain it; only then is it decoded. A blob has its own file."""
        # Most lines are skipped as bytes, without decoding them. That must never miss a match: a line with a blob, or a
        # text that JSON or case folding may write differently, is looked at more closely.
        if _BLOB in line:
            return True
        if self._ascii:
            return self._bytes in line.lower()
        return self._bytes.decode().casefold() in line.decode("utf-8", "replace").casefold()

    def find_excerpt(self, text: str) -> tuple[str, tuple[int, int]] | None:
        """Return the words with their context, and their position in it; None if they are missing."""
        span = find_folded(text, self._text)
        if span is None:
            return None
        at, end = span
        start = max(0, at - AROUND)
        context = ("…" if start else "") + text[start : end + AROUND] + ("…" if end + AROUND < len(text) else "")
        begin = at - start + (1 if start else 0)
        return context, to_utf16_span(context, begin, begin + end - at)


def search(
    runs: Iterable[RunDir],
    text: str,
    *,
    limit: int,
    notes: Mapping[str, KeptNote],
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    """Return the places with the words: notes, then the newest run first. `more`: there are further places."""
    needle, until = Needle(text), clock() + SECONDS
    noted = list(_search_notes(notes, needle))
    hits, cut = noted[:limit], len(noted) > limit
    searched = left = 0
    for run in runs:
        if len(hits) >= limit or clock() > until:
            left += 1
            continue
        searched += 1
        most = min(PER_RUN, limit - len(hits))
        of_run, stopped, more = _take_hits(_search_run(run, needle), most, lambda: clock() > until)
        columns = _read_columns(run, {one.trial for one in of_run})
        hits += [{"run": run.id, "column": columns.get(one.trial, ""), **one._asdict()} for one in of_run]
        left += stopped
        cut = cut or more
    return {"hits": hits, "searched": searched, "not_searched": left, "more": cut or left > 0}


def _take_hits(
    found: Iterator[FoundText | None], most: int, is_late: Callable[[], bool]
) -> tuple[list[FoundText], bool, bool]:
    """Return the first matches, whether time ran out first, and whether there may be more."""
    hits: list[FoundText] = []
    for number, one in enumerate(found):
        if number % 256 == 0 and is_late():
            return hits, len(hits) < most, len(hits) == most
        if one is not None and len(hits) == most:
            return hits, False, True
        hits += [] if one is None else [one]
    return hits, False, False


def _search_run(run: RunDir, needle: Needle) -> Iterator[FoundText | None]:
    """Yield every match; None for a line without one, so the caller can stop."""
    with suppress(OSError):
        for line in read_lines(run.get_verdict_file()):
            yield _search_verdict(line, needle) if needle.may_contain(line) else None
        for path in run.list_observation_files():
            for line in read_lines(path):
                if not needle.may_contain(line):
                    yield None
                    continue
                yield from _search_observation(line, run.path / "blobs", needle)


def _search_verdict(line: bytes, needle: Needle) -> FoundText | None:
    try:
        verdict = _verdicts.decode(line)
    except _BROKEN:
        return None
    excerpt = needle.find_excerpt(verdict.reason)
    return FoundText(verdict.trial, verdict.invariant, "reason", *excerpt) if excerpt else None


def _search_observation(line: bytes, blobs: Path, needle: Needle) -> Iterator[FoundText | None]:
    yield None
    try:
        observation: Observation = unpack(line, blobs)
    except _BROKEN:
        return
    for turn in observation.turns:
        for where, text in (("answer", turn.text), ("prompt", turn.asked)):
            excerpt = needle.find_excerpt(text) if text else None
            if excerpt:
                yield FoundText(observation.trial, "", where, *excerpt)


def _search_notes(notes: Mapping[str, KeptNote], needle: Needle) -> Iterator[dict[str, Any]]:
    for key, note in notes.items():
        excerpt = needle.find_excerpt(note.note)
        if excerpt:
            run, _, trial = key.partition("/trial/")
            yield {"run": run, "column": "", **FoundText(trial, "", "note", *excerpt)._asdict()}


def _read_columns(run: RunDir, trials: set[str]) -> dict[str, str]:
    """Return the scenario and params of the trials."""
    columns: dict[str, str] = {}
    wanted = {f'"id":"{id}"'.encode(): id for id in trials}
    with suppress(OSError):
        for line in read_lines(run.path / "trials.jsonl") if wanted else ():
            id = wanted.get(line[1 : line.find(b",")])
            if id is not None and id not in columns:
                with suppress(*_BROKEN):
                    trial: TrialRecord = _trials.decode(line)
                    columns[id] = format_head(trial.scenario, trial.params)
            if len(columns) == len(trials):
                break
    return columns
