"""The certificates that this machine trusts by itself, as one text."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

_PLACES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


def system_roots() -> bytes:
    """What the user's own `SSL_CERT_FILE` or the system trusts; else certifi's list; else nothing."""
    for place in _places():
        try:
            found = place.read_bytes()
        except OSError:
            continue
        if b"BEGIN CERTIFICATE" in found:
            return found if found.endswith(b"\n") else found + b"\n"
    return b""


def _places() -> Iterator[Path]:
    by_openssl = ssl.get_default_verify_paths().cafile
    yield from (Path(place) for place in (by_openssl, *_PLACES) if place)
    certifi = find_spec("certifi")
    if certifi is not None and certifi.origin:
        yield Path(certifi.origin).with_name("cacert.pem")
