from holdfast.faults.tools.stale import Stale
from holdfast.protocols.fault import Call, Reply


def test_stale_on_a_first_call_has_no_effect(meet):
    assert meet(Stale(), value := {"a": 1}) is value


def test_stale_returns_the_earliest_reply_for_other_arguments(meet):
    memory = {}
    ask = {"memory": memory}
    assert meet(Stale(), "A1", arguments={"q": "a"}, **ask) == "A1"
    assert meet(Stale(), "B1", arguments={"q": "b"}, **ask) == "A1"
    assert meet(Stale(), "C1", arguments={"q": "c"}, **ask) == "A1"
    assert meet(Stale(), "A2", arguments={"q": "a"}, **ask) == "B1"


def test_stale_returns_a_different_earlier_reply_for_the_same_arguments(meet):
    memory = {}
    meet(Stale(), 1, arguments={"q": "a"}, memory=memory)
    assert meet(Stale(), 1, arguments={"q": "a"}, memory=memory) == 1
    assert meet(Stale(), 2, arguments={"q": "a"}, memory=memory) == 1


def test_stale_remembers_calls_it_only_watched(meet):
    memory = {}
    Stale().watch(Call("tool", "search", {"q": "a"}, 1), Reply("A"), memory)
    assert meet(Stale(), "B", arguments={"q": "b"}, memory=memory) == "A"


def test_stale_keeps_targets_apart(meet):
    memory = {}
    Stale().watch(Call("tool", "weather", {"q": "a"}, 1), Reply("rain"), memory)
    assert meet(Stale(), "B", arguments={"q": "b"}, memory=memory) == "B"


def test_stale_returns_copies_of_earlier_replies(meet):
    memory = {}
    rows = [1]
    meet(Stale(), rows, arguments={"q": "a"}, memory=memory)
    rows.append(2)
    received = meet(Stale(), [3], arguments={"q": "b"}, memory=memory)
    assert received == [1]
    received.append(9)
    assert meet(Stale(), [4], arguments={"q": "c"}, memory=memory) == [1]


def test_stale_makes_the_call_and_its_memory_is_bounded(meeting):
    memory = {}
    for n in range(80):
        m = meeting(Stale(), n, arguments={"q": n}, memory=memory)
        m.run()
        assert m.forwarded == 1
    assert len(memory["search"]) == 50
