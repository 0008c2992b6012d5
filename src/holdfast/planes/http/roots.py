"""The certificates that this machine trusts by itself, as one text."""

from __future__ import annotations

import os
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


_OWN = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS")
"""Variables by which a user adds to what is trusted, or replaces it."""


def all_roots() -> bytes:
    """What the system trusts, and what the user's variables name besides: we set those variables anew."""
    found = [system_roots()]
    for name in _OWN:
        place = os.environ.get(name)
        if place and Path(place).is_file():
            found.append(Path(place).read_bytes().rstrip(b"\n") + b"\n")
    return b"".join(dict.fromkeys(found))


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
