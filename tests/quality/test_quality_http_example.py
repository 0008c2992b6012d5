"""The HTTP example: its careless version is convicted through the wire, its good one acquitted."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from quality_run import run_spec

EXAMPLE = Path(__file__).parents[2] / "examples" / "http"


@contextmanager
def desk(*options: str) -> Iterator[str]:
    """The example's server on a free port; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(EXAMPLE / "server.py"), "--port", str(port), *options]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        _wait_for(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def _wait_for(port: int) -> None:
    for _ in range(200):
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("the example's server did not start")


@pytest.mark.parametrize(
    ("options", "convicted"), [((), set()), (("--careless",), {("obeys-nobody-else", "false-memory")})]
)
def test_the_http_example_shows_what_its_readme_says(
    options: tuple[str, ...], convicted: set[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = tmp_path / "holdfast.yaml"
    spec.write_text((EXAMPLE / "holdfast.yaml").read_text())
    with desk(*options) as address:
        monkeypatch.setenv("DESK_URL", address)
        result = run_spec(spec)
    assert result.with_outcome("fail") == convicted
    assert result.with_outcome("error", "unproven") == set()
    assert result.warnings == ()
