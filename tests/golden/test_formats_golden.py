"""The fields of what others keep and read, as `formats.json` has them for each format's number.

A field that is added is written there by UPDATE_GOLDEN=1. One that is gone, or renamed, breaks who reads it: that
takes a higher number in `model/codec.py`, and the words in `docs/versioning.md`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from holdfast import plugins
from holdfast.model import codec
from holdfast.model.observation import Observation
from holdfast.model.run import Overall, PartResult
from holdfast.model.score import Score
from holdfast.model.trace import TraceEvent
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.model.world import AuditEvent
from holdfast.planes.llm.sources.cassette import RecordedReply
from holdfast.reading.fields import get_keys
from holdfast.report import overall
from holdfast.report.terminal import comparison as comparison_table
from holdfast.runner.start import PartFile
from holdfast.score.comparison import Comparison, RuleComparison
from holdfast.spec.catalogue.json_schema import find_sections
from holdfast.spec.sections.file import VERSIONS, File
from holdfast.store.past_run import PastRun
from holdfast.store.record import StoredAnswer, TrialRecord
from holdfast.store.rundir import Manifest, RunEnd

KEPT = Path(__file__).parent / "formats.json"
REPORTS = sorted((Path(__file__).parent / "report").glob("*.json"))
STORED = (
    Manifest, RunEnd, Trial, TrialRecord, Observation, Verdict, TraceEvent, AuditEvent, StoredAnswer, PartFile, Score,
    Overall,
)  # fmt: skip
FREE = {"details", "params", "counts", "types", "pass_hat"}
"""Maps whose keys are the user's or a check's own."""
Fields = dict[str, list[str]]


class Format(NamedTuple):
    """A format, its number or numbers, and what it has."""

    number: Any
    fields: Fields


def structs(*roots: type) -> Fields:
    """Every struct that is written with these, and its fields."""
    found = msgspec.inspect.multi_type_info(roots)
    return dict(sorted(_structs(found, set())))


def _structs(found: Any, seen: set[type]) -> Iterator[tuple[str, list[str]]]:
    if isinstance(found, tuple | list):
        for one in found:
            yield from _structs(one, seen)
    elif isinstance(found, msgspec.inspect.StructType):
        if found.cls not in seen:
            seen.add(found.cls)
            yield found.cls.__name__, sorted(field.encode_name for field in found.fields)
            yield from _structs([field.type for field in found.fields], seen)
    elif isinstance(found, msgspec.inspect.Type):
        yield from _structs([getattr(found, name) for name in found.__struct_fields__], seen)


def keys(value: Any, path: str = "") -> Iterator[str]:
    """The path of every key of a document, those of free maps left out."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{path}{key}"
            if key not in FREE:
                yield from keys(inner, f"{path}{key}.")
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from keys(inner, path)


def documents() -> Fields:
    """What programs read: the golden reports, and those that are made by hand."""
    part = PartResult("contract")
    rule = RuleComparison("cites", "worse", 1, 1, 0, 1, 0, 0.5, 0.5)
    return {
        "report": sorted({key for file in REPORTS for key in keys(json.loads(file.read_text()))}),
        "ci": sorted({*keys(overall.build_document(Overall("0007", None, False, 1, (part,))))}),
        "compare": sorted({*keys(comparison_table.build_document(Comparison("0006", "0007", (rule,))))}),
        "runs": sorted(name for name in PastRun.__struct_fields__ if name != "cells"),
    }


def spec_keys() -> Fields:
    """Every key that a spec may have, by its section; the settings of every fault, check and service."""
    written = {
        place or "the file": sorted(key.key for key in get_keys(kind)) for kind, place in find_sections(File).items()
    }
    families = [family for family in plugins.BUILT_IN if family not in ("reporters", "sandboxes")]
    return written | {
        f"{family} {name}": sorted(field.name for field in fields(plugins.find(family, name)))
        for family in families
        for name in plugins.BUILT_IN[family]
    }


FORMATS = {
    "json": lambda: Format(codec.JSON, documents()),
    "recording": lambda: Format(codec.RECORDING, structs(RecordedReply)),
    "run directory": lambda: Format(codec.RUN_DIRECTORY, structs(*STORED)),
    "spec": lambda: Format(list(VERSIONS), dict(sorted(spec_keys().items()))),
}


def gone(before: Fields, now: Fields) -> list[str]:
    """What a reader of the format as it was would miss."""
    return [f"{place}: {name}" for place, names in before.items() for name in names if name not in now.get(place, [])]


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_keeps_its_fields_while_it_keeps_its_number(name: str) -> None:
    now, kept = FORMATS[name](), json.loads(KEPT.read_text())
    before = Format(**kept[name]) if name in kept else now
    if now.number == before.number:
        assert gone(before.fields, now.fields) == [], "gone or renamed: give the format a higher number"
    if os.environ.get("UPDATE_GOLDEN"):
        KEPT.write_text(json.dumps({**kept, name: now._asdict()}, indent=1, sort_keys=True) + "\n")
    elif now != before or name not in kept:
        pytest.fail(f"{name}: other fields than formats.json has; read docs/versioning.md, then UPDATE_GOLDEN=1")


def test_what_is_gone_is_reported() -> None:
    assert gone({"Trial": ["id", "seed"]}, {"Trial": ["id"]}) == ["Trial: seed"]
    assert gone({"Trial": ["id"]}, {}) == ["Trial: id"]
    assert gone({"Trial": ["id"]}, {"Trial": ["id", "seed"], "Other": ["x"]}) == []
