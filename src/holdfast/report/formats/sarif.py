"""SARIF 2.1.0, which code scanning shows at lines of the spec.

A violation is a result. Unproven cells and harness errors are notifications: neither is the agent's fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, ClassVar
from urllib.parse import quote

from holdfast.model.codec import digest, encode_canonical
from holdfast.model.run import Overall, Run
from holdfast.model.spec import Invariant
from holdfast.model.standards import StandardEntry
from holdfast.report.formats.files import encode_pieces
from holdfast.report.formats.line_remarks import LineRemark, get_level, list_remarks
from holdfast.report.safe import to_one_line
from holdfast.version import __version__

VERSION = "2.1.0"
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
CASE = "case"
"""The rule id of a case that failed without a rule of its own."""
OVERALL = "overall"
"""The rule id of a run of several parts."""


class Sarif:
    """`report.sarif`: each failed cell and case at its rule's line in the spec."""

    suffix: ClassVar[str] = ".sarif"

    def render(self, run: Run) -> Mapping[str, Iterable[bytes]]:
        return {"report.sarif": _render(run)}


def _render(run: Run) -> Iterator[bytes]:
    yield from encode_pieces(build_document(run))
    yield b"\n"


def build_document(run: Run) -> dict[str, Any]:
    """Return the log as plain values."""
    every_remark = list(list_remarks(run))
    failed = [one for one in every_remark if one.outcome == "fail"]
    rules = [_build_rule(rule) for rule in run.invariants]
    if any(not one.rule for one in every_remark):
        rules.append({"id": CASE, "shortDescription": {"text": "All rules of a case pass together"}})
    places = {rule["id"]: at for at, rule in enumerate(rules)}
    standards = tuple(dict.fromkeys(standard for one in failed for standard in one.standards))
    driver = {"name": "Holdfast", "version": run.version or "0", "rules": rules}
    return {
        "$schema": SCHEMA,
        "version": VERSION,
        "runs": [
            {
                "tool": {"driver": driver},
                **({"taxonomies": _build_taxonomies(standards)} if standards else {}),
                "automationDetails": {"id": f"holdfast/{run.part}/{_build_uri(run.source or run.spec_path)}/"},
                "invocations": [_build_invocation(run, [one for one in every_remark if one.outcome != "fail"], places)],
                "results": [_build_result(run, one, places) for one in failed],
                "properties": {"run": run.id, "seed": run.seed, "score": run.score.value, "passed": run.score.passed},
            }
        ],
    }


def build_whole_document(whole: Overall, runs: Iterable[Run]) -> dict[str, Any]:
    """Return one log for a run of several parts: a SARIF run for each part, and one for the overall verdict."""
    known = list(runs)
    parts = [entry for run in known for entry in build_document(run)["runs"]]
    source = next((run.source for run in known if run.source), whole.spec_path)
    return {"$schema": SCHEMA, "version": VERSION, "runs": [*parts, _build_overall(whole, source)]}


def _build_overall(whole: Overall, source: str) -> dict[str, Any]:
    """Return the overall verdict: a failure is a result at the top of the file; everything else is a notification."""
    base = {"message": {"text": _format_text("; ".join(whole.reasons))}, "locations": [_build_place(source, 1, 1)]}
    rule = {"id": OVERALL, "shortDescription": {"text": "Every part holds, and the overall score reaches its minimum"}}
    failed = {
        "ruleId": OVERALL,
        "ruleIndex": 0,
        "level": "error",
        **base,
        "partialFingerprints": {"holdfastCell/v1": digest(encode_canonical([OVERALL]), 16)},
    }
    notification = {
        "level": "note" if whole.exit_code == 5 else "error",
        **base,
        "associatedRule": {"id": OVERALL, "index": 0},
    }
    return {
        "tool": {"driver": {"name": "Holdfast", "version": __version__, "rules": [rule]}},
        "automationDetails": {"id": f"holdfast/ci/{_build_uri(source)}/"},
        "invocations": [
            _build_end(whole.exit_code, whole.started, [] if whole.exit_code in (0, 1) else [notification])
        ],
        "results": [failed] if whole.exit_code == 1 else [],
        "properties": {"run": whole.run, "seed": whole.seed, "score": whole.score, "passed": whole.passed},
    }


def _build_rule(rule: Invariant) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": _format_text(rule.description or rule.id)},
        "defaultConfiguration": {"level": get_level(rule)},
        "properties": {"check": rule.check, "severity": rule.severity, "gate": rule.gate},
    }


def _build_result(run: Run, one: LineRemark, places: Mapping[str, int]) -> dict[str, Any]:
    id = one.rule or CASE
    return {
        "ruleId": id,
        **({"ruleIndex": places[id]} if id in places else {}),
        "level": one.level,
        "message": {"text": _describe(one)},
        "locations": [_build_location(run, one)],
        "partialFingerprints": {
            "holdfastCell/v1": digest(encode_canonical([run.part, id, one.where, *one.other_cause]), 16)
        },
        **({"taxa": [_build_taxon(standard) for standard in one.standards]} if one.standards else {}),
        "properties": {"scenario": one.where, "code": one.code, "again": one.again, **_build_tags(one)},
    }


def _build_tags(one: LineRemark) -> dict[str, Any]:
    return {"tags": [standard.id for standard in one.standards]} if one.standards else {}


def _build_taxon(standard: StandardEntry) -> dict[str, Any]:
    """Return a reference to an entry of one of the run's taxonomies."""
    return {"id": standard.id, "toolComponent": {"name": standard.list}}


def _build_taxonomies(known: Iterable[StandardEntry]) -> list[dict[str, Any]]:
    """Return the referenced lists, each with its referenced entries."""
    lists: dict[str, list[StandardEntry]] = {}
    for standard in known:
        lists.setdefault(standard.list, []).append(standard)
    return [
        {
            "name": name,
            "taxa": [
                {"id": one.id, "name": one.title, "shortDescription": {"text": one.title}, "helpUri": one.url}
                for one in entries_of_list
            ],
        }
        for name, entries_of_list in lists.items()
    ]


def _build_invocation(run: Run, others: list[LineRemark], places: Mapping[str, int]) -> dict[str, Any]:
    notifications: list[dict[str, Any]] = [
        {"level": "warning", "message": {"text": _format_text(one.text)}, "properties": {"code": one.code}}
        for one in run.warnings
    ]
    notifications += [{"level": "note", "message": {"text": _format_text(note.text)}} for note in run.notes]
    listed = [*(_build_notification(run, one, places) for one in others), *notifications]
    return _build_end(run.score.exit_code, run.started, listed)


def _build_end(code: int, began: str, notifications: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "executionSuccessful": code in (0, 1, 5),
        "exitCode": code,
        **({"startTimeUtc": began.replace("+00:00", "Z")} if began else {}),
        "toolExecutionNotifications": notifications,
    }


def _build_notification(run: Run, one: LineRemark, places: Mapping[str, int]) -> dict[str, Any]:
    id = one.rule or CASE
    return {
        "level": "error" if one.outcome == "error" else "note",
        "message": {"text": _format_text(f"{one.outcome}: {_describe(one)}")},
        "locations": [_build_location(run, one)],
        "associatedRule": {"id": id, **({"index": places[id]} if id in places else {})},
        "properties": {"code": one.code},
    }


def _build_location(run: Run, one: LineRemark) -> dict[str, Any]:
    return _build_place(run.source or run.spec_path, one.line, one.column)


def _build_place(path: str, line: int, column: int) -> dict[str, Any]:
    region = {"startLine": max(1, line), "startColumn": max(1, column)}
    return {"physicalLocation": {"artifactLocation": {"uri": _build_uri(path)}, "region": region}}


def _describe(one: LineRemark) -> str:
    name = f"{one.rule} in {one.where}" if one.rule else one.where
    again = f" Again: {one.again}" if one.again else ""
    return _format_text(f"{name}: {one.reason}{'' if one.reason.endswith('.') else '.'}{again}")


def _format_text(text: str) -> str:
    """Return the text on one line, without links, which a message could contain."""
    return to_one_line(text).replace("](", "] (") or "-"


def _build_uri(path: str) -> str:
    """Return a path as a URI: relative as the user wrote it, or a file URI."""
    plain = PurePath(path)
    quoted = quote(plain.as_posix(), errors="surrogateescape")
    return f"file://{quoted}" if plain.is_absolute() else quoted
