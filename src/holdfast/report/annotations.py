"""What did not hold, as workflow commands of GitHub Actions: shown beside the spec's lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from holdfast.model.run import Run
from holdfast.report.line_remarks import Level, LineRemark, remarks
from holdfast.report.safe import one_line
from holdfast.report.wording import report_path, verdict

MOST = 10
"""Of each kind: GitHub shows no more of one step."""
_COMMANDS: dict[Level, str] = {"error": "error", "warning": "warning", "note": "notice"}


def workflow_commands(run: Run, file: str) -> Iterator[str]:
    """A line each, the worst first; `file` is the spec as the repository knows it. What is too much is counted."""
    shown: Counter[str] = Counter()
    left = 0
    for one in remarks(run):
        command = _command(one)
        if shown[command] < MOST:
            shown[command] += 1
            yield _line(command, one, file)
        else:
            left += 1
    if left:
        yield f"::notice title=Holdfast::{_data(f'{left} more: {report_path(run)}')}"
    if run.score.exit_code and not shown["error"] and not shown["warning"]:
        said = "; ".join(run.score.reasons)
        yield f"::error file={_property(file)},title=Holdfast::{_data(f'{verdict(run.score)}: {one_line(said)}')}"


def _command(one: LineRemark) -> str:
    return "warning" if one.outcome == "error" else _COMMANDS[one.level]


def _line(command: str, one: LineRemark, file: str) -> str:
    name = f"{one.rule} in {one.where}" if one.rule else one.where
    said = one_line(one.reason if one.outcome == "fail" else f"{one.outcome}: {one.reason}")
    again = f"\nagain: {one_line(one.again)}" if one.again else ""
    place = f"file={_property(file)},line={max(1, one.line)},title={_property(one_line(name))}"
    return f"::{command} {place}::{_data(said + again)}"


def _data(text: str) -> str:
    """What stands after the second pair of colons."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """The value of a property, which ends at a comma or a colon."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
