"""Derives the spec of a replay: one task per session, with its own faults and the rules of its contract."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import UNSET, Struct
from msgspec.structs import replace

from holdfast.errors import NothingProven, UserError
from holdfast.model.codes import RunWarning
from holdfast.model.scenario import Injection, Scenario, is_applicable
from holdfast.model.session import RecordedSession
from holdfast.model.spec import Invariant, Spec
from holdfast.model.task import Recording, Task
from holdfast.plan.checks import get_traits
from holdfast.reading.words import find_near_name
from holdfast.replay.foreign_trace import SessionsFound
from holdfast.replay.session_list import SessionUnusable
from holdfast.spec.rules.parts import REPLAY
from holdfast.spec.rules.replays import find_contract_file, read_contract, suggest_contract


def derive_spec(spec: Spec, listed: SessionsFound, *, live: bool) -> tuple[Spec, tuple[RunWarning, ...]]:
    """Return the derived spec with its warnings; raise NothingProven if no rule judges any session."""
    warnings = [RunWarning("session-left-out", f"{trace.name} was left out: {trace.why}") for trace in listed.left_out]
    if not listed.sessions:
        more = f" ({'; '.join(map(str, warnings))})" if warnings else ""
        raise NothingProven(f"no session to replay: nothing is proven{more}", code="sessions-missing")
    derived = build_spec(spec, listed.sessions, live=live)
    idle = list_unjudged(derived, listed.sessions)
    if not derived.tasks:
        raise NothingProven(f"no rule judges {_format_ids(idle)}: nothing is proven; {_WHY}", code="sessions-unjudged")
    warnings += [RunWarning("session-idle", f"session {id} decides nothing: {_WHY}") for id in idle]
    return derived, (*warnings, *_warn_unknown_tools(spec, listed.sessions))


_WHY = "its contract has no rule whose `when` is met, or only rules with probes of their own"


def _format_ids(ids: Sequence[str]) -> str:
    listed = ", ".join(ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
    return f"session{'' if len(ids) == 1 else 's'} {listed}"


def _warn_unknown_tools(spec: Spec, sessions: Sequence[RecordedSession]) -> Iterator[RunWarning]:
    """Yield warnings for recorded tools that the agent does not declare; none if not all of its tools are declared."""
    agent = spec.agent
    if not agent.tools or agent.tool_registry or agent.mcp_config is not None:
        return
    known = [ref.name or ref.path.rpartition(":")[2].rpartition(".")[2] for ref in agent.tools]
    for session in sessions:
        for tool in dict.fromkeys(response.tool for response in session.responses):
            if tool in known or any(sign in tool for sign in "*?[/"):
                continue
            close = find_near_name(tool, known)
            meant = f": did you mean {close}?" if close else ""
            text = f"session {session.id} has results of {tool}, but no declared tool has that name{meant}"
            yield RunWarning("session-unknown-tool", text)


_FAILURE = Injection("tool", "*", "recorded")


def build_spec(spec: Spec, sessions: Sequence[RecordedSession], *, live: bool) -> Spec:
    """Return the spec that replays the sessions; sessions that no rule judges get no task.

    A rule with probes sends its own prompts, so it judges no session.
    """
    check_distinct(sessions)
    groups = group_by_contract(spec, sessions)
    _check_failed_rules(spec, groups)
    rules = tuple(_build_rules(groups))
    tasks = (build_task(session, live=live) for session in sessions)
    return replace(
        spec,
        part="replay",
        tasks=tuple(task for task in tasks if any(rule.is_judging(task) for rule in rules)),
        invariants=rules,
        cell_rules=(),
        scenarios=tuple({scenario.name: scenario for scenario in map(_build_scenario, sessions)}.values()),
        matrix=False,
    )


def list_unjudged(derived: Spec, sessions: Iterable[RecordedSession]) -> tuple[str, ...]:
    """Return the sessions that no rule judges, by id."""
    judged = {task.recording.session for task in derived.tasks if task.recording is not UNSET}
    return tuple(session.id for session in sessions if session.id not in judged)


def build_task(session: RecordedSession, *, live: bool) -> Task:
    """Return the task that replays a session."""
    where = _build_scenario(session).name
    more = (session.name, session.expected_failure, where, session.seed, session.fired)
    recording = Recording(session.id, session.responses, live, *more)
    return Task(session.turns, "replay", context=session.context or UNSET, recording=recording)


def _build_scenario(session: RecordedSession) -> Scenario:
    """Return the scenario of a session: calm unless the session has faults."""
    if session.scenario is None or session.scenario.calm:
        return Scenario(REPLAY)
    return replace(session.scenario, name=f"{REPLAY}/{session.id}")


def check_distinct(sessions: Iterable[RecordedSession]) -> None:
    """Raise UserError if two sessions share an id, because reports could not distinguish them."""
    by_id: dict[str, RecordedSession] = {}
    for session in sessions:
        first = by_id.setdefault(session.id, session)
        if first is not session:
            places = f"{_format_place(first)} and {_format_place(session)}"
            raise SessionUnusable(f"two sessions have the id {session.id!r}: {places}", hint="give each its own id")


def _check_failed_rules(spec: Spec, groups: Iterable[HeldSessions]) -> None:
    """Raise UserError if a rule that a session failed when it was recorded does not judge it."""
    # The other rules may all pass: a session whose rule was removed or renamed would pass whatever the agent does.
    forbidden = {f"forbidden {rule}" for rule in spec.world.forbidden.rules} if spec.world is not None else set()
    for group in groups:
        for session in group.sessions:
            judging = forbidden.union(rule.id for rule in group.rules if not rule.probes and _applies(rule, session))
            missing = next((rule for rule in session.failed_rules if rule not in judging), None)
            if missing is None:
                continue
            close = find_near_name(missing, judging)
            meant = f"did you mean {close}? " if close else ""
            raise UserError(
                f"{_format_place(session)}: session {session.id} failed rule {missing} when it was recorded, "
                "but no such rule judges it now: it would pass whatever the agent does",
                hint=f"{meant}restore the rule, or correct the session's failed_rules",
                code="session-rule-missing",
            )


def _format_place(session: RecordedSession) -> str:
    return f"{session.file}:{session.line}" if session.file else f"line {session.line} of the spec"


def _build_rules(groups: Iterable[HeldSessions]) -> Iterator[Invariant]:
    """Yield the rules of all contracts, each with the sessions that it judges."""
    used: set[str] = set()
    for group in groups:
        for rule in group.rules:
            judged = [session.id for session in group.sessions if _applies(rule, session)]
            if rule.probes or not judged:
                continue
            unique = _make_unique(rule.id, group.label, used)
            yield replace(rule, id=unique, when="always", sessions=tuple(judged), recorded_when=rule.when)


def _applies(rule: Invariant, session: RecordedSession) -> bool:
    """Return whether a rule's `when` applies to a session; a recorded tool failure counts as a tool fault.

    A session made from a trial records its faults, so its other failures do not count.
    """
    # A trace of another tool shows that a tool failed, but not why: for `when` that is a fault on some tool.
    weather = _build_scenario(session)
    if session.has_failures and session.seed is None:
        weather = replace(weather, injections=(*weather.injections, _FAILURE))
    return is_applicable(rule.when, weather)


def _make_unique(id: str, label: str, used: set[str]) -> str:
    """Return the id, as `no-leak [Finance]` if another contract already has a rule with that id."""
    candidate, n = id, 1
    while candidate in used:
        candidate = f"{id} [{label}]" if n == 1 else f"{id} [{label} {n}]"
        n += 1
    used.add(candidate)
    return candidate


class HeldSessions(Struct, frozen=True):
    """The rules of a contract and the sessions that they judge."""

    label: str
    """The contract's name; empty for the spec's own contract."""
    rules: tuple[Invariant, ...]
    sessions: tuple[RecordedSession, ...]


def group_by_contract(spec: Spec, sessions: Iterable[RecordedSession]) -> tuple[HeldSessions, ...]:
    """Group the sessions by contract, the spec's own first; raise UserError for an unknown contract."""
    root = Path(spec.path).resolve().parent
    of_spec: list[RecordedSession] = []
    others: dict[Path, list[RecordedSession]] = {}
    for session in sessions:
        place = _find_contract(spec, session, root)
        (of_spec if place is None else others.setdefault(place, [])).append(session)
    groups = [HeldSessions("", spec.invariants, tuple(of_spec))] if of_spec else []
    for place, sessions_of_file in others.items():
        contract = read_contract(place, os.path.relpath(place))
        rules = (replace(_make_relative(rule, place.parent, root), position=None) for rule in contract.rules)
        groups.append(HeldSessions(contract.name, tuple(rules), tuple(sessions_of_file)))
    return tuple(groups)


def _make_relative(rule: Invariant, folder: Path, root: Path) -> Invariant:
    """Make the file setting of a rule relative to the spec; it was relative to the contract."""
    key = get_traits(rule).file_setting
    if not key or folder == root:
        return rule
    return replace(rule, settings={**rule.settings, key: os.path.relpath(folder / str(rule.settings[key]), root)})


def _find_contract(spec: Spec, session: RecordedSession, root: Path) -> Path | None:
    """Return the file of a session's contract; None for the spec's own contract."""
    folder = Path(session.file).resolve().parent if session.file else root
    file = find_contract_file(session.contract, spec.name, folder, Path(spec.path))
    if file is None or os.path.isfile(file):
        return None if file is None else file.resolve()
    where = f"{session.file or spec.path}:{session.line}"
    what = f"{where}: session {session.id}: there is no contract {session.contract[:80]!r}"
    raise SessionUnusable(what, hint=suggest_contract(session.contract, spec.name, folder))
