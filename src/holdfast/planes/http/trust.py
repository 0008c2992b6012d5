"""The variables that route a program's HTTP through the proxy and make it trust the run's certificates."""

from __future__ import annotations

from pathlib import Path

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


def build_trust_variables(ca_file: str, own_file: str) -> dict[str, str]:
    """Return the variables that make clients trust Holdfast: most read one bundle; Node adds it to its own roots."""
    return {**dict.fromkeys(_ONE_BUNDLE, ca_file), "NODE_EXTRA_CA_CERTS": own_file}


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
