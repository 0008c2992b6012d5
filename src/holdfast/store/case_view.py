"""The cases of a stored run for reports; a trial is read from disk when it is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from msgspec.structs import replace

from holdfast.model.run import CaseRow, ReplicaRow
from holdfast.model.score import Case, Replica
from holdfast.model.verdict import Verdict
from holdfast.score.composite import UNMET
from holdfast.spec.references import interpolate
from holdfast.store.view import Files


class StoredCases(Sequence[CaseRow]):
    """Every case of a run, in plan order."""

    def __init__(self, files: Files, cases: Sequence[Case]) -> None:
        self._files = files
        self._cases = cases

    def __len__(self) -> int:
        return len(self._cases)

    @overload
    def __getitem__(self, at: int) -> CaseRow: ...
    @overload
    def __getitem__(self, at: slice) -> list[CaseRow]: ...
    def __getitem__(self, at: int | slice) -> CaseRow | list[CaseRow]:
        return (
            [self._build_row(case) for case in self._cases[at]]
            if isinstance(at, slice)
            else self._build_row(self._cases[at])
        )

    def __iter__(self) -> Iterator[CaseRow]:
        return map(self._build_row, self._cases)

    def _build_row(self, case: Case) -> CaseRow:
        return CaseRow(case, StoredReplicas(self._files, case))


class StoredReplicas(Sequence[ReplicaRow]):
    """The trials of one case, each read when needed: an audit log may be long."""

    def __init__(self, files: Files, case: Case) -> None:
        self._files = files
        self._replicas = case.replicas
        self._unmet = frozenset(case.unmet)

    def __len__(self) -> int:
        return len(self._replicas)

    @overload
    def __getitem__(self, at: int) -> ReplicaRow: ...
    @overload
    def __getitem__(self, at: slice) -> list[ReplicaRow]: ...
    def __getitem__(self, at: int | slice) -> ReplicaRow | list[ReplicaRow]:
        return (
            [self._build_row(one) for one in self._replicas[at]]
            if isinstance(at, slice)
            else self._build_row(self._replicas[at])
        )

    def __iter__(self) -> Iterator[ReplicaRow]:
        return map(self._build_row, self._replicas)

    def _build_row(self, replica: Replica) -> ReplicaRow:
        traced = self._files.read_trial(replica.trial)
        prompt = interpolate(traced.trial.task.prompt, traced.trial.params)
        verdicts = tuple(map(self._mark_unproven, traced.verdicts))
        return ReplicaRow(replica, prompt, traced.seen, verdicts, self._files.format_command(replica.trial))

    def _mark_unproven(self, verdict: Verdict) -> Verdict:
        """Return the verdict in its case: a rule that passed without meeting its fault is unproven, as in its cell."""
        if verdict.outcome != "pass" or verdict.invariant not in self._unmet:
            return verdict
        return replace(verdict, outcome="unproven", score=0.0, reason=UNMET.reason, code=UNMET.code, key=())
