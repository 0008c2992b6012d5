"""What every check promises, tried on all of them."""

import dataclasses
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast import plugins
from holdfast.model import codec
from holdfast.model.observation import ENDINGS, Observation, Turn
from holdfast.model.verdict import Finding
from holdfast.protocols import Exhibit

SETTINGS = {
    "behavior_unchanged": [{}, {"baseline": "It is 4.", "method": "semantic"}],
    "completes": [{}],
    "contains": [{"value": "a"}],
    "contains_any": [{"values": ("a", "ß")}],
    "ending": [{"one_of": ("answered", "timeout")}],
    "excludes_pattern": [{"patterns": ("ab+", r"\d")}, {"patterns": ("a.b",), "literal": True}],
    "excludes_pii": [{}, {"entities": ("email",), "allow": ("*@example.com",)}],
    "latency": [{"max_ms": 10}],
    "output_not_empty": [{}],
    "refusal_check": [{}],
    "regex": [{"pattern": "a.b"}],
    "similarity": [{"expected": "It is 4."}, {"expected": "It is 4.", "method": "semantic"}],
    "system_prompt_leak_probe": [{"patterns": ("you are",)}],
    "valid_json": [{}, {"schema": {"type": "object"}, "path": "$..a"}],
}
CHECKS = [
    pytest.param(plugins.find("checks", n)(**s), id=f"{n}-{i}")
    for n, all in SETTINGS.items()
    for i, s in enumerate(all)
]
CLASSES = [pytest.param(plugins.find("checks", name), id=name) for name in plugins.BUILT_IN["checks"]]
ODD = [
    "",
    "\x00",
    "a" * 100_000,
    "1" * 100_000,
    "[" * 100_000,
    '{"a":' * 20_000,
    "é\u0301\u202e😀" * 20_000,
    " \n" * 50_000,
]
finding_of = codec.decoder(Finding)
slow_is_fine = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])


def exhibit(text: str, ending: str = "answered") -> Exhibit:
    turn = Turn(asked="?", text=text, latency_ms=5.0, ending=ending)
    calm = Observation(trial="c", turns=(Turn(asked="?", text="It is 4."),))
    return Exhibit(text=text, turn=turn, observation=Observation(trial="t", turns=(turn,)), control=calm)


def holds(check, shown: Exhibit) -> None:
    """Same exhibit, same finding; a finding a person can read, that can be stored and read back."""
    finding = check.decide(shown)
    assert isinstance(finding, Finding)
    assert check.decide(shown) == finding
    assert finding.reason
    assert len(finding.reason) <= 240
    assert "\n" not in finding.reason
    assert all(0 <= start <= end <= len(shown.text) for start, end in finding.marks)
    assert finding.score is None or 0 <= finding.score <= 1
    assert finding_of.decode(codec.encode(finding)) == finding


def test_every_built_in_check_is_tried():
    assert set(SETTINGS) == set(plugins.BUILT_IN["checks"])


@pytest.mark.parametrize("kind", CLASSES)
def test_check_is_a_frozen_dataclass_with_contract_polarity_and_reads(kind):
    assert dataclasses.is_dataclass(kind)
    assert kind.__dataclass_params__.frozen
    assert kind.__doc__
    assert not kind.__doc__.startswith(f"{kind.__name__}(")
    assert kind.polarity in ("positive", "negative")
    assert kind.reads in ("text", "ending", "latency")


@pytest.mark.parametrize("kind", CLASSES)
def test_settings_are_described_and_never_the_contract_of_the_rule_itself(kind):
    from typing import get_type_hints

    hints = get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        assert hints[field.name].__metadata__[0].description
    judged_elsewhere = {"id", "type", "severity", "when", "negate", "over", "probes", "weight", "gate", "description"}
    assert not judged_elsewhere & {field.name for field in dataclasses.fields(kind)}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_convert_from_plain_data(name):
    import msgspec

    for given_settings in SETTINGS[name]:
        plain = json.loads(json.dumps(given_settings))
        built = msgspec.convert(plain, plugins.find("checks", name))
        assert built == plugins.find("checks", name)(**given_settings)


@pytest.mark.parametrize("check", CHECKS)
def test_good_settings_have_no_problems(check):
    assert not list(check.problems() if hasattr(check, "problems") else ())
    assert not list(check.lint() if hasattr(check, "lint") else ())


@pytest.mark.parametrize("check", CHECKS)
@slow_is_fine
@given(text=st.text())
def test_check_is_pure_and_never_raises_on_any_text(check, text):
    holds(check, exhibit(text))


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("odd", range(len(ODD)))
def test_check_never_raises_on_odd_text(check, odd):
    holds(check, exhibit(ODD[odd]))


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("ending", ENDINGS)
def test_check_never_raises_on_any_ending(check, ending):
    holds(check, exhibit("partial", ending))
