"""Faults of transactions, met by PyMySQL on a real MariaDB through the TCP plane."""

import time

import pymysql
import pytest
from tcp_kit import mysql, place, rows, run, with_account


@pytest.fixture(scope="module")
def server():
    with mysql() as one:
        yield one


@pytest.fixture
def db(server):
    return with_account(server)


def say(connection, sql, *params):
    with connection.cursor() as cursor:
        cursor.execute(sql, params or None)
        return cursor.fetchall()


def insert(connection, id=2):
    say(connection, "INSERT INTO account VALUES (%s, 5)", id)


def renew(connection):
    insert(connection)
    say(connection, "UPDATE account SET sum = 0 WHERE id = 2")
    connection.commit()


def prepared(connection, sql):
    """Prepares and runs a statement by the binary protocol, which PyMySQL does not speak by itself."""
    connection._execute_command(0x16, sql)
    head = connection._read_packet()._data
    columns = int.from_bytes(head[5:7], "little")
    assert columns == int.from_bytes(head[7:9], "little") == 0
    connection._execute_command(0x17, head[1:5] + b"\0\1\0\0\0")
    return connection._read_packet()


NEVER = place("db", "slow_query", on_call=10_000)


def test_reading_along_changes_nothing(db):
    def client(port):
        with db.connect(port) as connection:
            insert(connection)
            connection.commit()
            texts = [len(row[0]) for row in say(connection, "SELECT repeat('x', 3000000) UNION ALL SELECT 'ab'")]
            say(connection, "SELECT %s", "z" * 2_500_000)
            many = say(connection, "SELECT seq FROM seq_1_to_1000")
            prepared(connection, b"INSERT INTO account VALUES (3, 3)")
            connection.commit()
            return texts, len(many)

    result, one = run(db, client, NEVER)
    assert result == ([3_000_000, 2], 1000)
    assert rows(db) == [(1, 100), (2, 5), (3, 3)]
    assert (one.met, one.context.notes) == ([], [])


def test_transactions_are_counted_with_and_without_autocommit(db):
    def client(port):
        with db.connect(port) as connection:
            say(connection, "SELECT 1")
            insert(connection)
            connection.commit()
            say(connection, "SELECT 1")
            connection.rollback()
        with db.connect(port, autocommit=True) as connection:
            say(connection, "SET NAMES utf8mb4")
            say(connection, "SELECT 1")
            insert(connection, 3)
            connection.begin()
            insert(connection, 4)
            insert(connection, 5)
            connection.commit()

    _, one = run(db, client, NEVER)
    assert one.context.weather.calls == {"service:db": 2, "transaction:db": 5}


@pytest.mark.parametrize("at", ["write", "commit"])
def test_serialization_failure_is_a_deadlock_and_rolls_back(db, at):
    def client(port):
        with db.connect(port) as connection:
            with pytest.raises(pymysql.err.OperationalError) as raised:
                renew(connection)
            insert(connection, 3)
            connection.commit()
            return raised.value.args

    said, one = run(db, client, place("db", "serialization_failure", at=at, times=1))
    assert said[0] == 1213
    assert rows(db) == [(1, 100), (3, 5)]
    assert one.met == [("serialization_failure", 1, "met")]


def test_lock_wait_fails_the_statement_and_not_the_transaction(db):
    def client(port):
        with db.connect(port) as connection:
            began = time.monotonic()
            with pytest.raises(pymysql.err.OperationalError) as raised:
                insert(connection)
            took = time.monotonic() - began
            insert(connection, 3)
            connection.commit()
            return raised.value.args[0], took

    (code, took), _ = run(db, client, place("db", "lock_wait", delay_ms=150, times=1))
    assert code == 1205
    assert took >= 0.15
    assert rows(db) == [(1, 100), (3, 5)]


def test_read_only_holds_for_the_whole_transaction(db):
    def client(port):
        with db.connect(port) as connection:
            codes = []
            for id in (2, 3):
                with pytest.raises(pymysql.err.OperationalError) as raised:
                    insert(connection, id)
                codes.append(raised.value.args[0])
            connection.rollback()
            insert(connection, 4)
            connection.commit()
            return codes

    codes, one = run(db, client, place("db", "read_only", times=1))
    assert codes == [1290, 1290]
    assert one.met == [("read_only", 1, "met")]
    assert rows(db) == [(1, 100), (4, 5)]


def test_a_prepared_write_is_met(db):
    def client(port):
        with db.connect(port, autocommit=True) as connection:
            with pytest.raises(pymysql.err.OperationalError) as raised:
                prepared(connection, b"INSERT INTO account VALUES (2, 2)")
            return raised.value.args[0]

    code, one = run(db, client, place("db", "read_only"))
    assert (code, rows(db)) == (1290, [(1, 100)])
    assert one.met == [("read_only", 1, "met")]


def test_a_table_made_in_a_transaction_commits_it(db):
    def client(port):
        with db.connect(port) as connection:
            insert(connection)
            with pytest.raises(pymysql.err.OperationalError):
                say(connection, "CREATE TABLE another (id int)")

    run(db, client, place("db", "killed_mid_transaction", at="commit"))
    assert rows(db) == [(1, 100)]
