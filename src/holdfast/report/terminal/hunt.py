"""A hunt in the terminal: causes first, then what was covered, then notes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from holdfast.hunt.fault_map import FaultMap, MapCoverage
from holdfast.hunt.outcomes import Count
from holdfast.hunt.points import format_site
from holdfast.hunt.result import HuntedCause, HuntResult
from holdfast.report.safe import to_one_line
from holdfast.report.wording import format_count, format_exit_code
from holdfast.spec.references import interpolate

_ALSO = 4
"""Stronger faults of a cause that are listed."""
_STOPS = {
    "trials": "--max-trials",
    "time": "--max-time",
    "cost": "--max-cost",
    "interrupted": "an interrupt",
    "broken": "a harness error",
}


def format_hunt(result: HuntResult, spec: str, run: str) -> Iterator[str]:
    """Yield the summary. `spec` is the file, `run` where the hunt is stored."""
    for cause in result.causes:
        yield from format_cause(cause, spec)
        yield ""
    for flaky in result.flaky:
        counted = f"failed {flaky.failed} of {flaky.runs}, in calm {flaky.calm_failed} of {flaky.calm_runs}"
        yield f"? flaky  {_format_broken(flaky)}: {counted}"
        yield f"  faults     {format_faults(flaky.faults)}"
    if result.gave_up:
        yield f"gave up: no answer and no write under {format_count(len(result.gave_up), 'lasting fault')}"
        yield from (f"  {format_faults(one.faults)}  (holdfast show {one.trial})" for one in result.gave_up[:3])
    if result.fixed:
        yield f"fixed: {', '.join(result.fixed)}"
    if result.retired:
        reason = (
            "the prompt or the rule is no longer in the file, and with its present prompts the faults break no rule"
        )
        yield f"retired: {', '.join(result.retired)} ({reason})"
    if not result.only_known:
        yield format_coverage(result)
    yield from (f"note: {note}" for note in result.notes)
    stop = f" · stopped by {_STOPS[result.stopped]}" if result.stopped in _STOPS else ""
    verdict = format_exit_code(result.exit_code, is_shard=bool(result.shard))
    counted = f"{format_count(len(result.causes), 'cause')} · {format_count(result.trials, 'trial')}"
    yield f"{verdict}  {counted}{stop} · {run}"


def format_coverage(result: HuntResult) -> str:
    """`48 single faults: 46 held, 2 infeasible; 960 pairs: 812 held, 85 infeasible, 63 open`."""
    parts = [_format_counts(format_count(result.coverage.points.total, "single fault"), result.coverage.points)]
    if result.coverage.pairs.total:
        parts.append(_format_counts(format_count(result.coverage.pairs.total, "pair"), result.coverage.pairs))
    return "; ".join(parts)


def _format_counts(head: str, count: Count) -> str:
    states = {"held": count.held, "failed": count.failed, "infeasible": count.infeasible, "open": count.open}
    return f"{head}: " + ", ".join(f"{number} {state}" for state, number in states.items() if number or state == "held")


def format_cause(cause: HuntedCause, spec: str) -> Iterator[str]:
    """Yield the block of one cause."""
    again = " · known" if cause.known else ""
    yield f"✘ {cause.id}  breaks {_format_broken(cause)}{again}"
    for number, prompt in enumerate(cause.prompts or filter(None, (cause.prompt,))):
        prompt_text = interpolate(prompt, cause.params) if cause.params else prompt
        yield f"  {'' if number else 'asked':<9}  {to_one_line(prompt_text)}"
    if cause.params:
        yield f"  params     {to_one_line(', '.join(f'{name}={value}' for name, value in cause.params.items()))}"
    yield f"  faults     {format_faults(cause.faults)}"
    if cause.also:
        more = f" and {len(cause.also) - _ALSO} more" if len(cause.also) > _ALSO else ""
        yield f"  also with  {'; '.join(map(format_faults, cause.also[:_ALSO]))}{more}"
    if cause.reason:
        yield f"  because    {to_one_line(cause.reason)}"
    failed = f"{cause.failed} of {cause.runs} under these faults"
    live = f" · live {cause.live_failed} of {cause.live_runs}" if cause.live_runs else ""
    yield f"  failed     {failed} · {cause.calm_failed} of {cause.calm_runs} in calm{live}"
    heads = ("  paste      ", *["             "] * 1000)
    yield from (head + line for head, line in zip(heads, dump_scenarios([cause.scenario]).splitlines(), strict=False))
    yield f"  timeline   holdfast show {cause.trial}"
    yield f"  reproduce  {cause.write_command(spec)}"


def _format_broken(cause: HuntedCause) -> str:
    return f"{', '.join(cause.rules)} [{cause.code}]"


def format_faults(faults: Iterable[Mapping[str, Any]]) -> str:
    """`lost_reply at charge, call 1 + error at search, from call 2 on`."""
    return " + ".join(map(_format_fault, faults))


def _format_fault(fault: Mapping[str, Any]) -> str:
    plane, target, ordinal = str(fault["plane"]), str(fault["target"]), int(fault["on_call"])
    if plane == "world":
        return f"{fault['mode']} {format_site(plane, target, ordinal)}"
    return (
        f"{fault['mode']} at {'the model' if plane == 'llm' else to_one_line(target)}, {_format_calls(fault, ordinal)}"
    )


def _format_calls(fault: Mapping[str, Any], first: int) -> str:
    """`call 2`, `from call 2 on`, `calls 2 to 4`, `from call 1 on, 60 % of calls`."""
    if "after_calls" not in fault:
        return f"call {first}"
    every, times, probability = fault.get("every", 1), fault.get("times"), fault.get("probability", 1.0)
    if every == 1 and probability == 1.0 and times is not None:
        return f"calls {first} to {first + times - 1}" if times > 1 else f"call {first}"
    parts = [f"from call {first} on"]
    parts += [f"every {every} calls"] if every > 1 else []
    parts += [f"{100 * probability:g} % of calls"] if probability < 1.0 else []
    parts += [f"at most {times} times"] if times is not None else []
    return ", ".join(parts)


_SIGNS = {"held": "✔", "failed": "✘", "not met": "?", "open": "·"}


def format_map(fault_map: FaultMap, page: str = "") -> Iterator[str]:
    """Yield the calls with what they feed, then call sites × modes. `page` has the same as a picture."""
    prompt = None
    for site in fault_map.sites:
        if site.prompt != prompt:
            prompt = site.prompt
            yield f"asked: {to_one_line(prompt)}"
        name = to_one_line(format_site(site.plane, site.target, site.on_call)) + (" (write)" if site.write else "")
        yield f"  {name}" + (f"  ──▶ {', '.join(map(to_one_line, site.feeds))}" if site.feeds else "")
    modes = list(dict.fromkeys(mode for row in fault_map.coverage.rows for mode in row.modes))
    heads = [to_one_line(format_site(row.plane, row.target, row.on_call)) for row in fault_map.coverage.rows]
    wide = max(map(len, heads), default=0)
    yield ""
    for number, mode in enumerate(modes):
        yield f"  {' ' * wide}  {'│ ' * number}┌ {mode}"
    for head, row in zip(heads, fault_map.coverage.rows, strict=True):
        signs = (_SIGNS[row.modes[mode].state] if mode in row.modes else " " for mode in modes)
        yield f"  {head:<{wide}}  {' '.join(signs)}"
    yield ""
    yield "  ✔ held  ✘ failed  ? not met  · open"
    yield format_map_coverage(fault_map.coverage)
    if fault_map.scores:
        scores = ", ".join(f"{one.part} {one.score:.2f} (run {one.run})" for one in fault_map.scores)
        yield f"score {scores}: it says nothing about the faults that are still open"
    if page:
        yield f"picture: {page}"


def format_map_coverage(count: MapCoverage) -> str:
    """`fault coverage 8 %: of 37 faults 3 held, 0 failed, 0 not met, 34 open`."""
    states = f"{count.held} held, {count.failed} failed, {count.not_met} not met, {count.open} open"
    extra = f"; {format_count(count.extra, 'other fault')} met that hunts do not use" if count.extra else ""
    return f"fault coverage {count.percent:.0f} %: of {format_count(count.total, 'fault')} {states}{extra}"


def dump_scenarios(scenarios: Iterable[Mapping[str, Any]]) -> str:
    """Entries of a chaos_matrix."""
    # JSON has no shared values: YAML would write an anchor, which is missing where only a later scenario is pasted.
    plain = json.loads(json.dumps(list(scenarios)))
    return str(yaml.safe_dump(plain, sort_keys=False, default_flow_style=None, allow_unicode=True, width=200))
