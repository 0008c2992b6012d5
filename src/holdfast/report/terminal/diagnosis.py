"""The findings of `holdfast doctor`: values and their display."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from holdfast.model.codec import to_builtins
from holdfast.report.safe import Paint, count_columns, get_painter, pad, to_one_line
from holdfast.report.wording import SIGNS, format_count

Attempt: TypeAlias = Literal["ok", "not", "n/a", "unproven"]

_STYLES: Mapping[Attempt, str] = {"ok": "pass", "not": "fail", "n/a": "n/a", "unproven": "unproven"}
_OK: Mapping[Attempt, bool] = {"ok": True, "not": False}
_WORD = max(map(len, _STYLES))
_TOOK = 10
"""Columns for the duration."""


class DoctorFinding(Struct, frozen=True):
    """One thing that was tried or looked up."""

    route: str
    outcome: Attempt
    code: str
    """A code of the table `doctor` in `codes.toml`, or the code of the reported error or problem."""
    detail: str = ""
    fix: str = ""
    exit_code: int = 0
    """The exit code if it is broken: 3 for the environment, 4 for the spec, 0 if nothing depends on it."""
    took_ms: float | None = None

    @property
    def broken(self) -> bool:
        """Whether something required does not work."""
        return self.outcome == "not" and self.exit_code != 0


class CallsSeen(Struct, frozen=True):
    """Calls at one target while the agent answered."""

    plane: str
    target: str
    calls: int
    retries: int = 0
    tokens: int = 0


class AskedAgent(Struct, frozen=True):
    """The agent, asked once without faults."""

    prompt: str
    ending: str = ""
    """Empty if it could not be asked."""
    answer: str = ""
    latency_ms: float = 0.0
    calls: tuple[CallsSeen, ...] = ()
    findings: tuple[DoctorFinding, ...] = ()
    notes: tuple[str, ...] = ()


class Diagnosis(Struct, frozen=True):
    """All findings."""

    machine: tuple[DoctorFinding, ...]
    spec: tuple[DoctorFinding, ...] | None = None
    """None without a spec."""
    agent: AskedAgent | None = None
    """None if it was not asked."""

    @property
    def findings(self) -> tuple[DoctorFinding, ...]:
        return (*self.machine, *(self.spec or ()), *(self.agent.findings if self.agent else ()))

    @property
    def exit_code(self) -> int:
        """0 if everything required works; 4 for a broken spec takes precedence over 3 for a broken environment."""
        return max((finding.exit_code for finding in self.findings if finding.broken), default=0)


def build_document(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the diagnosis as JSON."""
    agent = None
    if diagnosis.agent is not None:
        agent = {**to_builtins(diagnosis.agent), "findings": [_build_entry(one) for one in diagnosis.agent.findings]}
    return {
        "machine": [_build_entry(one) for one in diagnosis.machine],
        "spec": None if diagnosis.spec is None else [_build_entry(one) for one in diagnosis.spec],
        "agent": agent,
        "exit_code": diagnosis.exit_code,
    }


def _build_entry(one: DoctorFinding) -> dict[str, Any]:
    ok = _OK.get(one.outcome)
    return {"route": one.route, "ok": ok, "outcome": one.outcome, "detail": one.detail, "fix": one.fix} | {
        "code": one.code,
        "needed": one.exit_code != 0,
        "took_ms": None if one.took_ms is None else round(one.took_ms, 1),
    }


class Sheet:
    """Formats parts of a diagnosis as text, for a screen or a pipe."""

    def __init__(self, width: int, *, color: bool) -> None:
        self._width = width
        self._paint: Paint = get_painter(color)

    def format_part(self, title: str, about: str, findings: Sequence[DoctorFinding], notes: Sequence[str] = ()) -> str:
        """Return a heading, one line per finding, and notes."""
        head = f"{self._paint(title, 'bold')}  {to_one_line(about)}".rstrip()
        longest = max((count_columns(to_one_line(one.route)) for one in findings), default=0)
        room = min(longest, max(16, self._width // 2 - 10))
        timed = any(one.took_ms is not None for one in findings)
        lines = [line for one in findings for line in self._format_finding(one, room, timed)]
        return "\n".join([head, *lines, *[f"  note: {to_one_line(note)}" for note in notes], ""])

    def format_verdict(self, diagnosis: Diagnosis) -> str:
        """Return the result in one line."""
        broken = [one for one in diagnosis.findings if one.broken]
        open_ = [one for one in diagnosis.findings if one.outcome == "unproven"]
        if broken:
            words = f"{format_count(len(broken), 'required thing')} {'is' if len(broken) == 1 else 'are'} missing"
            routes = ", ".join(to_one_line(one.route) for one in broken)
            return f"{self._paint(f'✘ {words}', 'fail')}: {routes}\n"
        if not diagnosis.machine:
            words = "The agent can be asked"
        elif diagnosis.spec is None:
            words = "Every route that Holdfast needs works on this machine"
        else:
            words = "Every fault of this spec can be met"
        more = f"; only a run can decide {format_count(len(open_), 'line')} marked ?" if open_ else ""
        return f"{self._paint(f'✔ {words}', 'pass')}{more}\n"

    def _format_finding(self, one: DoctorFinding, room: int, timed: bool) -> Iterator[str]:
        start, name = f"  {SIGNS[_STYLES[one.outcome]]} {one.outcome:<{_WORD}}  ", to_one_line(one.route)
        took = "" if not timed else " " * _TOOK if one.took_ms is None else f"{one.took_ms:{_TOOK - 5}.0f} ms  "
        indent = " " * (len(start) + room + 2 + len(took))
        detail = self._wrap(to_one_line(one.detail), len(indent))
        first = self._paint(start, _STYLES[one.outcome])
        if count_columns(name) > room:
            yield first + name
        else:
            yield (first + pad(name, room + 2) + self._paint(took, "dim") + "".join(detail[:1])).rstrip()
            detail = detail[1:]
        yield from (indent + line for line in detail)
        if one.fix:
            folded = self._wrap(f"fix: {to_one_line(one.fix)}", len(start))
            yield from (" " * len(start) + self._paint(line, "bold") for line in folded)

    def _wrap(self, text: str, indent: int) -> list[str]:
        return wrap(text, max(20, self._width - indent), break_long_words=False, break_on_hyphens=False)
