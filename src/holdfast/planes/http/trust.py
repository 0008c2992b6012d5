"""The certificates that this machine trusts, and the variables that make clients use the proxy and trust Holdfast."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path

_PLACES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
ADDED = "NODE_EXTRA_CA_CERTS"
_USER_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE", "GIT_SSL_CAINFO", ADDED)
"""Variables with which a user adds or replaces trusted certificates."""


def read_all_roots(environ: Mapping[str, str] = os.environ) -> bytes:
    """Return the system's certificates and those in the user's variables, because Holdfast overrides them."""
    return b"".join(dict.fromkeys((read_system_roots(), *read_user_roots(environ))))


def read_user_roots(environ: Mapping[str, str], variables: Iterable[str] = _USER_VARIABLES) -> list[bytes]:
    """Return the certificates in the files that a user's variables name."""
    files = (_read_certificates(Path(environ[name])) for name in variables if environ.get(name))
    return [data for data in files if data]


def read_system_roots() -> bytes:
    """Return the system's certificates; if there are none, certifi's list; otherwise nothing."""
    certifi = find_spec("certifi")
    by_certifi = Path(certifi.origin).with_name("cacert.pem") if certifi is not None and certifi.origin else ""
    places = (ssl.get_default_verify_paths().openssl_cafile, *_PLACES, by_certifi)
    return next((data for place in places if place and (data := _read_certificates(Path(place)))), b"")


def create_trusted_context(environ: Mapping[str, str] = os.environ) -> ssl.SSLContext:
    """Return the TLS context for connections to servers: trusts the system's certificates and those in the user's
    variables."""
    context = ssl.create_default_context()
    for data in dict.fromkeys(read_user_roots(environ)):
        context.load_verify_locations(cadata=data.decode("ascii", "ignore"))
    return context


def _read_certificates(place: Path) -> bytes:
    try:
        data = place.read_bytes()
    except OSError:
        return b""
    if b"BEGIN CERTIFICATE" not in data:
        return b""
    return data if data.endswith(b"\n") else data + b"\n"


LOOPBACK = "localhost,127.0.0.1,::1"

_ONE_BUNDLE = (
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "AWS_CA_BUNDLE",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "GIT_SSL_CAINFO",
)
TRUST_VARIABLES = (*_ONE_BUNDLE, "NODE_EXTRA_CA_CERTS")


def build_trust_variables(ca_file: str, own_file: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that make clients trust Holdfast, in addition to those of the user's `environ`.

    Most read one bundle. Node adds a file to its own roots, and loads a file that makes it use the proxy.
    """
    options = add_node_preload(environ.get("NODE_OPTIONS", ""), str(NODE_PRELOAD))
    return {**dict.fromkeys(_ONE_BUNDLE, ca_file), "NODE_EXTRA_CA_CERTS": own_file, "NODE_OPTIONS": options}


def build_proxy_variables(url: str, loopback_declared: bool) -> dict[str, str]:
    """Return the variables that route clients to the proxy.

    Loopback bypasses it unless the spec names a target there.
    """
    past = "" if loopback_declared else LOOPBACK
    values = {"HTTP_PROXY": url, "HTTPS_PROXY": url, "ALL_PROXY": url, "NO_PROXY": past}
    lower = {name.lower(): value for name, value in values.items()}
    return {**values, **lower, "NODE_USE_ENV_PROXY": "1"}


NODE_PRELOAD = Path(__file__).with_name("node_proxy.cjs")
"""Routes http, https and fetch through the proxy in a Node that ignores the proxy variables."""


def add_node_preload(own: str, preload: str) -> str:
    """Add Holdfast's file to NODE_OPTIONS, after the user's own options; only once."""
    quoted = preload.replace("\\", "\\\\").replace('"', '\\"')
    option = f'--require "{quoted}"'
    return own if option in own else f"{own} {option}".strip()
