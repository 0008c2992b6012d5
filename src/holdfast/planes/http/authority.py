"""The certificate authority of one run, which lets the proxy intercept TLS. Its key never leaves memory.

Host certificates are created on first use.
"""

from __future__ import annotations

import os
import ssl
from collections import OrderedDict
from collections.abc import Mapping
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from holdfast.planes.http.trust import ADDED, read_all_roots, read_user_roots

LEAVES_LIMIT = 1_000
"""Maximum number of cached host certificates: it bounds memory if an agent invents names."""
_FROM, _UNTIL = datetime(2000, 1, 1, tzinfo=UTC), datetime(2049, 12, 31, tzinfo=UTC)
"""Validity for any time that an agent's clock may show: it may be set, or jump. The key exists only during the run."""
_CA_USAGE = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
"""Signs certificates and revocation lists."""
_HOST_USAGE = x509.KeyUsage(True, False, False, False, False, False, False, False, False)
"""Signs handshakes."""


class Authority:
    """Issues certificates that are valid for this run only.

    `ca_file` is for clients that trust one bundle: the roots of the system, the user and Holdfast. `own_file` is for
    clients that add to their own roots: the additions of the user and Holdfast. Only their owner can read both.
    """

    def __init__(self, folder: Path, existing: bytes | None = None, environ: Mapping[str, str] = os.environ) -> None:
        self._folder = folder
        self._leaf_key = generate_private_key(SECP256R1())
        self._leaves: OrderedDict[str, ssl.SSLContext] = OrderedDict()
        if existing is None:
            self._key = generate_private_key(SECP256R1())
            self._certificate = self._sign_authority()
        else:
            key = load_pem_private_key(existing[existing.index(b"-----BEGIN PRIVATE KEY") :], None)
            assert isinstance(key, EllipticCurvePrivateKey)
            self._key, self._certificate = key, x509.load_pem_x509_certificate(existing)
        own = self._certificate.public_bytes(Encoding.PEM)
        self.own_file = _write_private(folder / "holdfast-ca.pem", b"".join((*read_user_roots(environ, (ADDED,)), own)))
        self.ca_file = _write_private(folder / "ca-bundle.pem", read_all_roots(environ) + own)

    def export_pem(self) -> bytes:
        """Return certificate and key for another Holdfast process: `Authority(folder, pem)` is the same authority."""
        return self._certificate.public_bytes(Encoding.PEM) + _key_to_pem(self._key)

    def get_leaf_context(self, host: str) -> ssl.SSLContext:
        """Return the TLS context for a server of that name; a client that requests another name by SNI gets that
        certificate."""
        context = self._leaves.get(host)
        if context is None:
            context = self._leaves[host] = self._create_context(host)
            if len(self._leaves) > LEAVES_LIMIT:
                self._leaves.popitem(last=False)
        self._leaves.move_to_end(host)
        return context

    def _create_context(self, host: str) -> ssl.SSLContext:
        def choose_leaf(connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
            if name and name.lower() != host:
                connection.context = self.get_leaf_context(name.lower())

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        # A client may connect to an address and name the host only inside TLS. The certificate must be for the name
        # that it expects.
        context.sni_callback = choose_leaf
        # The ssl library reads certificates only from files.
        certificate = self._sign_host(host)
        data = _key_to_pem(self._leaf_key) + certificate.public_bytes(Encoding.PEM)
        path = Path(_write_private(self._folder / f".leaf-{certificate.serial_number:x}.pem", data))
        try:
            context.load_cert_chain(path)
        finally:
            path.unlink()
        return context

    def _sign_authority(self) -> x509.Certificate:
        key, name = self._key.public_key(), _build_name("Holdfast (this run only)")
        builder = (
            _start_certificate()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_CA_USAGE, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        )
        return builder.sign(self._key, SHA256())

    def _sign_host(self, host: str) -> x509.Certificate:
        key, issuer = self._leaf_key.public_key(), self._certificate
        identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        try:
            name: x509.GeneralName = x509.IPAddress(ip_address(host))
        except ValueError:
            name = x509.DNSName(host)
        builder = (
            _start_certificate()
            .subject_name(_build_name("Holdfast"))
            .issuer_name(issuer.subject)
            .public_key(key)
            .add_extension(x509.SubjectAlternativeName([name]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_HOST_USAGE, critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
        )
        return builder.sign(self._key, SHA256())


def _start_certificate() -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder(serial_number=x509.random_serial_number())
    return builder.not_valid_before(_FROM).not_valid_after(_UNTIL)


def _build_name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _key_to_pem(key: EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write_private(path: Path, data: bytes) -> str:
    """Write a file for its owner only, never through a symbolic link."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    return str(path)
