"""Records the evidence of state checks, and finds it again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from holdfast.errors import HarnessError
from holdfast.model.codec import digest, encode_canonical, to_builtins
from holdfast.model.world import Evidence
from holdfast.protocols.check import Exhibit

NOT_RECORDED = "not recorded in this run"
KEPT = 10_000_000
"""Maximum number of bytes that one check records."""
SHOWN = 20
"""Maximum number of items that are listed as evidence."""

S = TypeVar("S", bound=Struct)


def build_evidence(subject: Sequence[Any], evidence: Struct) -> Evidence:
    """Return the evidence, marked with what was examined: a rule that changes later must not use it."""
    return Evidence({"of": _digest_subject(subject), "found": to_builtins(evidence)})


def read_evidence(exhibit: Exhibit, subject: Sequence[Any], kind: type[S]) -> S:
    """Return the evidence for exactly this; raise HarnessError if it was not or could not be recorded."""
    return decode_evidence(exhibit.evidence, subject, kind)


def decode_evidence(evidence: Evidence | None, subject: Sequence[Any], kind: type[S]) -> S:
    """Return the evidence for exactly this, from the evidence itself instead of an exhibit."""
    if evidence is None:
        raise HarnessError(NOT_RECORDED, code="check-not-recorded")
    if evidence.error:
        raise HarnessError(evidence.error, code="check-not-recorded")
    data = evidence.data
    if not isinstance(data, dict) or data.get("of") != _digest_subject(subject):
        raise HarnessError(NOT_RECORDED, code="check-not-recorded")
    try:
        return msgspec.convert(data["found"], kind)
    except (KeyError, msgspec.ValidationError) as bad:
        raise HarnessError(f"the recorded evidence cannot be read: {bad}", code="check-not-recorded") from bad


def _digest_subject(subject: Sequence[Any]) -> str:
    return digest(encode_canonical(list(subject)))
