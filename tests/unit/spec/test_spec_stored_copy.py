"""The copy of a file without its literal secrets."""

from __future__ import annotations

import pytest
import yaml

from holdfast.spec.stored_copy import masked_copy

KEY = "sk-abcdefghij0123456789"
PEM = "-----BEGIN PRIVATE KEY-----\\nMIIabc123\\n-----END PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ('secrets: [{name: A, from: "static://hunter2-long"}]', "hunter2-long"),
        ("secrets:\n  - name: A\n    from: 'static://it''s-long'\n", "it's-long"),
        ('secrets: [{name: A, from: "static://\\x61bcdefgh"}]', "abcdefgh"),
        ("secrets:\n  - name: A\n    from: >-\n      static://two\n      words\n", "two words"),
        (f"agent: {{env: {{T: {KEY}}}}}", KEY),
        (f"agent: {{headers: {{X: 'a {KEY} b'}}}}", KEY),
        ("agent: {headers: {Authorization: Basic dXNlcjpwYXNz}}", "dXNlcjpwYXNz"),
        ('agent: {headers: {x-api-key: "plainword"}}', "plainword"),
        (f'setup: {{env: {{P: "{PEM}"}}}}', "MIIabc123"),
        (f"services: [{{name: a, env: {{K: {KEY}}}}}]", KEY),
    ],
)
def test_no_value_of_it_can_be_read(text: str, secret: str) -> None:
    kept = masked_copy(text)
    assert secret not in kept
    assert secret not in str(yaml.safe_load(kept))
    assert "masked-" in kept
    assert masked_copy(kept) == kept
    shape = yaml.safe_load(text).keys()
    assert yaml.safe_load(kept).keys() == shape


@pytest.mark.parametrize(
    "text",
    [
        "agent: {headers: {Authorization: '${TOKEN}'}}",
        "agent: {headers: {Authorization: 'Bearer ${TOKEN}'}}",
        f"golden_prompts: ['my key is {KEY}']",
        "secrets: [{name: A, from: generated}, B]",
        "# a comment\nversion: 1\n",
    ],
)
def test_what_holds_no_secret_is_kept_as_it_is(text: str) -> None:
    assert masked_copy(text) == text
