"""Recorded responses in a sandbox: its network may be closed, for nobody outside is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from world_runs import BACKENDS, ran, spec_of

from planes_kit import answer, replay

CHARGES, RATES = "https://api.shop.test/v1/charges", "http://rates.shop.test/eur"
ASKS = f"""
    for url in {CHARGES} {RATES} {CHARGES}; do
        curl -s -m 20 $url || echo "curl failed"
        echo
    done
"""


@BACKENDS
@pytest.mark.parametrize(
    "network",
    [{"network": {"egress": {"default": "allow"}}}, {"network": {"egress": {"default": "deny"}}}],
    ids=["open", "closed"],
)
def test_a_sandboxed_agent_gets_what_was_recorded(tmp_path: Path, backend: str, network: dict[str, Any]) -> None:
    task = replay(answer(CHARGES, {"id": "ch_1"}), answer("*.shop.test/eur", "1.08"), prompt="go")
    found = ran(tmp_path, spec_of(ASKS, **network), backend=backend, tasks=(task,))
    assert [line for line in found.lines if line] == ['{"id": "ch_1"}', "1.08", "curl failed"]
    assert found.only.error == ""
    note = f"the recording has no reply for: GET {CHARGES}; all its recorded replies were used"
    assert note in found.only.notes
