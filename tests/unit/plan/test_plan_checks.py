"""Rules to checks: settings as they come back from storage."""

from __future__ import annotations

import json

import pytest

from holdfast.errors import PluginError
from holdfast.model.spec import Invariant
from holdfast.plan.checks import get_traits, make_check

ASSERTIONS = [{"field": "request_count", "filters": {"method": "POST"}, "equals": 1}]


def test_lists_become_tuples_and_maps_what_the_check_declares() -> None:
    settings = json.loads(json.dumps({"service": "smtp", "assertions": ASSERTIONS}))
    made = make_check(Invariant("r", "http_mock_assertions", settings))
    assert isinstance(made.assertions, tuple)  # type: ignore[attr-defined]
    assert made.assertions[0].filters == {"method": "POST"}  # type: ignore[attr-defined]
    assert make_check(Invariant("r", "contains_any", {"values": ["a"]})).values == ("a",)  # type: ignore[attr-defined]


def test_a_setting_of_the_wrong_kind_names_the_rule() -> None:
    with pytest.raises(PluginError) as raised:
        make_check(Invariant("r", "http_mock_assertions", {"service": "smtp", "assertions": [{"equals": 1}]}))
    assert raised.value.code == "plugin-broken"


@pytest.mark.parametrize(
    ("check", "settings", "inside"),
    [
        ("command_exit", {"command": "x"}, True),
        ("custom", {"script": "a.py", "runs_in": "sandbox"}, True),
        ("custom", {"script": "a.py"}, False),
        ("file_exists", {"path": "a"}, False),
        ("completes", {}, False),
    ],
)
def test_which_checks_run_a_program_inside(check: str, settings: dict[str, str], inside: bool) -> None:
    assert get_traits(Invariant("r", check, settings)).runs_inside is inside
