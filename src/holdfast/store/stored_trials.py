"""The trials of a run, each once, in little memory: a run of a million trials must not fill it."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping

from holdfast.model.scenario import Scenario
from holdfast.model.trial import Trial
from holdfast.store.lines import LineReader
from holdfast.store.record import get_trial_file, read_placed_trials, read_trial, read_trials
from holdfast.store.rundir import RunDir

DIGITS = 12
_HEX = frozenset("0123456789abcdef")
_NEAR = 32
"""How far from the last match to look first: the files of one run have nearly the same order."""
_NUMBER_BITS = 32


class IdTable:
    """Ids, numbered from 0 in the order they were added: about 20 bytes each, where a dict needs 150.

    If an id is added twice, the last number counts. A text that is not a trial id gets a number, but is never found.
    """

    def __init__(self, ids: Iterable[str]) -> None:
        self._keys = array("Q", map(_parse_key, ids))
        self._next = 0
        # Id and number are packed into one integer, so a single sort orders the ids and, among equal ids, their
        # numbers: the last of equals is the one that counts.
        both = sorted((key << _NUMBER_BITS) | number for number, key in enumerate(self._keys))
        last = (1 << _NUMBER_BITS) - 1
        self._sorted = array("Q", (one >> _NUMBER_BITS for one in both))
        self._numbers = array("L", (one & last for one in both))
        del both
        self.distinct = sum(map(int.__ne__, self._sorted, self._sorted[1:])) + 1 if self._sorted else 0

    def __len__(self) -> int:
        return len(self._keys)

    def find(self, id: str) -> int | None:
        """Return the id's number; None if it was not added."""
        key = _parse_key(id)
        if key == _NONE:
            return None
        if self.distinct == len(self._keys):  # otherwise a near one may not be the last
            try:
                self._next = self._keys.index(key, self._next, self._next + _NEAR) + 1
                return self._next - 1
            except ValueError:
                pass
        return self._search(key)

    def _search(self, key: int) -> int | None:
        at = bisect_left(self._sorted, key + 1) - 1
        if at < 0 or self._sorted[at] != key:
            return None
        number = self._numbers[at]
        self._next = number + 1
        return number


_NONE = 1 << (4 * DIGITS)


def _parse_key(id: str) -> int:
    return int(id, 16) if len(id) == DIGITS and _HEX.issuperset(id) else _NONE


class StoredTrials:
    """Trials, numbered in the order in which they were begun. Close it after use."""

    def __init__(self, run: RunDir, scenarios: Mapping[str, Scenario]) -> None:
        """`scenarios` maps names to scenarios; `known_scenarios` reads them."""
        self._run = run
        self._scenarios = scenarios
        self._starts = array("Q")
        self._ids = IdTable(self._read_ids())
        self._lines = LineReader(get_trial_file(run)) if self._starts else None

    def __len__(self) -> int:
        return len(self._starts)

    def __iter__(self) -> Iterator[tuple[int, Trial]]:
        """Each trial with its number; a repeated one at its last position."""
        records = enumerate(read_trials(self._run))
        return ((n, one.build_trial(self._scenarios)) for n, one in records if self._ids.find(one.id) == n)

    def find(self, id: str) -> int | None:
        """Return the number of a trial; None if there is none with this id."""
        return self._ids.find(id)

    def read_at(self, number: int) -> Trial:
        """Return a trial by its number."""
        assert self._lines is not None
        return read_trial(self._lines.read_line(self._starts[number])).build_trial(self._scenarios)

    def close(self) -> None:
        if self._lines is not None:
            self._lines.close()

    def _read_ids(self) -> Iterator[str]:
        for start, trial in read_placed_trials(self._run):
            self._starts.append(start)
            yield trial.id
