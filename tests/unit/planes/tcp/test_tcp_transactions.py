"""Where a connection is in its transactions."""

from holdfast.planes.tcp.transactions import TransactionState
from holdfast.sqltext.transaction import parse_transaction

INSERT = "INSERT INTO a VALUES (1)"


class Counted:
    """A course, and the transactions that it began and ended."""

    def __init__(self, dialect="postgres"):
        self.begun = self.ended = 0
        self.dialect = dialect
        self.transactions = TransactionState(self._begin, self._end)

    def _begin(self):
        self.begun += 1
        return self.begun

    def _end(self):
        self.ended += 1

    def say(self, sql):
        """One message: its steps, as `step n` and `!` where the transaction ends with it."""
        dues = self.transactions.add_statements(parse_transaction(sql, self.dialect))
        self.transactions.mark_sent()
        return [f"{due.step} {due.n}{'!' if due.ends else ''}" for due in dues]


def test_a_statement_by_itself_is_a_transaction():
    one = Counted()
    assert one.say("SELECT 1") == ["statement 1!"]
    assert one.say(INSERT) == ["statement 2!", "write 2!", "commit 2!"]
    assert one.say("SET x = 1") == []
    assert (one.begun, one.ended) == (2, 2)


def test_each_step_of_a_block_is_taken_once():
    one = Counted()
    assert one.say("BEGIN") == []
    assert one.say("SELECT 1") == ["statement 1"]
    assert one.say(INSERT) == ["write 1"]
    assert one.say(INSERT) == []
    assert one.say("COMMIT") == ["commit 1!"]
    assert (one.begun, one.ended) == (1, 1)


def test_a_commit_of_what_did_not_write_is_not_a_step():
    one = Counted()
    assert [one.say(sql) for sql in ("BEGIN", "SELECT 1", "COMMIT")] == [[], ["statement 1"], []]
    assert [one.say(sql) for sql in ("BEGIN", "DELETE FROM a", "ROLLBACK", "COMMIT")][2:] == [[], []]
    assert (one.begun, one.ended) == (2, 2)


def test_a_block_in_one_message_ends_with_it():
    one = Counted()
    assert one.say(f"BEGIN; {INSERT}; COMMIT") == ["statement 1!", "write 1!", "commit 1!"]
    assert not one.transactions.open


def test_nothing_is_met_in_a_block_that_failed():
    one = Counted()
    one.say("BEGIN")
    one.say("SELECT 1")
    one.transactions.fail(rolled_back=False)
    assert one.say(INSERT) == []
    assert one.say("COMMIT") == []
    assert one.say(INSERT)[0] == "statement 2!"


def test_the_servers_state_wins():
    one = Counted()
    one.transactions.set_server_state(open=True)
    assert one.say(INSERT) == ["statement 1", "write 1"]
    one.transactions.set_server_state(open=False)
    assert one.say("SELECT 1") == ["statement 2!"]
    assert (one.begun, one.ended) == (2, 2)


def test_sync_commits_what_was_written_outside_of_a_block():
    one = Counted()
    transactions = one.transactions
    dues = transactions.add_statements(parse_transaction(INSERT, "postgres"), commits=False)
    assert [(due.step, due.ends) for due in dues] == [("statement", True), ("write", True)]
    assert [due.step for due in transactions.add_sync()] == ["commit"]
    transactions.mark_sent()
    assert transactions.add_sync() == []
    assert one.ended == 1


def test_without_autocommit_work_opens_a_block():
    one = Counted("mysql")
    assert one.say("SET autocommit = 0") == []
    assert one.say(INSERT) == ["statement 1", "write 1"]
    assert one.say("COMMIT") == ["commit 1!"]
    assert one.say("SELECT 1") == ["statement 2"]
    one.say("SET autocommit = 1")
    one.say("ROLLBACK")
    assert one.say(INSERT) == ["statement 3!", "write 3!", "commit 3!"]


def test_a_definition_commits_in_mysql():
    one = Counted("mysql")
    one.say("BEGIN")
    one.say(INSERT)
    assert one.say("DROP TABLE b") == ["commit 1!"]
    assert one.ended == 1
