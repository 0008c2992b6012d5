"""Faults of transactions that psycopg and PyMySQL meet alike, on a real PostgreSQL and a real MariaDB."""

import time

import psycopg
import pymysql
import pytest
from tcp_kit import mysql, place, postgres, rows, run, with_account

SERVERS = {"postgres": postgres, "mysql": mysql}
LOST = (psycopg.OperationalError, pymysql.err.OperationalError)


@pytest.fixture(scope="module", params=SERVERS)
def server(request):
    with SERVERS[request.param]() as one:
        yield one


@pytest.fixture
def db(server):
    return with_account(server)


def say(connection, sql, *params):
    with connection.cursor() as cursor:
        cursor.execute(sql, params or None)
        return cursor.fetchall() if cursor.description else []


def insert(connection, id=2):
    say(connection, "INSERT INTO account VALUES (%s, 5)", id)


def renew(connection):
    """A transaction of two writes."""
    insert(connection)
    say(connection, "UPDATE account SET sum = 0 WHERE id = 2")
    connection.commit()


def test_without_faults_everything_passes(db):
    def client(port):
        with db.connect(port) as connection:
            insert(connection)
            connection.commit()
            return len(say(connection, "SELECT repeat('x', 3000000)")[0][0])

    size, one = run(db, client)
    assert (size, one.met, one.context.weather.calls) == (3_000_000, [], {"service:db": 1})
    assert rows(db) == [(1, 100), (2, 5)]


@pytest.mark.parametrize("settings", [{"at": "write"}, {"at": "commit"}, {"at": "commit", "outcome": "lost"}])
def test_killed_mid_transaction_is_rolled_back(db, settings):
    def client(port):
        connection = db.connect(port)
        say(connection, "SELECT 1")
        connection.commit()
        with pytest.raises(LOST):
            renew(connection)
        with db.connect(port) as again:
            insert(again, 3)
            again.commit()

    _, one = run(db, client, place("db", "killed_mid_transaction", times=1, **settings))
    assert rows(db) == [(1, 100), (3, 5)]
    assert one.met == [("killed_mid_transaction", 2, "met")]
    assert one.context.ledger[0].plane == "service"


@pytest.mark.parametrize("autocommit", [True, False])
def test_killed_when_done_is_committed_and_the_client_cannot_know(db, autocommit):
    def client(port):
        connection = db.connect(port, autocommit=autocommit)
        with pytest.raises(LOST):
            insert(connection) if autocommit else renew(connection)

    _, one = run(db, client, place("db", "killed_mid_transaction", at="commit", outcome="done"))
    assert rows(db) == [(1, 100), (2, 5 if autocommit else 0)]
    assert one.met == [("killed_mid_transaction", 1, "met")]
    assert one.context.ledger[0].would


@pytest.mark.parametrize("at", ["write", "commit"])
def test_a_write_of_its_own_is_killed_before_it_is_done(db, at):
    def client(port):
        connection = db.connect(port, autocommit=True)
        with pytest.raises(LOST):
            insert(connection)

    _, one = run(db, client, place("db", "killed_mid_transaction", at=at))
    assert rows(db) == [(1, 100)]
    assert one.met == [("killed_mid_transaction", 1, "met")]


def test_slow_query_is_slow(db):
    def client(port):
        with db.connect(port) as connection:
            began = time.monotonic()
            say(connection, "SELECT 1")
            return time.monotonic() - began

    took, one = run(db, client, place("db", "slow_query", delay_ms=150))
    assert took >= 0.15
    assert one.met == [("slow_query", 1, "met")]


def test_connections_exhausted_is_refused_as_the_server_refuses(db):
    def client(port):
        with pytest.raises(LOST) as raised:
            db.connect(port)
        db.connect(port).close()
        return str(raised.value)

    said, one = run(db, client, place("db", "connections_exhausted", times=1))
    assert {"postgres": "too many clients", "mysql": "(1040, "}[db.kind] in said
    assert one.met == [("connections_exhausted", 1, "met")]
