"""The stored causes of hunts: files for people and git, each replaced in one step."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.model.scenario import Injection, Scenario
from holdfast.model.spec import AgentSpec, Invariant, Spec
from holdfast.store.known_causes import KnownCause, get_causes_folder, read_known_causes, write_causes

CAUSE = KnownCause("hunt-1", "done-twice", Scenario("hunt-1", (Injection("tool", "charge", "lost_reply"),)), "Pay")


@pytest.fixture
def spec(tmp_path: Path) -> Spec:
    (tmp_path / "spec.yaml").write_text("{}")
    rule = Invariant("once", "side_effect_once", {"tool": "charge"})
    return Spec(str(tmp_path / "spec.yaml"), AgentSpec("python", "agent:ask"), invariants=(rule,))


def test_a_file_of_causes_is_never_half_written(spec: Spec, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    write = Path.write_bytes
    monkeypatch.setattr(Path, "write_bytes", lambda path, data: written.append(path.suffix) or write(path, data))
    write_causes(spec, [("once", CAUSE)], ())
    assert written == [".new"]
    (path,) = get_causes_folder(spec).iterdir()
    assert path.read_text().startswith('{\n  "format": 1,')
    assert path.read_text().endswith("}\n")
    write_causes(spec, (), ["hunt-1"])
    assert [one.fixed for one in read_known_causes(spec)["once"]] == [True]
