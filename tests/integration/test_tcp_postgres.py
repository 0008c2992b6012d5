"""Faults of transactions, met by psycopg on a real PostgreSQL through the TCP plane."""

import threading
import time

import psycopg
import pytest
from tcp_kit import place, postgres, rows, run, with_account


@pytest.fixture(scope="module")
def server():
    with postgres() as one:
        yield one


@pytest.fixture
def db(server):
    return with_account(server)


def insert(connection, id=2):
    connection.execute("INSERT INTO account VALUES (%s, 5)", (id,))


def pipelined(connection):
    with connection.pipeline():
        connection.execute("SELECT 1")
        insert(connection)
        insert(connection, 3)
        if not connection.autocommit:
            connection.commit()


NEVER = place("db", "slow_query", on_call=10_000)
"""Makes the plane read along, and never fires."""


def test_reading_along_changes_nothing(db):
    def client(port):
        with db.connect(port) as connection:
            insert(connection)
            with connection.cursor().copy("COPY account FROM STDIN") as copy:
                for id in range(10, 20):
                    copy.write_row((id, id))
            with connection.cursor().copy("COPY (SELECT repeat('y', 100000)) TO STDOUT") as copy:
                out = sum(len(part) for part in copy)
            text = connection.execute("SELECT repeat('x', 3000000)").fetchone()[0]
            connection.execute("SELECT %s::text", ("z" * 2_500_000,))
            connection.commit()
            with connection.pipeline():
                for id in range(30, 40):
                    insert(connection, id)
            connection.commit()
            with pytest.raises(psycopg.errors.UniqueViolation):
                insert(connection, 30)
            connection.rollback()
            with connection.transaction():
                insert(connection, 50)
            return out, len(text)

    result, one = run(db, client, NEVER)
    assert result == (100_001, 3_000_000)
    assert len(rows(db)) == 23
    assert one.met == []
    assert one.context.notes == []


def test_transactions_are_counted_whether_they_write_or_not(db):
    def client(port):
        with db.connect(port) as connection:
            connection.execute("SELECT 1")
            connection.commit()
            connection.execute("SET search_path = public")
            connection.execute("SELECT 1")
            insert(connection)
            connection.commit()
        with db.connect(port, autocommit=True) as connection:
            connection.execute("SET statement_timeout = 0")
            connection.execute("SELECT 1")
            insert(connection, 3)
            connection.execute("BEGIN; SELECT 1; COMMIT")

    _, one = run(db, client, NEVER)
    assert one.context.weather.calls == {"service:db": 2, "transaction:db": 5}


def test_killed_after_a_write_the_write_had_happened(db):
    def client(port):
        with pytest.raises(psycopg.OperationalError):
            insert(db.connect(port))

    _, one = run(db, client, place("db", "killed_mid_transaction"))
    assert one.context.ledger[0].would == "INSERT 0 1"
    assert rows(db) == [(1, 100)]


def test_serialization_failure_of_a_write_of_its_own(db):
    def client(port):
        with db.connect(port, autocommit=True) as connection:
            with pytest.raises(psycopg.errors.SerializationFailure):
                insert(connection)
            insert(connection, 3)

    run(db, client, place("db", "serialization_failure", times=1))
    assert rows(db) == [(1, 100), (3, 5)]


@pytest.mark.parametrize("at", ["write", "commit"])
@pytest.mark.parametrize("prepared", [True, False])
def test_a_write_of_its_own_is_killed_before_it_is_done(db, at, prepared):
    def client(port):
        connection = db.connect(port, autocommit=True)
        with pytest.raises(psycopg.OperationalError):
            insert(connection) if prepared else connection.execute("INSERT INTO account VALUES (2, 5)")

    _, one = run(db, client, place("db", "killed_mid_transaction", at=at))
    assert rows(db) == [(1, 100)]
    assert one.met == [("killed_mid_transaction", 1, "met")]


def test_a_pipeline_is_killed_in_its_middle(db):
    def client(port):
        connection = db.connect(port)
        with pytest.raises(psycopg.OperationalError):
            pipelined(connection)

    _, one = run(db, client, place("db", "killed_mid_transaction"))
    assert rows(db) == [(1, 100)]
    assert one.met == [("killed_mid_transaction", 1, "met")]


def test_serialization_failure_at_commit_rolls_back_and_leaves_the_connection_usable(db):
    def client(port):
        with db.connect(port) as connection:
            insert(connection)
            with pytest.raises(psycopg.errors.SerializationFailure) as raised:
                connection.commit()
            status = connection.info.transaction_status
            insert(connection, 3)
            connection.commit()
            return str(raised.value), status

    (said, status), one = run(db, client, place("db", "serialization_failure", times=1))
    assert "could not serialize" in said
    assert status == psycopg.pq.TransactionStatus.IDLE
    assert rows(db) == [(1, 100), (3, 5)]
    assert one.met == [("serialization_failure", 1, "met")]


def test_serialization_failure_at_a_write_leaves_the_transaction_failed(db):
    def client(port):
        with db.connect(port) as connection:
            connection.execute("SELECT 1")
            with pytest.raises(psycopg.errors.SerializationFailure):
                insert(connection)
            with pytest.raises(psycopg.errors.InFailedSqlTransaction):
                connection.execute("SELECT 1")
            connection.rollback()
            insert(connection, 3)

    run(db, client, place("db", "serialization_failure", at="write", times=1))
    assert rows(db) == [(1, 100), (3, 5)]


@pytest.mark.parametrize("params", [None, (2,)])
def test_read_only_refuses_writes_and_lets_reads_pass(db, params):
    sql = "INSERT INTO account VALUES (2, 5)" if params is None else "INSERT INTO account VALUES (%s, 5)"

    def client(port):
        with db.connect(port, autocommit=True) as connection:
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction) as raised:
                connection.execute(sql, params)
            return str(raised.value), connection.execute("SELECT count(*) FROM account").fetchone()[0]

    (said, count), one = run(db, client, place("db", "read_only"))
    assert "read-only transaction" in said
    assert (count, one.met) == (1, [("read_only", 1, "met")])


def test_a_refusal_in_a_pipeline_fails_what_follows_and_nothing_else(db):
    def client(port):
        with db.connect(port, autocommit=True) as connection:
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                pipelined(connection)
            return connection.execute("SELECT 7").fetchone()[0]

    seven, _ = run(db, client, place("db", "read_only", match={"table": "acc*"}))
    assert seven == 7
    assert rows(db) == [(1, 100)]


def test_lock_wait_waits_and_fails(db):
    def client(port):
        with db.connect(port) as connection:
            began = time.monotonic()
            with pytest.raises(psycopg.errors.LockNotAvailable):
                connection.execute("UPDATE account SET sum = 1")
            took = time.monotonic() - began
            connection.rollback()
            return took

    took, one = run(db, client, place("db", "lock_wait", delay_ms=150))
    assert 0.15 <= took < 5
    assert rows(db) == [(1, 100)]
    assert one.met == [("lock_wait", 1, "met")]


def test_slow_query_is_slow_once_a_transaction(db):
    def client(port):
        with db.connect(port) as connection:
            began = time.monotonic()
            connection.execute("SELECT 1")
            first = time.monotonic() - began
            insert(connection)
            return first, time.monotonic() - began - first

    (first, then), one = run(db, client, place("db", "slow_query", delay_ms=150))
    assert first >= 0.15 > then
    assert one.met == [("slow_query", 1, "met")]
    assert rows(db) == [(1, 100), (2, 5)]


def test_slow_query_lets_copy_pass(db):
    def client(port):
        with db.connect(port) as connection, connection.cursor().copy("COPY account FROM STDIN") as copy:
            copy.write_row((9, 9))

    run(db, client, place("db", "slow_query", delay_ms=10))
    assert rows(db) == [(1, 100), (9, 9)]


def test_a_fault_fires_on_the_transaction_that_the_schedule_says(db):
    def client(port):
        refused = []
        with db.connect(port, autocommit=True) as connection:
            for id in range(2, 8):
                try:
                    insert(connection, id)
                except psycopg.errors.ReadOnlySqlTransaction:
                    refused.append(id)
        return refused

    assert run(db, client, place("db", "read_only", on_call=3))[0] == [4]
    db.sql("DELETE FROM account WHERE id > 1")
    assert run(db, client, place("db", "read_only", after_calls=4))[0] == [6, 7]
    db.sql("DELETE FROM account WHERE id > 1")
    lucky = run(db, client, place("db", "read_only", probability=0.5))[0]
    db.sql("DELETE FROM account WHERE id > 1")
    assert lucky == run(db, client, place("db", "read_only", probability=0.5))[0]
    assert 0 < len(lucky) < 6


def test_a_fault_of_another_service_is_not_met(db):
    def client(port):
        with db.connect(port) as connection:
            insert(connection)

    assert run(db, client, place("other", "read_only"), place("other", "down"))[1].met == []


def test_tls_error_breaks_the_handshake_and_a_client_may_do_without(db):
    def client(port):
        with pytest.raises(psycopg.OperationalError) as raised:
            db.connect(port, sslmode="require")
        db.connect(port, sslmode="disable").close()
        return str(raised.value)

    said, one = run(db, client, place("db", "tls_error"))
    assert "SSL error" in said
    assert one.met == [("tls_error", 1, "met")]


def test_writes_are_told_as_they_go_to_the_server(db):
    told = []

    def client(port):
        with db.connect(port) as connection:
            connection.execute("SELECT 1")
            insert(connection)

    run(db, client, wrote=told.append)
    assert [(one.verb, one.table) for one in told] == [("INSERT", "account")]


def test_a_cancel_request_passes(db):
    def client(port):
        with db.connect(port) as connection:
            # Its other way to cancel holds the interpreter, and with it the plane.
            threading.Timer(0.2, connection.cancel_safe).start()
            with pytest.raises(psycopg.errors.QueryCanceled):
                connection.execute("SELECT pg_sleep(20)")

    _, one = run(db, client, NEVER)
    assert one.context.notes == []
