"""A hunt in the terminal: causes first, then what was covered, then notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from shlex import quote
from typing import Any

from holdfast.hunt.evidence import Count
from holdfast.hunt.fault_map import FaultMap
from holdfast.hunt.points import site_name
from holdfast.hunt.result import HuntedCause, HuntResult
from holdfast.report.safe import one_line
from holdfast.report.wording import plural

VERDICTS = {0: "HELD", 1: "FAIL", 2: "INTERRUPTED", 3: "ERROR", 5: "UNPROVEN"}
"""By the exit code of a hunt."""
_STOPS = {
    "trials": "--max-trials",
    "time": "--max-time",
    "cost": "--max-cost",
    "interrupted": "an interrupt",
    "broken": "a harness error",
}


def hunt_lines(result: HuntResult, spec: str, run: str) -> Iterator[str]:
    """The summary. `spec` is the file, `run` where the hunt is stored."""
    for cause in result.causes:
        yield from cause_lines(cause, spec)
        yield ""
    for flaky in result.flaky:
        counted = f"failed {flaky.failed} of {flaky.runs}, in calm {flaky.calm_failed} of {flaky.calm_runs}"
        yield f"? flaky  {_broken(flaky)}: {counted}"
        yield f"  faults     {fault_words(flaky.faults)}"
    if result.gave_up:
        yield f"gave up: no answer and no write under {plural(len(result.gave_up), 'lasting fault')}"
        yield from (f"  {fault_words(one.faults)}  (holdfast show {one.trial})" for one in result.gave_up[:3])
    if result.fixed:
        yield f"fixed: {', '.join(result.fixed)}"
    if not result.only_known:
        yield coverage_words(result)
    yield from (f"note: {note}" for note in result.notes)
    stop = f" · stopped by {_STOPS[result.stopped]}" if result.stopped in _STOPS else ""
    verdict = VERDICTS[result.exit_code]
    counted = f"{plural(len(result.causes), 'cause')} · {plural(result.trials, 'trial')}"
    yield f"{verdict}  {counted}{stop} · {run}"


def coverage_words(result: HuntResult) -> str:
    """`48 single faults: 46 held, 2 infeasible; 960 pairs: 812 held, 85 infeasible, 63 open`."""
    parts = [_counted(plural(result.coverage.points.total, "single fault"), result.coverage.points)]
    if result.coverage.pairs.total:
        parts.append(_counted(plural(result.coverage.pairs.total, "pair"), result.coverage.pairs))
    return "; ".join(parts)


def _counted(head: str, count: Count) -> str:
    states = {"held": count.held, "failed": count.failed, "infeasible": count.infeasible, "open": count.open}
    return f"{head}: " + ", ".join(f"{number} {state}" for state, number in states.items() if number or state == "held")


def cause_lines(cause: HuntedCause, spec: str) -> Iterator[str]:
    """The block of one cause."""
    again = " · known" if cause.known else ""
    yield f"✘ {cause.id}  breaks {_broken(cause)}{again}"
    for number, prompt in enumerate(cause.prompts or filter(None, (cause.prompt,))):
        yield f"  {'' if number else 'asked':<9}  {one_line(prompt)}"
    yield f"  faults     {fault_words(cause.faults)}"
    if cause.reason:
        yield f"  because    {one_line(cause.reason)}"
    failed = f"{cause.failed} of {cause.runs} under these faults"
    live = f" · live {cause.live_failed} of {cause.live_runs}" if cause.live_runs else ""
    yield f"  failed     {failed} · {cause.calm_failed} of {cause.calm_runs} in calm{live}"
    heads = ("  paste      ", *["             "] * 1000)
    yield from (head + line for head, line in zip(heads, scenario_yaml([cause.scenario]).splitlines(), strict=False))
    yield f"  timeline   holdfast show {cause.trial}"
    yield f"  reproduce  holdfast hunt {quote(spec)} --cause {cause.id}"


def _broken(cause: HuntedCause) -> str:
    return f"{', '.join(cause.rules)} [{cause.code}]"


def fault_words(faults: Iterable[Mapping[str, Any]]) -> str:
    """`lost_reply at charge, call 1 + error at search, from call 2 on`."""
    return " + ".join(map(_fault, faults))


def _fault(fault: Mapping[str, Any]) -> str:
    plane, target, ordinal = str(fault["plane"]), str(fault["target"]), int(fault["on_call"])
    if plane == "world":
        return f"{fault['mode']} {site_name(plane, target, ordinal)}"
    call = f"from call {ordinal} on" if "after_calls" in fault else f"call {ordinal}"
    return f"{fault['mode']} at {'the model' if plane == 'llm' else one_line(target)}, {call}"


_SIGNS = {"held": "✔", "failed": "✘", "not met": "?", "open": "·"}


def map_lines(found: FaultMap) -> Iterator[str]:
    """The calls with what they feed, then call sites × modes."""
    prompt = None
    for site in found.sites:
        if site.prompt != prompt:
            prompt = site.prompt
            yield f"asked: {one_line(prompt)}"
        name = one_line(site_name(site.plane, site.target, site.on_call)) + (" (write)" if site.write else "")
        yield f"  {name}" + (f"  ──▶ {', '.join(map(one_line, site.feeds))}" if site.feeds else "")
    modes = list(dict.fromkeys(mode for row in found.coverage.rows for mode in row.modes))
    heads = [one_line(site_name(row.plane, row.target, row.on_call)) for row in found.coverage.rows]
    wide = max(map(len, heads), default=0)
    yield ""
    for number, mode in enumerate(modes):
        yield f"  {' ' * wide}  {'│ ' * number}┌ {mode}"
    for head, row in zip(heads, found.coverage.rows, strict=True):
        signs = (_SIGNS[row.modes[mode].state] if mode in row.modes else " " for mode in modes)
        yield f"  {head:<{wide}}  {' '.join(signs)}"
    count = found.coverage
    yield ""
    yield "  ✔ held  ✘ failed  ? not met  · open"
    states = f"{count.held} held, {count.failed} failed, {count.not_met} not met, {count.open} open"
    yield f"fault coverage {count.percent:.0f} %: of {plural(count.total, 'fault')} {states}"


def scenario_yaml(scenarios: Iterable[Mapping[str, Any]]) -> str:
    """Entries of a chaos_matrix."""
    import yaml  # most hunts find nothing to write

    return str(yaml.safe_dump(list(scenarios), sort_keys=False, default_flow_style=None, allow_unicode=True, width=200))
