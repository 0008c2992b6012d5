"""The file that spec tests write."""

from __future__ import annotations

from pathlib import Path

import pytest
from spec_texts import File


@pytest.fixture
def file(tmp_path: Path) -> File:
    return File(tmp_path)
