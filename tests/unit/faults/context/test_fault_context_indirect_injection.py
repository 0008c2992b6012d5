from dataclasses import dataclass

import pytest

from holdfast.faults.context.indirect_injection import IndirectInjection
from holdfast.model.canary import find_canaries

EVIL = IndirectInjection(payload="EVIL")


@dataclass(frozen=True)
class Page:
    id: int
    body: str


@pytest.mark.parametrize(
    ("value", "poisoned"),
    [
        ("Some text.", "Some text.\n\nEVIL"),
        ("", "EVIL"),
        (b"Some text.", b"Some text.\n\nEVIL"),
        ({"id": "x", "body": "long text", "t": "a b"}, {"id": "x", "body": "long text\n\nEVIL", "t": "a b"}),
        ('{"body": "a b"}', '{"body": "a b\\n\\nEVIL"}'),
        ([{"id": "x"}, {"id": "y z"}], [{"id": "x"}, {"id": "y z\n\nEVIL"}]),
        ({"id": "x", "n": 1}, {"id": "x", "n": 1, "note": "EVIL"}),
        ([{"n": 1}, {"n": 2}], [{"n": 1, "note": "EVIL"}, {"n": 2}]),
        (["one", "other"], ["one", "other\n\nEVIL"]),
        (Page(1, "word"), Page(1, "word\n\nEVIL")),
    ],
)
def test_indirect_injection_hides_in_the_text_of_a_result(meet, value, poisoned):
    assert meet(EVIL, value) == poisoned


@pytest.mark.parametrize("value", [5, None, [], [1, 2], b"\xff\x00", True])
def test_indirect_injection_without_text_to_hide_in_has_no_effect(meet, value):
    assert meet(EVIL, value) is value


def test_indirect_injection_chooses_among_its_payloads(meet):
    attack = IndirectInjection(payloads=("one", "two"))
    assert {meet(attack, "", seed=seed) for seed in range(20)} == {"one", "two"}


def test_indirect_injection_ships_texts_with_canaries(meet):
    assert len(find_canaries(meet(IndirectInjection(), {"body": "some text"})["body"])) == 1


def test_the_action_of_an_injection_changes_nothing_about_it(meet):
    assert meet(IndirectInjection(payload="EVIL", action="send_*"), "Some text.") == "Some text.\n\nEVIL"
