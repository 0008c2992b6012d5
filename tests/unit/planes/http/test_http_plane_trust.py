import socket
import ssl
import stat
import threading
from pathlib import Path

import pytest

from holdfast.planes.http import trust
from holdfast.planes.http.authority import LEAVES_LIMIT, Authority
from holdfast.planes.http.trust import create_trusted_context, read_system_roots


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"), environ={})


def shaken(context: ssl.SSLContext, ca_file: str, name: str) -> ssl.SSLSocket:
    """A client's end after the handshake, which checks name and chain."""
    ours, theirs = socket.socketpair()

    def accept() -> None:
        try:
            context.wrap_socket(ours, server_side=True).close()
        except OSError:
            ours.close()

    thread = threading.Thread(target=accept)
    thread.start()
    client = ssl.create_default_context(cafile=ca_file)
    client.verify_flags |= ssl.VerifyFlags.VERIFY_X509_STRICT
    client.set_alpn_protocols(["h2", "http/1.1"])
    try:
        return client.wrap_socket(theirs, server_hostname=name)
    finally:
        thread.join()
        theirs.close()


@pytest.mark.parametrize("host", ["api.example.com", "127.0.0.1", "::1", "x" * 63 + "." + "y" * 60 + ".example"])
def test_a_client_that_trusts_the_run_accepts_the_leaf(authority, host):
    with shaken(authority.get_leaf_context(host), authority.own_file, host) as client:
        assert client.selected_alpn_protocol() == "http/1.1"


def test_the_certificate_is_for_the_sni_name(authority):
    with shaken(authority.get_leaf_context("10.0.0.1"), authority.own_file, "behind.example.com"):
        pass


def test_a_certificate_is_valid_only_for_its_host(authority):
    context = authority.get_leaf_context("one.example.com")
    context.sni_callback = None
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shaken(context, authority.own_file, "two.example.com")


def test_another_runs_authority_is_not_trusted(authority, tmp_path):
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken(Authority(tmp_path).get_leaf_context("a.example"), authority.own_file, "a.example")


def test_only_the_owner_can_read_the_files_and_they_contain_no_key(authority):
    folder = Path(authority.ca_file).parent
    authority.get_leaf_context("c.example")
    assert sorted(path.name for path in folder.iterdir()) == ["ca-bundle.pem", "holdfast-ca.pem"]
    for path in folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert b"PRIVATE" not in path.read_bytes()


def test_the_bundle_contains_the_systems_roots_and_holdfasts(authority):
    bundle = Path(authority.ca_file).read_bytes()
    own = Path(authority.own_file).read_bytes()
    assert bundle == read_system_roots() + own
    assert own.count(b"BEGIN CERTIFICATE") == 1


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "AWS_CA_BUNDLE"])
def test_certificates_that_the_user_added_stay_trusted(authority, tmp_path, name):
    theirs = Path(authority.own_file)  # any certificate
    made = Authority(tmp_path, environ={name: str(theirs)})
    own = made.export_pem().partition(b"-----BEGIN PRIVATE")[0]
    assert Path(made.ca_file).read_bytes() == read_system_roots() + theirs.read_bytes() + own
    for_node = theirs.read_bytes() + own if name == "NODE_EXTRA_CA_CERTS" else own
    assert Path(made.own_file).read_bytes() == for_node
    shaken(authority.get_leaf_context("a.example"), made.ca_file, "a.example").close()
    shaken(made.get_leaf_context("a.example"), made.ca_file, "a.example").close()


@pytest.mark.parametrize("place", ["missing.pem", "."])
def test_a_file_of_the_users_that_holds_no_certificate_is_left_out(tmp_path, place):
    (tmp_path / "ca").mkdir()
    made = Authority(tmp_path / "ca", environ={"SSL_CERT_FILE": str(tmp_path / place)})
    assert Path(made.ca_file).read_bytes().startswith(read_system_roots())


@pytest.mark.parametrize("name", ["REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"])
def test_servers_that_a_user_trusts_besides_are_trusted_upstream_too(authority, name):
    context = create_trusted_context({name: authority.own_file})
    assert context.verify_mode == ssl.CERT_REQUIRED
    subjects = [dict(pair for part in one["subject"] for pair in part) for one in context.get_ca_certs()]
    assert any("Holdfast" in subject.get("commonName", "") for subject in subjects)


def test_leaves_are_made_once_and_not_without_end(authority, monkeypatch):
    assert authority.get_leaf_context("d.example") is authority.get_leaf_context("d.example")
    made = []
    monkeypatch.setattr(Authority, "_create_context", lambda self, host: made.append(host) or object())
    for n in range(LEAVES_LIMIT + 10):
        authority.get_leaf_context(f"{n}.example")
    assert len(authority._leaves) == LEAVES_LIMIT
    authority._leaves.clear()


def test_variables_of_trust():
    found = trust.build_trust_variables("/bundle.pem", "/own.pem", {"NODE_OPTIONS": "--own"})
    assert found.pop("NODE_OPTIONS") == f'--own --require "{trust.NODE_PRELOAD}"'
    assert set(found) == set(trust.TRUST_VARIABLES)
    assert found.pop("NODE_EXTRA_CA_CERTS") == "/own.pem"
    assert set(found.values()) == {"/bundle.pem"}
    assert {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"} < set(found)


def test_variables_of_the_proxy_in_both_cases():
    found = trust.build_proxy_variables("http://holdfast:t@127.0.0.1:1", False)
    for name in ("HTTP_PROXY", "https_proxy", "ALL_PROXY", "http_proxy"):
        assert found[name] == "http://holdfast:t@127.0.0.1:1"
    assert found["no_proxy"] == found["NO_PROXY"] == "localhost,127.0.0.1,::1"
    assert found["NODE_USE_ENV_PROXY"] == "1"


def test_loopback_uses_the_proxy_if_a_target_is_on_it():
    assert trust.build_proxy_variables("http://p", True)["NO_PROXY"] == ""
