"""A trial's story in the terminal: calls, faults, SQL and files on one timeline, then the rules.

It is drawn from the same document as the trial's page in the viewer (`report/page/trial.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from msgspec import Struct

from holdfast.report.page.trial import describe_action
from holdfast.report.safe import Paint, count_columns, make_visible, pad, shorten, to_one_line
from holdfast.report.wording import SIGNS, TROUBLE

_LANES = {"llm": "model", "tool_result": "result", "db_write": "sql", "file_write": "file", "http_call": "http"}
"""The timeline's names of planes and kinds of audited actions; others keep their name."""
_WHEN, _LANE = 9, 9
_LINES = 6
"""Lines of one text, unless `whole` is set."""
_IN_FULL = ("◆", "!")
_AUDIT_S = 1e8
"""Times from here on are seconds since 1970: the beginning of the trial is not known."""

Document = Mapping[str, Any]


class StoryLine(Struct, frozen=True):
    """One event in a trial."""

    at_ms: float | None
    """Milliseconds since the trial began; None: not known."""
    lane: str
    text: str
    more: tuple[tuple[str, str], ...] = ()
    """Further lines, each with its sign: sent, received, the fault on it, a line of a difference."""
    bad: bool = False


def build_timeline(trial: Document) -> list[StoryLine]:
    """Return all events, in order. Faults that belong to no call come first: they acted from the beginning."""
    placed: set[int] = set()
    steps = [_build_call(call, _take_faults(call, trial["faults"], placed)) for call in trial["trace"]]
    loose = [one for n, one in enumerate(trial["faults"]) if n not in placed]
    before = [StoryLine(None, "fault", one["text"], bad=one["effect"] == "met") for one in loose]
    http = {call["tool"] for call in trial["trace"] if call["plane"] == "http"}
    deeds = (one for one in trial["audit"] if f"{one['details'].get('method')} {one['details'].get('url')}" not in http)
    done = [_build_action(one, trial["files"]) for one in deeds]
    # Files are compared when the agent has ended; everything else happened before its last answer.
    ends = [call["ts"] * 1000 + call["duration_ms"] for call in trial["trace"]]
    ends += [step.at_ms or 0.0 for step in done if step.lane != _LANES["file_write"]]
    asked, answered = _build_turns(trial["turns"], max(ends, default=0.0))
    # The sort is stable: of events at one time an answer comes last.
    return before + sorted([*steps, *asked, *done, *answered], key=lambda step: step.at_ms or 0.0)


def _build_turns(turns: Sequence[Document], last_ms: float) -> tuple[list[StoryLine], list[StoryLine]]:
    """Return the questions and the answers. Only latencies are known, so the rest of the trial's time is put in
    front.
    """
    asked, answered = list[StoryLine](), list[StoryLine]()
    at = 0.0
    late = max(0.0, last_ms - sum(turn["latency_ms"] for turn in turns))
    for number, turn in enumerate(turns, 1):
        name = f" {number}" if len(turns) > 1 else ""
        asked.append(StoryLine(at, f"asked{name}", turn["asked"]))
        at = late + sum(one["latency_ms"] for one in turns[:number])
        badly = "" if turn["ending"] in ("answered", "under way") else turn["ending"].replace("_", " ")
        ending = ": ".join(part for part in (badly, turn["detail"]) if part)
        more = (("!", ending),) if ending else ()
        if turn["ending"] != "under way":
            answered.append(StoryLine(at, f"answered{name}", turn["text"] or "(nothing)", more, bool(badly)))
    return asked, answered


def _take_faults(call: Document, faults: Sequence[Document], placed: set[int]) -> list[Document]:
    """Return the faults that the call met; they are marked as placed."""
    modes = call["fault"].split("+") if call["fault"] else []
    # A call has the modes of its faults, but no reference to their firings. Several faults may have one mode, so the
    # number of the call, its retry and its place must agree, too.
    indexes = [
        n
        for n, one in enumerate(faults)
        if one["mode"] in modes
        and (one["call"], one["retry"]) == (call["n"], call["retry"])
        and (one["plane"] == call["plane"] or one["target"] == call["tool"])
    ]
    placed.update(indexes)
    return [faults[n] for n in indexes]


def _build_call(call: Document, faults: Sequence[Document]) -> StoryLine:
    cost = call["cost"] or {}
    tokens = (cost.get("input_tokens") or 0) + (cost.get("output_tokens") or 0)
    ending = [call["status"], call["error_type"], "" if call["phase"] == "done" else call["phase"]]
    about = (
        call["tool"],
        _format_ms(call["duration_ms"]),
        " ".join(str(part) for part in ending if part),
        f"retry {call['retry']}" if call["retry"] else "",
        f"{call['times']} times" if call["times"] > 1 else "",
        f"{tokens} tokens" if tokens else "",
        f"script {call['script']}" if call["script"] else "",
    )
    more = [("→", call["input"])] if call["input"] else []
    for one in faults:
        change = one["change"] or " → ".join(part for part in (one["would"], one["got"]) if part)
        more.append(("◆", ": ".join(part for part in (one["mode"], change, one["note"]) if part)))
    more += [("←", call["output"])] if call["output"] else []
    lane = str(_LANES.get(call["plane"]) or call["plane"] or call["event_type"])
    text = "  ".join(part for part in about if part)
    return StoryLine(call["ts"] * 1000, lane, text, tuple(more), bool(call["failed"] or faults))


def _build_action(event: Document, files: Sequence[Document]) -> StoryLine:
    """Return an action from the audit log, in the words of the trial's page."""
    kind, details = event["type"], event["details"]
    text = describe_action(kind, details)
    more: tuple[tuple[str, str], ...] = ()
    if kind == "command" and details.get("exit_code"):
        text += f"  (exit {details['exit_code']})"
    elif kind == "file_write":
        text += f"  ({details['bytes']} bytes)" if details.get("bytes") is not None else ""
        diff = next((one["diff"] for one in files if one["path"] == details.get("path")), "")
        changed = [line for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
        more = tuple((line[0], line[1:]) for line in changed)
    at = event["ts"] * 1000 if event["ts"] < _AUDIT_S else None
    return StoryLine(at, str(_LANES.get(kind, kind)), text, more, bool(kind == "command" and details.get("exit_code")))


def format_story(trial: Document, run: str, paint: Paint, width: int, *, whole: bool = False) -> Iterator[str]:
    """Yield the story as lines; `whole`: every text in full."""
    outcome = trial["outcome"] or ("error" if trial["ending"] == "error" else "n/a")
    head, id = f"{SIGNS[outcome]} {outcome}  {trial['column']}", f"trial {trial['id']} of run {run}"
    yield f"{paint(to_one_line(head), outcome)}  {paint(id, 'dim')}"
    if trial["detail"]:
        yield from _indent_lines(trial["detail"], "  ", width, whole)
    yield ""
    marked = _mark_answers(trial)
    for step in build_timeline(trial):
        yield from _format_step(step, marked, paint, width, whole)
    left_out = trial["trace_left_out"] + trial["audit_left_out"]
    if left_out:
        yield paint(f"  … and {left_out} more in the run's folder", "dim")
    yield ""
    yield from _format_rules(trial, paint, width, whole)
    for note in trial["notes"]:
        yield from _indent_lines(f"note: {note}", "  ", width, whole)
    for word, command in (("again", trial["again"]), ("promote", trial["promote"])):
        if command:
            yield f"  {paint(pad(word, 8), 'dim')} {make_visible(command)}"


def _format_step(step: StoryLine, marked: Mapping[str, str], paint: Paint, width: int, whole: bool) -> Iterator[str]:
    when = "" if step.at_ms is None else _format_ms(step.at_ms)
    room = width - _WHEN - _LANE - 2
    style = "fail" if step.bad else ""
    first, *further = _wrap_lines(marked.get(step.lane, step.text), room, whole)
    margin = " " * (_WHEN + _LANE + 2)
    yield f"{paint(when.rjust(_WHEN), 'dim')}  {paint(pad(step.lane, _LANE), style or 'bold')}{first}"
    yield from (margin + line for line in further)
    lines = step.more if whole else step.more[:_LINES]
    for sign, text in lines:
        # The change of a fault is never cut; what was sent and received is one line.
        brief = not whole and sign not in _IN_FULL
        wrapped = [shorten(to_one_line(text), room - 2)] if brief else _wrap_lines(text, room - 2, whole)
        colour = {"◆": "fail", "!": "fail", "+": "pass", "-": "fail"}.get(sign, "dim")
        for number, line in enumerate(wrapped):
            yield f"{margin}{paint(f'{sign} {line}' if not number else f'  {line}', colour)}"
    if len(lines) < len(step.more):
        yield f"{margin}{paint(f'… {len(step.more) - len(lines)} more lines: -v shows them', 'dim')}"


def _format_rules(trial: Document, paint: Paint, width: int, whole: bool) -> Iterator[str]:
    for one in trial["forbidden"]:
        if one["violated"] or one["error"]:
            why = one["error"] or "; ".join(one["details"])
            outcome = "fail" if one["violated"] else "error"
            yield from _format_rule(outcome, f"forbidden: {one['rule']}", "", why, paint, width, whole)
    for one in _sort_verdicts(trial):
        words = "  ".join(part for part in (one["severity"], one["where"]) if part)
        yield from _format_rule(one["outcome"], one["rule"], words, one["reason"], paint, width, whole)


def _format_rule(outcome: str, name: str, words: str, why: str, paint: Paint, width: int, whole: bool) -> Iterator[str]:
    text = shorten(to_one_line(words), max(0, width - count_columns(name) - 6))
    yield f"  {paint(f'{SIGNS[outcome]} {to_one_line(name)}', outcome)}  {paint(text, 'dim')}".rstrip()
    if why:
        yield from _indent_lines(why, "    ", width, whole)


def _sort_verdicts(trial: Document) -> list[Document]:
    """Return the verdicts, those that need explaining first."""
    order = (*TROUBLE, "pass", "n/a")
    return sorted(trial["verdicts"], key=lambda one: order.index(one["outcome"]))


def _mark_answers(trial: Document) -> dict[str, str]:
    """By lane, the answer with the deciding words in «», from the first verdict that marks them."""
    deciding = next((one for one in _sort_verdicts(trial) if one["marks"] and one["outcome"] == "fail"), None)
    if deciding is None or not 0 <= deciding["turn"] < len(trial["turns"]):
        return {}
    units = (trial["turns"][deciding["turn"]]["text"] or "").encode(
        "utf-16-le", "surrogatepass"
    )  # in the units of the marks
    at, parts = 0, list[str]()
    for start, end in sorted(deciding["marks"]):
        if start >= at:
            parts += [_cut_units(units, at, start), f"«{_cut_units(units, start, end)}»"]
            at = end
    name = f" {deciding['turn'] + 1}" if len(trial["turns"]) > 1 else ""
    return {f"answered{name}": "".join(parts) + _cut_units(units, at, len(units))}


def _cut_units(text: bytes, start: int, end: int) -> str:
    return text[2 * start : 2 * end].decode("utf-16-le", "replace")


def _wrap_lines(text: str, room: int, whole: bool) -> list[str]:
    """Return the text wrapped to the width: the first few lines, unless `whole` is set."""
    room = max(room, 20)
    wrapped = [line for part in make_visible(text, keep="\n").splitlines() for line in wrap(part, room) or [""]] or [""]
    if whole or len(wrapped) <= _LINES:
        return wrapped
    return [*wrapped[: _LINES - 1], shorten(wrapped[_LINES - 1], room - 2) + " …"]


def _indent_lines(text: str, margin: str, width: int, whole: bool) -> Iterable[str]:
    return (margin + line for line in _wrap_lines(text, width - len(margin), whole))


def _format_ms(ms: float) -> str:
    return f"{ms / 1000:,.2f} s" if ms >= 1000 else f"{ms:.0f} ms"
