"""What the worlds of a run have in common."""

from __future__ import annotations

from golden_words import Golden
from holdfast.model.observation import Observation, Turn
from holdfast.model.task import RecordedUse
from holdfast.model.world import Isolation
from holdfast.runner.across_trials import DIFFERS, SESSION_NOTES, Conditions
from planes_kit import answer, replay


def test_a_promise_that_one_trial_did_not_keep_is_not_kept() -> None:
    found = Conditions([Isolation("old", True)])
    found.add(Observation("a", isolation=(Isolation("network", True),), notes=("db: 15", "late")))
    found.add(Observation("b", isolation=(Isolation("network", False, "no kernel"),), notes=("db: 15",)))
    found.add(Observation("c", isolation=(Isolation("network", True),), notes=("db: 15", "other")))
    assert found.isolation == (Isolation("old", True), Isolation("network", False, "no kernel"))
    assert found.background == ("db: 15",)


def test_what_each_trial_says_for_itself_is_not_said_of_all() -> None:
    found = Conditions()
    for port in (3000, 41237, 3000):
        found.add(Observation("a", isolation=(Isolation("ingress", True, f"port {port}"), Isolation("mounts", True))))
    assert found.isolation == (Isolation("ingress", True, DIFFERS), Isolation("mounts", True))
    again = Conditions(found.isolation)
    again.add(Observation("b", isolation=(Isolation("ingress", True, "port 3000"),)))
    assert again.isolation == found.isolation


def test_trials_without_a_world_say_nothing() -> None:
    found = Conditions()
    found.add(Observation("a", notes=("a late answer was dropped",)))
    assert (found.isolation, found.notes) == ((), ())


def test_an_ending_that_all_trials_share_is_said_once(golden: Golden) -> None:
    world = (Isolation("network", True),)
    bad, good = Turn("hi", None, 1.0, "crashed", "exit code 1: no module"), Turn("hi", "yes")
    found = Conditions()
    found.add(Observation("a", turns=(bad,), isolation=world))
    assert found.notes == ()  # one trial says it itself
    found.add(Observation("b", turns=(bad,), isolation=world))
    golden(found.notes[0])
    for turns in ((good,), (bad,), (bad,)):
        found.add(Observation("c", turns=turns, isolation=world))
    assert found.notes == ()


def test_what_sessions_lacked_is_said_of_the_whole_each_once(golden: Golden) -> None:
    conditions, task = Conditions(), replay(answer("weather", 1))
    for _ in range(3):
        conditions.note_replay(task, Observation("t", recorded=(RecordedUse("book", 0, "tool", 0, "book(seat=4)"),)))
    golden(conditions.notes)


def test_an_agent_cannot_fill_the_report_of_the_whole() -> None:
    conditions = Conditions()
    for n in range(SESSION_NOTES + 10):
        conditions.note_replay(replay(), Observation("t", recorded=(RecordedUse("t", 0, "tool", 0, f"t({n})"),)))
    assert len(conditions.notes) == SESSION_NOTES
