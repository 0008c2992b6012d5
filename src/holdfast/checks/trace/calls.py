"""The agent's calls as checks see them: each call once, even if several planes saw it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from holdfast import plugins
from holdfast.checks.trace.call_content import reports_error
from holdfast.checks.wording import shorten
from holdfast.model.trace import EVENTS_KEPT, Cost, TraceEvent
from holdfast.model.traits import CheckTraits, FaultTraits
from holdfast.model.verdict import Finding
from holdfast.planes.describe import TARGET_KEPT
from holdfast.planes.urls import matches_origin, matches_url
from holdfast.reading.words import format_plural

Glob = Annotated[str, Meta(min_length=1)]
"""A setting that selects calls: a tool name, a glob, or a URL with `://`."""

ANY_URL = ("*",)
"""The URLs of a check that reads every request."""
USAGE_TRAITS = CheckTraits(
    polarity="negative", reads="trace", texts=(), deeds=False, reads_cost=True, standards=("LLM10:2025",)
)
"""The traits of checks that limit what the model calls used."""
LISTED = 20
"""The number of calls listed as evidence."""

_WRITES = ("tool", "context", "mcp", "http")
"""Planes whose faults can act on a write."""
_CALLS = (*_WRITES, "llm", "service")
_METHOD = 60
"""Room for the method: a truncated target is at most this much shorter than the limit."""
OF_TOOLS = ("tool_call", "mcp_call")
_NEAREST = ("tool", "mcp", "tool_result")
"""Planes that may see the same tool call, the most detailed first."""


def find_calls(trace: Iterable[TraceEvent]) -> list[TraceEvent]:
    """Return every call once, as seen by the most detailed plane."""
    events = _repeat_events(trace)
    # One tool call can appear as a function call, as MCP traffic and as a result in model traffic. Per tool, only the
    # most detailed plane that saw it counts; declared calls are matched with made ones below.
    nearest: dict[str, int] = {}
    for event in events:
        if event.event_type in OF_TOOLS and event.phase != "declared":
            nearest[event.tool] = min(nearest.get(event.tool, len(_NEAREST)), _rank(event))
    answered = Counter(e.tool for e in events if e.plane == _NEAREST[-1] and e.phase != "declared")
    return _drop_matched([e for e in events if e.tool not in nearest or _is_nearest(e, nearest[e.tool])], answered)


def _repeat_events(trace: Iterable[TraceEvent]) -> list[TraceEvent]:
    """Repeat refused calls, which are stored once with a count, as often as they were made."""
    events = list(trace)
    if all(event.times == 1 for event in events):
        return events
    return [event for event in events for _ in range(min(event.times, EVENTS_KEPT))]


def split_requested(events: Iterable[TraceEvent]) -> tuple[list[TraceEvent], list[TraceEvent]]:
    """Return the calls that were made, and those that a model requested without Holdfast seeing them made."""
    calls_made: list[TraceEvent] = []
    requested: list[TraceEvent] = []
    for event in events:
        (requested if event.phase == "declared" else calls_made).append(event)
    return calls_made, requested


def describe_requested(requested: Sequence[TraceEvent]) -> str:
    """Return a note on requested calls that would decide a rule if they were made."""
    were, they = ("1 more was", "it was") if len(requested) == 1 else (f"{len(requested)} more were", "they were")
    return f"{were} requested by the model, but Holdfast did not see whether {they} made"


def find_own_calls(trace: Iterable[TraceEvent]) -> list[TraceEvent]:
    """Return the agent's own calls, without retries by client libraries.

    Not every library marks its retries. The same model request after a failure counts as a retry.
    """
    calls = find_outermost_calls(find_calls(trace))
    return [event for event, n in zip(calls, count_repetitions(calls), strict=True) if not _is_library_retry(event, n)]


def _is_library_retry(event: TraceEvent, repetition: int) -> bool:
    return bool(event.retry or (repetition and event.event_type == "llm_call"))


def count_repetitions(events: Iterable[TraceEvent]) -> list[int]:
    """Return, for each call, the number of consecutive failures of the same request directly before it."""
    row: dict[tuple[str, str], int] = {}
    before: dict[tuple[str, str], TraceEvent] = {}
    counts: list[int] = []
    for event in events:
        key = (event.event_type, event.identity)
        again = key in before and before[key].failed
        row[key] = row.get(key, 0) + 1 if again else event.retry
        before[key] = event
        counts.append(row[key])
    return counts


def find_outermost_calls(events: Iterable[TraceEvent]) -> list[TraceEvent]:
    """Return the calls without requests made inside a model function; the call of the function counts instead."""
    calls = list(events)
    functions = [e for e in calls if e.in_process]
    return [e for e in calls if e.in_process or not any(_is_made_inside(f, e) for f in functions)]


def find_model_calls(trace: Iterable[TraceEvent]) -> list[TraceEvent]:
    """Return every model call once: on the wire, which reports token usage, or at the function if none was seen
    there.
    """
    model_calls = [e for e in trace if e.event_type == "llm_call"]
    return [e for e in model_calls if not e.in_process or not any(_is_made_inside(e, other) for other in model_calls)]


def judge_usage(
    trace: Iterable[TraceEvent], used: float, limit: float, words: str, limit_words: str, codes: tuple[str, str, str]
) -> Finding:
    """Judge what the model calls used against a limit, both also in words.

    `codes` are those of a sum above the limit, of one that may be, and of one within it.
    """
    above, unknown, within = codes
    model_calls = find_model_calls(trace)
    if not model_calls:
        return Finding(None, "no model call was seen", "no-model-call")
    # Calls that reported nothing can only add to the sum, so above the limit it fails whatever is unknown.
    if used > limit:
        return Finding(False, f"{words}, more than {limit_words}", above)
    if silent := _describe_unreported(model_calls):
        return Finding(None, f"{silent}; the others: {words}", unknown)
    return Finding(True, words, within)


def find_costs(trace: Iterable[TraceEvent]) -> list[Cost]:
    """Return what the model calls used, as far as they reported it."""
    return [event.cost for event in find_model_calls(trace) if event.cost is not None]


def _describe_unreported(model_calls: Iterable[TraceEvent]) -> str:
    """Return a sentence on successful model calls that reported no token usage; empty if there are none."""
    silent = [e for e in model_calls if e.cost is None and not e.failed]
    if not silent:
        return ""
    names = shorten(", ".join(dict.fromkeys(get_call_name(e) for e in silent)), 120)
    return f"{format_plural(len(silent), 'model call')} to {names} reported no token usage"


def _is_made_inside(function: TraceEvent, event: TraceEvent) -> bool:
    """Return whether a request was made while the model function ran."""
    if event.in_process or event.event_type != "llm_call" or event.ts < function.ts:
        return False
    return function.phase == "unfinished" or event.ts <= function.ts + function.duration_ms / 1000


def add_call_traits(traits: CheckTraits, **globs: str | None) -> CheckTraits:
    """Return the traits of a check whose settings name calls: a tool, or a URL without its method.

    A URL with a parameter can match any URL.
    """
    tools = tuple((setting, glob) for setting, glob in globs.items() if glob is not None)
    urls = tuple("*" if "{{" in glob else glob.rpartition(" ")[2] for _, glob in tools if "://" in glob)
    return replace(traits, tools=tools, urls=urls)


def find_unreadable_call(trace: Iterable[TraceEvent], urls: Iterable[str]) -> TraceEvent | None:
    """Return the first tunnel or truncated request that may have gone to one of these URLs but could not be read."""
    globs = tuple(urls)
    return next((e for e in trace if globs and _is_unreadable(e) and _has_origin(globs, get_url(e))), None)


def _is_unreadable(event: TraceEvent) -> bool:
    if event.event_type != "http_call":
        return False
    if event.tool.startswith("CONNECT "):
        return event.status == 200 or event.error_type == "certificate_refused"
    return len(event.tool) >= TARGET_KEPT - _METHOD and " … " in event.tool


def _has_origin(globs: Iterable[str], url: str) -> bool:
    origin = "/".join(url.split("/", 3)[:3])
    try:
        return any(matches_origin(glob, origin) for glob in globs)
    except ValueError:  # an agent may request something that is not a URL
        return False


def is_match(event: TraceEvent, glob: str | None) -> bool:
    """Return whether a glob selects this call: a tool by name or, with `://`, a request by URL or `METHOD URL`.

    None selects every call.
    """
    if glob is None:
        return True
    if "://" not in glob:
        return event.event_type in OF_TOOLS and fnmatchcase(event.tool, glob)
    if event.event_type != "http_call":
        return False
    method, _, wanted = glob.rpartition(" ")
    by = event.tool.partition(" ")[0]
    if by == "CONNECT" and method != by:
        return False  # the tunnel itself, whose content was not read
    try:
        return fnmatchcase(by, method or "*") and matches_url(wanted, get_url(event))
    except ValueError:  # an agent may request something that is not a URL
        return False


def get_fault_modes(event: TraceEvent) -> frozenset[str]:
    """Return the modes of the faults that the call met."""
    return frozenset(event.fault.split("+")) if event.fault else frozenset()


def is_carried_out(event: TraceEvent) -> bool | None:
    """Return whether the other side carried out the call; None if that is unknown."""
    fault_modes = get_fault_modes(event)
    if event.unsent:
        return False
    if event.phase != "done":
        return None
    if event.plane == "tool_result":
        return True  # the tool has run: a fault changed only what the model read
    # The ledger knows which faults the call met, and each fault declares whether its call still reaches the other side.
    # With several faults, one that stops the call decides.
    ends = {get_delivery(mode) for mode in fault_modes}
    if "never" in ends:
        return False
    if "maybe" in ends:
        return None
    if fault_modes:
        return True
    if event.status is not None and 400 <= event.status < 500:
        return False
    return True if not event.failed and reports_error(event) is False else None


def get_delivery(mode: str) -> str:
    """Return whether a call that met the fault reached the other side."""
    # A trace has the mode of a fault but not its family, and one mode may exist in several. If they disagree, it is
    # unknown.
    outcomes = {traits.reached for traits in _find_fault_traits(mode, _WRITES)}
    return outcomes.pop() if len(outcomes) == 1 else "maybe"


def is_harmless(event: TraceEvent) -> bool:
    """Return whether the faults on a call only changed how the reply arrived or added to it."""
    return all(
        (fault_traits := _find_fault_traits(mode, _CALLS)) and all(traits.harmless for traits in fault_traits)
        for mode in get_fault_modes(event)
    )


def _find_fault_traits(mode: str, planes: Iterable[str]) -> list[FaultTraits]:
    """Return the traits of every fault with that mode; a trace does not say which plane it is on."""
    plugins_found = ((plane, plugins.find(f"faults.{plane}", mode)) for plane in planes)
    return [plugins.get_fault_traits(plane, mode) for plane, fault in plugins_found if fault is not None]


def get_url(event: TraceEvent) -> str:
    """Return the URL of a request."""
    return event.tool.partition(" ")[2]


def get_call_name(event: TraceEvent) -> str:
    """Return the call's target as a sentence names it."""
    return shorten(event.tool or event.event_type)


def list_calls(events: Sequence[TraceEvent]) -> dict[str, list[str]]:
    """Return the first calls with their arguments, as evidence; empty if there are none."""
    lines = [f"{get_call_name(event)} {shorten(event.input, 200)}" for event in events[:LISTED]]
    return {"calls": lines} if lines else {}


def _is_nearest(event: TraceEvent, rank: int) -> bool:
    return event.event_type not in OF_TOOLS or event.phase == "declared" or _rank(event) == rank


def _rank(event: TraceEvent) -> int:
    return _NEAREST.index(event.plane) if event.plane in _NEAREST else len(_NEAREST)


def _drop_matched(events: list[TraceEvent], answered: Counter[str]) -> list[TraceEvent]:
    """Remove requested calls that were also seen as made; `answered` counts those already matched by a result."""
    counts = Counter(e.tool for e in events if e.plane in _NEAREST[:-1] and e.phase != "declared")
    counts.subtract(answered)
    remaining = []
    for event in events:
        if event.phase == "declared" and counts[event.tool] > 0:
            counts[event.tool] -= 1
        else:
            remaining.append(event)
    return remaining
