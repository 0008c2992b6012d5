"""Where a connection is in its transactions."""

import pytest

from holdfast.planes.tcp.transactions import TransactionState
from holdfast.sqltext.transaction import parse_transaction

INSERT = "INSERT INTO a VALUES (1)"
ALL = "statement {0}! write {0}! commit {0}!"
COURSES = {
    "a statement by itself is a transaction": (
        "postgres",
        [("SELECT 1", "statement 1!"), (INSERT, ALL.format(2)), ("SET x = 1", "")],
    ),
    "each step of a block is taken once": (
        "postgres",
        [("BEGIN", ""), ("SELECT 1", "statement 1"), (INSERT, "write 1"), (INSERT, ""), ("COMMIT", "commit 1!")],
    ),
    "a commit without a write is not a step": (
        "postgres",
        [("BEGIN", ""), ("SELECT 1", "statement 1"), ("COMMIT", "")],
    ),
    "a commit after a rollback is not a step": (
        "postgres",
        [("BEGIN", ""), ("DELETE FROM a", "statement 1 write 1"), ("ROLLBACK", ""), ("COMMIT", "")],
    ),
    "a block in one message ends with it": ("postgres", [(f"BEGIN; {INSERT}; COMMIT", ALL.format(1))]),
    "no step follows in a block that failed": (
        "postgres",
        [("BEGIN", ""), ("SELECT 1", "statement 1"), ("(failed)", ""), (INSERT, ""), ("COMMIT", ""),
         (INSERT, ALL.format(2))],
    ),
    "the server's state wins": (
        "postgres",
        [("(open)", ""), (INSERT, "statement 1 write 1"), ("(idle)", ""), ("SELECT 1", "statement 2!")],
    ),
    "without autocommit work opens a block": (
        "mysql",
        [("SET autocommit = 0", ""), (INSERT, "statement 1 write 1"), ("COMMIT", "commit 1!"),
         ("SELECT 1", "statement 2"), ("SET autocommit = 1", ""), ("ROLLBACK", ""), (INSERT, ALL.format(3))],
    ),
    "a definition commits in MySQL": (
        "mysql",
        [("BEGIN", ""), (INSERT, "statement 1 write 1"), ("DROP TABLE b", "commit 1!")],
    ),
}  # fmt: skip


class Counted:
    """The transactions of a connection, counted as they begin and end."""

    def __init__(self):
        self.begun = self.ended = 0
        self.transactions = TransactionState(self._begin, self._end)

    def _begin(self):
        self.begun += 1
        return self.begun

    def _end(self):
        self.ended += 1


@pytest.mark.parametrize(("dialect", "course"), COURSES.values(), ids=COURSES)
def test_a_message_takes_these_steps_and_may_end_its_transaction(dialect, course):
    counted = Counted()
    transactions = counted.transactions
    for sql, expected in course:
        match sql:
            case "(failed)":
                transactions.fail(rolled_back=False)
            case "(open)" | "(idle)":
                transactions.set_server_state(open=sql == "(open)")
            case _:
                steps = transactions.add_statements(parse_transaction(sql, dialect))
                transactions.mark_sent()
                assert " ".join(f"{step.step} {step.n}{'!' * step.ends}" for step in steps) == expected, sql
    assert counted.begun == counted.ended
    assert not transactions.open


def test_sync_commits_what_was_written_outside_of_a_block():
    counted = Counted()
    steps = counted.transactions.add_statements(parse_transaction(INSERT, "postgres"), commits=False)
    assert [(step.step, step.ends) for step in steps] == [("statement", True), ("write", True)]
    assert [step.step for step in counted.transactions.add_sync()] == ["commit"]
    counted.transactions.mark_sent()
    assert counted.transactions.add_sync() == []
    assert counted.ended == 1
