"""Addresses that a spec names: whether anything could ever answer there."""

from __future__ import annotations

import re

from holdfast.spec.references import REFERENCE

_PLACE = r"\{[A-Za-z_][\w-]*\}"


def url_fault(text: str) -> str:
    """What was expected instead; empty for an http or https URL, and where only a run can tell."""
    from urllib.parse import urlsplit

    if re.match(REFERENCE, text):
        return ""
    filled = re.sub(_PLACE, "1", re.sub(REFERENCE, "1", text))
    if not filled.startswith(("http://", "https://")):
        return "expected an http:// or https:// URL"
    try:
        parts = urlsplit(filled)
        port = parts.port
    except ValueError:
        return "expected a port from 1 to 65535 in the URL"
    if not parts.hostname:
        return "expected a host in the URL"
    return "expected a port from 1 to 65535 in the URL" if port == 0 else ""
