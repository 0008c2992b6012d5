"""Who judges: a server is trusted as the user's environment says."""

from __future__ import annotations

import ssl
from pathlib import Path

from holdfast.judge.judges import Judges
from holdfast.planes.http.authority import Authority


def test_a_judge_behind_a_certificate_that_the_user_trusts_is_reached(tmp_path: Path) -> None:
    own = Authority(tmp_path, environ={})
    context = Judges({}, {"SSL_CERT_FILE": own.own_file}, tmp_path)._load_trusted_roots()
    assert context.verify_mode == ssl.CERT_REQUIRED
    names = [dict(pair for part in one["subject"] for pair in part) for one in context.get_ca_certs()]
    assert any("Holdfast" in name.get("commonName", "") for name in names)
