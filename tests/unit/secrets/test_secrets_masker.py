import pytest

from holdfast.errors import AgentUnavailable
from holdfast.model.observation import FaultMet, Observation, Turn
from holdfast.model.verdict import Verdict
from holdfast.secrets.masker import Masker


def test_with_no_secret_nothing_is_copied() -> None:
    seen = Observation("a", turns=(Turn("q", "text"),))
    assert Masker(()).mask_observation(seen) is seen


def test_a_secret_is_masked_in_every_text_of_an_observation() -> None:
    seen = Observation(
        "a",
        turns=(Turn("ask s3cret-value", "it is s3cret-value!", detail="s3cret-value"),),
        ledger=(FaultMet(0, "tool", "t", "error", 1, would="s3cret-value"),),
        output="s3cret-value",
        notes=("s3cret-value",),
    )
    shown = Masker(["s3cret-value"]).mask_observation(seen)
    assert "s3cret-value" not in repr(shown)
    assert shown.masked
    assert seen.turns[0].text == "it is s3cret-value!"


def test_masked_says_that_the_agent_itself_said_it() -> None:
    seen = Observation("a", turns=(Turn("q", "fine"),), output="s3cret-value")
    assert not Masker(["s3cret-value"]).mask_observation(seen).masked


def test_secrets_with_quotes_and_newlines_are_masked_too() -> None:
    secret = 'pa"ss\nword\\x'
    seen = Observation("a", turns=(Turn("q", f"<{secret}>"),))
    assert Masker([secret]).mask_observation(seen).turns[0].text == "<[masked]>"


def test_the_longer_of_two_overlapping_secrets_goes_first() -> None:
    assert Masker(["abcdef", "abcdefghi"]).mask_text("abcdefghi") == "[masked]"


def test_verdicts_are_masked() -> None:
    verdict = Verdict("a", "r", "fail", 0.0, "found s3cret-value", details={"x": ["s3cret-value"]})
    assert "s3cret-value" not in repr(Masker(["s3cret-value"]).mask_struct(verdict))


def test_a_secret_that_is_also_a_word_of_ours_does_not_break_the_record() -> None:
    for secret in ("timeout", "latency_ms", "http_error", "123456", "no_effect"):
        seen = Observation(
            "0123456789ab",
            turns=(Turn("q", f"said {secret}", latency_ms=0.123456, ending="timeout", detail=secret),),
            ledger=(FaultMet(0, "tool", "t", "timeout", 1, "no_effect", got=secret),),
        )
        shown = Masker([secret]).mask_observation(seen)
        assert shown.turns[0].text == "said [masked]"
        assert shown.turns[0].detail == shown.ledger[0].got == "[masked]"
        assert (shown.trial, shown.turns[0].ending, shown.turns[0].latency_ms) == ("0123456789ab", "timeout", 0.123456)
        assert shown.ledger[0].effect == "no_effect"


def test_a_failure_to_reach_the_agent_is_masked() -> None:
    gone = AgentUnavailable("no s3cret-value", hint="try s3cret-value", body="a s3cret-value", config=True)
    shown = Masker(["s3cret-value"]).mask_error(gone)
    assert (str(shown), shown.hint, shown.body, shown.config) == ("no [masked]", "try [masked]", "a [masked]", True)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("we say s3cret-va … to the end", "we say [masked] … to the end"),
        ("we say … t-value, no more", "we say … [masked], no more"),
        ("s3cret-… t-value", "[masked]… [masked]"),
        ("the answer ends in s3cret-v", "the answer ends in [masked]"),
        ("er-one and s3cret-value", "[masked] and [masked]"),
        ("s3cret-va is no cut … s3cre … alue", "s3cret-va is no cut … s3cre … alue"),
    ],
)
def test_what_a_cut_left_of_a_secret_is_masked_too(text: str, shown: str) -> None:
    assert Masker(["s3cret-value", "another-one"]).mask_text(text) == shown


def test_what_a_cut_left_is_masked_in_a_record() -> None:
    assert Masker(["s3cret-value"]).mask_struct(Turn("q", "…t-value")).text == "…[masked]"
