"""Where an agent in a real world can connect to, and whom it meets there."""

import http.server
import threading

import pytest
from world_runs import ran, spec_of

STRIPE = {
    "services": [
        {
            "name": "stripe-mock",
            "type": "http_mock",
            "record": True,
            "routes": [{"method": "POST", "path": "/v1/charges", "status": 201, "response": '{"id": "ch_1"}'}],
        }
    ],
    "network": {"dns_overrides": {"api.stripe.com": "stripe-mock"}},
    "invariants": {
        "charged": {
            "description": "one charge",
            "check": {
                "type": "http_mock_assertions",
                "service": "stripe-mock",
                "assertions": [{"field": "request_count", "filters": {"path": "/v1/charges"}, "equals": 1}],
            },
        }
    },
}
URLLIB = "import urllib.request as u; print(u.urlopen('https://api.stripe.com/v1/charges', b'x').read().decode())"
REQUESTS = "import requests; print(requests.post('https://api.stripe.com/v1/charges', data='x').text)"


@pytest.mark.parametrize(
    "command",
    ["curl -sS -d x https://api.stripe.com/v1/charges", f'python3 -c "{URLLIB}"', f'python3 -c "{REQUESTS}"'],
    ids=["curl", "urllib", "requests"],
)
def test_a_name_that_stands_for_a_mock_is_trusted_over_tls(tmp_path, command):
    if "requests" in command:
        pytest.importorskip("requests")
    found = ran(tmp_path, spec_of(command, **STRIPE))
    assert (found.case.status, found.text.strip()) == ("pass", '{"id": "ch_1"}'), found.only.output
    (call,) = found.audit("http_call")
    assert (call["method"], call["host"], call["status"]) == ("POST", "api.stripe.com", 201)
    assert call["response_body"] == '{"id": "ch_1"}'


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"page")

    def log_message(self, *words):
        pass


@pytest.fixture
def outside():
    """A server of this machine: outside of every sandbox."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


def test_nothing_of_this_machine_is_in_reach(tmp_path, outside):
    command = f"""
        curl -sS --noproxy '*' -m 3 http://127.0.0.1:{outside}/ 2>&1 | grep -o "Couldn't connect\\|page"
        curl -s -m 3 -o /dev/null -w '%{{http_code}}\\n' http://127.0.0.1:{outside}/ --noproxy ''
        curl -s -m 3 -o /dev/null -w '%{{http_code}}\\n' http://example.com/
        tail -n +3 /proc/net/dev | cut -d: -f1
    """
    spec = spec_of(command, network={"egress": {"default": "allow"}})
    lines = ran(tmp_path, spec).lines
    assert lines[0] == "Couldn't connect"
    assert lines[1] in ("403", "502")
    assert lines[-1].strip() == "lo"


@pytest.mark.parametrize(
    ("egress", "wanted"),
    [({}, "403"), ({"default": "deny", "allow": ["*.allowed.test"]}, "403 502"), ({"default": "allow"}, "502 502")],
    ids=["denied", "listed", "open"],
)
def test_egress_is_what_the_spec_allows(tmp_path, egress, wanted):
    """Allowed names do not resolve here: that the proxy tried to reach them is what tells them apart."""
    ask = "curl -s -m 20 -o /dev/null -w '%{http_code} '"
    command = f"{ask} http://other.test/; {ask} http://api.allowed.test/"
    found = ran(tmp_path, spec_of(command, network={"egress": egress} if egress else {"egress": {"default": "deny"}}))
    codes = found.text.split()
    refused = {"403": ["403", "403"], "403 502": ["403", "other"], "502 502": ["other", "other"]}[wanted]
    assert ["403" if code == "403" else "other" for code in codes] == refused, codes


def test_telemetry_is_denied_and_told_apart(tmp_path):
    command = """
        for n in 1 2 3; do curl -s -m 5 https://o1.ingest.sentry.io/api; curl -s -m 5 https://evil.example/; done
        echo done
    """
    audit = {"http_calls": True}
    rules = {"http_except": ["evil.example"]}
    found = ran(tmp_path, spec_of(command, audit=audit, forbidden=rules))
    assert found.case.status == "pass"
    (call,) = found.audit("http_call")
    assert (call["url"], call["times"]) == ("https://evil.example", 3)
    assert [event.times for event in found.only.trace] == [3]
    said = "also tried, and denied: 3 calls to o1.ingest.sentry.io (telemetry)"
    assert said in found.only.notes
    assert found.forbidden() == {"http_except": (False, (f"{said}: not counted",))}


def test_a_refused_call_that_is_work_violates_what_is_forbidden(tmp_path):
    found = ran(
        tmp_path,
        spec_of("curl -s https://evil.example/; curl -s https://evil.example/; echo", forbidden={"http_except": []}),
    )
    assert found.forbidden() == {"http_except": (True, ("CONNECT https://evil.example (2 times)",))}


def test_a_rule_that_names_a_host_of_telemetry_is_violated_by_the_attempt(tmp_path):
    check = {"type": "tool_not_called", "tool": "CONNECT https://*.sentry.io"}
    quiet = {"quiet": {"description": "nothing is told to others", "check": check}}
    found = ran(tmp_path, spec_of("curl -s https://o1.ingest.sentry.io/api; echo", invariants=quiet))
    assert found.case.status == "fail"
