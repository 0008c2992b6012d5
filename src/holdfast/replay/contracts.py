"""The rules that a session is held to: the spec's own, or those of the contract that it names."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import UserError
from holdfast.model.session import RecordedSession
from holdfast.model.spec import Invariant, Spec
from holdfast.plan.checks import traits_of
from holdfast.reading.words import near
from holdfast.spec.replays import read_contract


class HeldSessions(Struct, frozen=True):
    """A contract's rules, and the sessions that are held to them."""

    label: str
    """The contract's name where it is not the spec's own."""
    rules: tuple[Invariant, ...]
    sessions: tuple[RecordedSession, ...]


def held(spec: Spec, sessions: Iterable[RecordedSession]) -> tuple[HeldSessions, ...]:
    """Sessions by the contract that they are held to, the spec's own first. UserError names one that nobody knows."""
    root = Path(spec.path).resolve().parent
    own: list[RecordedSession] = []
    others: dict[Path, list[RecordedSession]] = {}
    for session in sessions:
        place = _place(spec, session, root)
        (own if place is None else others.setdefault(place, [])).append(session)
    found = [HeldSessions("", spec.invariants, tuple(own))] if own else []
    return (*found, *(_read(place, tuple(named), root) for place, named in others.items()))


def _read(place: Path, sessions: tuple[RecordedSession, ...], root: Path) -> HeldSessions:
    contract = read_contract(place, os.path.relpath(place))
    rules = (replace(_beside(rule, place.parent, root), position=None) for rule in contract.rules)
    return HeldSessions(contract.name, tuple(rules), sessions)


def _beside(rule: Invariant, folder: Path, root: Path) -> Invariant:
    """A file lies next to the contract that names it."""
    key = traits_of(rule).file_setting
    if not key or folder == root:
        return rule
    return replace(rule, settings={**rule.settings, key: os.path.relpath(folder / str(rule.settings[key]), root)})


def _place(spec: Spec, session: RecordedSession, root: Path) -> Path | None:
    """The file of a session's contract; None: the spec's own."""
    if not session.contract or session.contract == spec.name:
        return None
    folder = Path(session.file).resolve().parent if session.file else root
    place = folder / session.contract
    if os.path.isfile(place):
        return None if place.resolve() == Path(spec.path).resolve() else place.resolve()
    where = f"{session.file or spec.path}:{session.line}"
    what = f"{where}: session {session.id}: there is no contract {session.contract[:80]!r}"
    raise UserError(what, hint=_meant(session.contract, spec.name, folder))


def _meant(named: str, own: str, folder: Path) -> str:
    """The near miss, or what can be named."""
    place = folder / named
    beside = []
    if os.path.isdir(place.parent):
        beside = [one.name for one in sorted(place.parent.iterdir()) if one.suffix in (".yaml", ".yml", ".json")][:1000]
    close = near(named, [own]) or near(place.name, beside)
    if close:
        return f"did you mean {close if close == own else os.path.join(os.path.dirname(named), close)}?"
    return f"name the spec's own, {own!r}, or a file that has one, as seen from the file of the session"
