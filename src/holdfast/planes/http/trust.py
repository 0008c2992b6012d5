"""Certificates: those that this machine trusts, the authority of one run, which lets the proxy intercept TLS, and the
variables that make clients use both.

The authority's key never leaves memory. Host certificates are created on first use.
"""

from __future__ import annotations

import os
import ssl
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey


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
    ours = f'--require "{quoted}"'
    return own if ours in own else f"{own} {ours}".strip()


KEPT = 1_000
"""Maximum number of cached host certificates: it bounds memory if an agent invents names."""
_FROM, _UNTIL = datetime(2000, 1, 1, tzinfo=UTC), datetime(2049, 12, 31, tzinfo=UTC)
"""Validity for any time that an agent's clock may show: it may be set, or jump. The key exists only during the run."""


class Authority:
    """Issues certificates that are valid for this run only.

    `ca_file` is for clients that trust one bundle: the roots of the system, the user and Holdfast. `own_file` is for
    clients that add to their own roots: the additions of the user and Holdfast. Only their owner can read both.
    """

    def __init__(self, folder: Path, existing: bytes | None = None, environ: Mapping[str, str] = os.environ) -> None:
        from cryptography.hazmat.primitives.asymmetric import ec

        self._folder = folder
        self._key = _read_key(existing) if existing else ec.generate_private_key(ec.SECP256R1())
        self._leaf_key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = (
            _read_certificate(existing) if existing else _sign(_build_ca(self._key.public_key()), self._key)
        )
        self._leaves: OrderedDict[str, ssl.SSLContext] = OrderedDict()
        own = _to_pem(self._certificate)
        self.own_file = _write_private(folder / "holdfast-ca.pem", b"".join((*read_user_roots(environ, (ADDED,)), own)))
        self.ca_file = _write_private(folder / "ca-bundle.pem", read_all_roots(environ) + own)

    def export_pem(self) -> bytes:
        """Return certificate and key for another Holdfast process: `Authority(folder, pem)` is the same authority."""
        return _to_pem(self._certificate) + _key_to_pem(self._key)

    def get_leaf_context(self, host: str) -> ssl.SSLContext:
        """Return the TLS context for a server of that name; a client that requests another name by SNI gets that
        certificate."""
        known = self._leaves.get(host)
        if known is None:
            known = self._leaves[host] = self._create_context(host)
            if len(self._leaves) > KEPT:
                self._leaves.popitem(last=False)
        self._leaves.move_to_end(host)
        return known

    def _create_context(self, host: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        # A client may connect to an address and name the host only inside TLS. The certificate must be for the name
        # that it expects.
        context.sni_callback = self._build_sni_callback(host)
        self._load_chain(
            context, _sign(_build_host_certificate(host, self._leaf_key.public_key(), self._certificate), self._key)
        )
        return context

    def _build_sni_callback(self, host: str) -> Any:
        def choose_leaf(connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
            if name and name.lower() != host:
                connection.context = self.get_leaf_context(name.lower())

        return choose_leaf

    def _load_chain(self, context: ssl.SSLContext, certificate: x509.Certificate) -> None:
        """Load the chain from a temporary file, because the ssl library reads only files."""
        data = _key_to_pem(self._leaf_key) + _to_pem(certificate)
        path = Path(_write_private(self._folder / f".leaf-{certificate.serial_number:x}.pem", data))
        try:
            context.load_cert_chain(path)
        finally:
            path.unlink()


def _build_ca(key: Any) -> x509.CertificateBuilder:
    from cryptography import x509

    name = _build_name("Holdfast (this run only)")
    usage = _build_usage(key_cert_sign=True, crl_sign=True, digital_signature=False)
    return (
        _set_validity(x509.CertificateBuilder())
        .subject_name(name)
        .issuer_name(name)
        .public_key(key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _build_host_certificate(host: str, key: Any, ca: x509.Certificate) -> x509.CertificateBuilder:
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    issuer = ca.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return (
        _set_validity(x509.CertificateBuilder())
        .subject_name(_build_name("Holdfast"))
        .issuer_name(ca.subject)
        .public_key(key)
        .add_extension(x509.SubjectAlternativeName([_build_general_name(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_build_usage(digital_signature=True, key_cert_sign=False, crl_sign=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer), critical=False)
    )


def _set_validity(builder: x509.CertificateBuilder) -> x509.CertificateBuilder:
    from cryptography import x509

    serial = x509.random_serial_number()
    return builder.serial_number(serial).not_valid_before(_FROM).not_valid_after(_UNTIL)


def _build_usage(*, digital_signature: bool, key_cert_sign: bool, crl_sign: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(digital_signature, False, False, False, False, key_cert_sign, crl_sign, False, False)


def _build_name(text: str) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _build_general_name(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _sign(builder: x509.CertificateBuilder, key: EllipticCurvePrivateKey) -> x509.Certificate:
    from cryptography.hazmat.primitives import hashes

    return builder.sign(key, hashes.SHA256())


def _to_pem(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def _key_to_pem(key: EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives import serialization as form

    return key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())


def _read_key(data: bytes) -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key = load_pem_private_key(data[data.index(b"-----BEGIN PRIVATE KEY") :], None)
    assert isinstance(key, EllipticCurvePrivateKey)
    return key


def _read_certificate(data: bytes) -> x509.Certificate:
    from cryptography import x509

    return x509.load_pem_x509_certificate(data)


def _write_private(path: Path, data: bytes) -> str:
    """Write a file for its owner only, never through a symbolic link."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    return str(path)
