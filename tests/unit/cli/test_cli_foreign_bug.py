"""An exception that nobody expected names the line of somebody else's code, such as a plug-in's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.cli.main import root, run


def test_a_bug_in_a_plugin_names_its_file_and_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lint(*_: Any, **__: Any) -> None:
        raise ValueError("no such word")

    monkeypatch.delenv("HOLDFAST_DEBUG", raising=False)
    monkeypatch.setattr(root, "main", lint)
    assert run(["checks", "--json"]) == 3
    error = json.loads(capsys.readouterr().out)["errors"][0]
    assert error["code"] == "bug"
    assert f"{__file__}:{lint.__code__.co_firstlineno + 1}" in error["message"]
