"""The spec of a replay: one task a session, in the weather of its own, held to the rules of its contract."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import UNSET
from msgspec.structs import replace

from holdfast.errors import UserError
from holdfast.model.session import RecordedSession
from holdfast.model.spec import Injection, Invariant, Scenario, Spec
from holdfast.model.task import Recording, Task
from holdfast.model.when import applies
from holdfast.replay.contracts import HeldSessions, held
from holdfast.spec.parts import REPLAY

_FAILURE = Injection("tool", "*", "recorded")


def replay_spec(spec: Spec, sessions: Sequence[RecordedSession], *, live: bool) -> Spec:
    """The spec that replays the sessions; one that no rule judges is not among its tasks.

    A rule with probes asks its own prompts, and so judges no session.
    """
    distinct(sessions)
    rules = tuple(_rules(held(spec, sessions)))
    tasks = (session_task(one, live=live) for one in sessions)
    return replace(
        spec,
        part="replay",
        tasks=tuple(task for task in tasks if any(rule.concerns(task) for rule in rules)),
        invariants=rules,
        cell_rules=(),
        scenarios=tuple({one.name: one for one in map(_scenario, sessions)}.values()),
        matrix=False,
    )


def unjudged(derived: Spec, sessions: Iterable[RecordedSession]) -> tuple[str, ...]:
    """The sessions that no rule judges, by id."""
    judged = {task.recording.session for task in derived.tasks if task.recording is not UNSET}
    return tuple(session.id for session in sessions if session.id not in judged)


def session_task(session: RecordedSession, *, live: bool) -> Task:
    """What the agent is asked to replay a session."""
    where = _scenario(session).name
    more = (session.name, session.expected_failure, where, session.seed, session.fired)
    recording = Recording(session.id, session.responses, live, *more)
    return Task(session.turns, "replay", context=session.context or UNSET, recording=recording)


def _scenario(session: RecordedSession) -> Scenario:
    """The weather of a session: calm, unless it has faults of its own."""
    if session.scenario is None or session.scenario.calm:
        return Scenario(REPLAY)
    return replace(session.scenario, name=f"{REPLAY}/{session.id}")


def distinct(sessions: Iterable[RecordedSession]) -> None:
    """UserError if two sessions share an id: nobody could tell which one failed."""
    seen: dict[str, RecordedSession] = {}
    for session in sessions:
        first = seen.setdefault(session.id, session)
        if first is not session:
            places = f"{_where(first)} and {_where(session)}"
            raise UserError(f"two sessions have the id {session.id!r}: {places}", hint="give each an id of its own")


def _where(session: RecordedSession) -> str:
    return f"{session.file}:{session.line}" if session.file else f"line {session.line} of the spec"


def _rules(groups: Iterable[HeldSessions]) -> Iterator[Invariant]:
    """The rules of every contract, each for the sessions that it judges."""
    taken: set[str] = set()
    for group in groups:
        for rule in group.rules:
            judged = [one.id for one in group.sessions if _applies(rule, one)]
            if rule.probes or not judged:
                continue
            named = _unique(rule.id, group.label, taken)
            yield replace(rule, id=named, when="always", sessions=tuple(judged), recorded_when=rule.when)


def _applies(rule: Invariant, session: RecordedSession) -> bool:
    """What `when` means here: a recorded failure of a tool is a tool fault, like the session's own.

    Of a trial that became a session it is known which failures were faults.
    """
    weather = _scenario(session)
    if session.has_failures and session.seed is None:
        weather = replace(weather, injections=(*weather.injections, _FAILURE))
    return applies(rule.when, weather)


def _unique(id: str, label: str, taken: set[str]) -> str:
    """`no-leak [Finance]` where another contract has a rule of that id, too."""
    named, n = id, 1
    while named in taken:
        named = f"{id} [{label}]" if n == 1 else f"{id} [{label} {n}]"
        n += 1
    taken.add(named)
    return named
