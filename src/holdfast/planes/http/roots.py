"""The certificates that this machine and its user trust, as one text."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

_PLACES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
ADDED = "NODE_EXTRA_CA_CERTS"
_OWN = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE", "GIT_SSL_CAINFO", ADDED)
"""Variables with which a user adds or replaces trusted certificates."""


def read_all_roots(environ: Mapping[str, str] = os.environ) -> bytes:
    """Return the system's certificates and those in the user's variables, because Holdfast overrides them."""
    return b"".join(dict.fromkeys((read_system_roots(), *read_user_roots(environ))))


def read_user_roots(environ: Mapping[str, str], variables: Iterable[str] = _OWN) -> list[bytes]:
    """Return the certificates in the files that a user's variables name."""
    known = (_read_certificates(Path(environ[name])) for name in variables if environ.get(name))
    return [data for data in known if data]


def read_system_roots() -> bytes:
    """Return the system's certificates; if there are none, certifi's list; otherwise nothing."""
    return next((data for place in _list_places() if (data := _read_certificates(place))), b"")


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


def _list_places() -> Iterator[Path]:
    by_openssl = ssl.get_default_verify_paths().openssl_cafile
    yield from (Path(place) for place in (by_openssl, *_PLACES) if place)
    certifi = find_spec("certifi")
    if certifi is not None and certifi.origin:
        yield Path(certifi.origin).with_name("cacert.pem")
