"""A host that the spec names and that does not answer, no fault being why: however the spec names it."""

from __future__ import annotations

import contextlib
import socket
import threading

import pytest
import requests

from golden_words import Golden
from holdfast.model.scenario import Injection, Schedule
from holdfast.planes.egress_policy import Policy
from holdfast.planes.urls import is_declared
from http_proxy_kit import wait_for

NEVER = Schedule(on_call=10_000)


def watched(glob):
    """A fault that waits at these URLs, and is never due."""
    return Injection("tool", "shop", "error", {}, NEVER, match_url=glob)


@contextlib.contextmanager
def deaf():
    """A server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        held = []

        def take():
            with contextlib.suppress(OSError):
                while True:
                    held.append(listening.accept()[0])

        thread = threading.Thread(target=take)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()
        for one in held:
            one.close()


def dead_port():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


@pytest.mark.parametrize(
    "glob",
    ["http://localhost:{port}/*", "localhost:{port}", "localhost:{port}/rows", "local*:{port}/*", "*host:{port}"],
)
def test_a_dead_host_of_the_spec_is_an_error_however_it_is_named(bench, glob, golden: Golden):
    port = dead_port()
    policy = Policy([f"localhost:{port}"])  # a glob alone does not open loopback
    with bench.trial([watched(glob.format(port=port))], policy=policy) as trial:
        assert trial.get(f"http://localhost:{port}/rows").status_code == 502
    golden(trial.context.troubles[0])
    assert len(trial.context.troubles) == 1


@pytest.mark.parametrize(
    "glob", ["*", "*/rows", "https://localhost:{port}/*", "localhost:{port}/other", "example.com/*"]
)
def test_a_dead_host_that_the_spec_does_not_name_is_a_note(bench, glob):
    port = dead_port()
    policy = Policy([f"localhost:{port}"])
    with bench.trial([watched(glob.format(port=port))], policy=policy) as trial:
        assert trial.get(f"http://localhost:{port}/rows").status_code == 502
    assert trial.context.troubles == []
    assert len(trial.context.notes) == 1


def test_a_dead_host_behind_tls_is_an_error_too(bench):
    port = dead_port()
    policy = Policy([f"localhost:{port}"])
    told = contextlib.suppress(requests.RequestException)
    with bench.trial([watched(f"localhost:{port}/*")], policy=policy) as trial, told:
        trial.get(f"https://localhost:{port}/rows")
    assert len(trial.context.troubles) == 1


def test_a_silence_of_a_host_of_the_spec_is_measured_and_of_others_not(bench):
    with deaf() as port:
        for glob, measured in ((f"localhost:{port}", True), ("example.com", False)):
            with bench.trial([watched(glob)], policy=Policy([f"localhost:{port}"])) as trial:
                with pytest.raises(requests.Timeout):
                    trial.get(f"http://localhost:{port}/rows", timeout=0.2)
                trial.run(_leave(trial))
                wait_for(lambda trial=trial: bool(trial.context.trace))
            (event,) = trial.context.trace
            assert event.error_type == "client_gone"
            assert (event.waited_ms >= 150) is measured


async def _leave(trial):
    trial.plane.end_trial(trial.context)


@pytest.mark.parametrize(
    ("glob", "url", "named"),
    [
        ("example.com", "https://example.com/x", True),
        ("*.example.com", "http://api.example.com/x", True),
        ("https://example.com/v1/*", "https://example.com", True),  # where a connection goes
        ("https://example.com/v1/*", "http://example.com", False),
        ("https://example.com/v1/*", "https://example.com/v2/x", False),
        ("*", "https://example.com/x", False),
        ("https://*/v1/*", "https://example.com/v1/x", False),
    ],
)
def test_what_a_glob_names(glob, url, named):
    assert is_declared((glob,), url) is named


def test_a_host_on_this_machine_named_without_scheme_and_port_is_at_both_usual_ports():
    policy = Policy(["localhost/api/*"])
    assert policy.has_loopback_target
    assert [policy.is_declared("localhost", port) for port in (80, 443, 8080)] == [True, True, False]
