"""Traces are written to a file or sent to a collector; sending never breaks a run."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from golden_words import Golden
from holdfast.errors import UsageError
from holdfast.model.observation import Observation
from holdfast.model.run import Run, TracedTrial
from holdfast.model.scenario import Scenario
from holdfast.model.score import Score
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.runner.export import check_target, export

TRACED = TracedTrial(Trial("0123456789ab", "contract", Scenario("calm"), Task(("q",))), Observation("0123456789ab"))


class Ended:
    """An outcome as far as an export looks at it."""

    run = Run("0001", "runs/0001", "t", "t.yaml", 0, Score(None, True, 0), (), (), ())

    @property
    def cells(self) -> Any:
        return self

    def read_traced(self) -> Iterator[TracedTrial]:
        return iter([TRACED])


class Collector:
    """A server that answers every request alike."""

    def __init__(self, status: int) -> None:
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        got = self.got

        class Answer(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                got.append((self.path, dict(self.headers), body))
                self.send_response(status)
                self.send_header("Content-Length", "4")
                self.end_headers()
                self.wfile.write(b"busy")

            def log_message(self, *_: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))

    def __enter__(self) -> Collector:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()


def sent(target: str, environ: dict[str, str] | None = None) -> str | None:
    return export(Ended(), target, environ or {})  # type: ignore[arg-type]


def test_a_file_has_one_request_a_line(tmp_path: Path) -> None:
    assert sent(str(tmp_path / "t.jsonl")) is None
    (line,) = (tmp_path / "t.jsonl").read_bytes().splitlines()
    assert json.loads(line)["resourceSpans"]
    assert [p.name for p in tmp_path.iterdir()] == ["t.jsonl"]


def test_a_file_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        sent(str(tmp_path))
    assert raised.value.code == "file-unusable"


@pytest.mark.parametrize(("path", "asked"), [("", "/v1/traces"), ("/", "/v1/traces"), ("/otlp/x", "/otlp/x")])
def test_a_collector_gets_json_where_it_expects_it(path: str, asked: str) -> None:
    with Collector(200) as collector:
        assert sent(collector.url + path, {"OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b, y=2"}) is None
    ((where, headers, body),) = collector.got
    assert where == asked
    assert (headers["Content-Type"], headers["x-key"], headers["y"]) == ("application/json", "a b", "2")
    assert json.loads(body)["resourceSpans"]


def test_user_and_password_of_the_collectors_url_are_sent_as_a_header() -> None:
    with Collector(200) as collector:
        assert sent(collector.url.replace("//", "//me:hunter2@")) is None
    assert collector.got[0][1]["Authorization"] == "Basic bWU6aHVudGVyMg=="


def test_a_collector_that_stays_silent_is_a_warning(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    monkeypatch.setattr("holdfast.runner.export.POST_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        said = sent(f"http://127.0.0.1:{silent.getsockname()[1]}/")
    assert said is not None
    golden(said)


@pytest.mark.parametrize("status", [307, 400, 503])
def test_a_collector_that_refuses_is_a_warning(status: int) -> None:
    with Collector(status) as collector:
        said = sent(collector.url)
    assert said is not None
    assert f"answered {status} busy" in said


def test_a_collector_that_is_not_there_is_a_warning_that_shows_no_secret(golden: Golden) -> None:
    for url in ("http://me:hunter2@127.0.0.1:1/x?key=hunter2", "http://me:hunter2@a b/x?key=hunter2"):
        said = sent(url)
        assert said is not None
        golden(said)
        assert "hunter2" not in said


@pytest.mark.parametrize("target", ["grpc://x", "http://", "ftp://x/y"])
def test_what_is_neither_a_file_nor_a_url_is_refused_before_the_run(target: str) -> None:
    with pytest.raises(UsageError):
        check_target(target)
    check_target("traces.jsonl")
    check_target("https://x.example")
