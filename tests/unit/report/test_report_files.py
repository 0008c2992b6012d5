"""Reporters are found by suffix."""

from __future__ import annotations

import subprocess
import sys

import pytest

from holdfast import plugins
from holdfast.report.formats.files import get_suffix


@pytest.mark.parametrize("name", sorted(plugins.BUILT_IN["reporters"]))
def test_the_suffix_that_is_known_is_the_reporters_own(name: str) -> None:
    found = plugins.find("reporters", name)
    assert found is not None
    assert get_suffix(name) == found.suffix


def test_a_json_report_imports_no_other_reporter() -> None:
    code = "import sys, pathlib; from holdfast.report.formats.files import find_reporter;"
    code += "find_reporter(pathlib.Path('a.json'));"
    code += "print([m for m in ('html', 'junit', 'markdown') if f'holdfast.report.{m}' in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
