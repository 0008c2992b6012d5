"""Variables mean what they mean to the official images; none is accepted and ignored."""

from __future__ import annotations

from base64 import b64decode
from types import SimpleNamespace

import pytest
from psycopg.pq import PGconn

from golden_words import Golden
from holdfast.errors import UserError
from holdfast.model.world import ServiceSpec
from holdfast.world.services.postgres.session import hash_password
from holdfast.world.services.redis import write_configuration
from holdfast.world.services.settings import (
    build_url,
    hash_native,
    hash_scram,
    read_mysql_settings,
    read_postgres_settings,
    read_redis_settings,
)
from refused import refused


def spec(kind: str, **env: str) -> ServiceSpec:
    return ServiceSpec("db", kind, env=env)  # type: ignore[arg-type]


def test_postgres_owns_a_database_of_the_users_name() -> None:
    found = read_postgres_settings(spec("postgres", POSTGRES_PASSWORD="secret", POSTGRES_USER="app"))
    assert (found.user, found.database, found.method) == ("app", "app", "scram-sha-256")
    assert read_postgres_settings(spec("postgres", POSTGRES_PASSWORD="x", POSTGRES_DB="shop")).database == "shop"
    assert read_postgres_settings(spec("postgres", POSTGRES_PASSWORD="x", TZ="Asia/Tokyo")).server == {
        "TZ": "Asia/Tokyo"
    }


def test_without_a_password_anybody_may_log_in_and_the_report_says_so() -> None:
    found = read_postgres_settings(spec("postgres"))
    assert found.method == "trust"
    assert "no POSTGRES_PASSWORD is set" in found.notes[0]
    assert read_postgres_settings(spec("postgres", POSTGRES_HOST_AUTH_METHOD="trust")).notes == ()
    assert "MYSQL_ROOT_PASSWORD" in read_mysql_settings(spec("mysql")).notes[0]


def test_a_variable_that_cannot_be_honoured_is_refused() -> None:
    with pytest.raises(UserError, match="does not support POSTGRES_INITDB_WALDIR"):
        read_postgres_settings(spec("postgres", POSTGRES_INITDB_WALDIR="/x"))
    with pytest.raises(UserError, match="does not support MYSQL_ROOT_HOST"):
        read_mysql_settings(spec("mysql", MYSQL_ROOT_HOST="%"))
    with pytest.raises(UserError, match="POSTGRES_HOST_AUTH_METHOD is 'peer'"):
        read_postgres_settings(spec("postgres", POSTGRES_HOST_AUTH_METHOD="peer"))


def test_our_own_account_is_not_for_the_agent() -> None:
    with pytest.raises(UserError, match="Holdfast's own"):
        read_postgres_settings(spec("postgres", POSTGRES_USER="holdfast_observer"))


def test_mysql_reads_both_prefixes_and_wants_user_and_password_together(golden: Golden) -> None:
    found = read_mysql_settings(spec("mysql", MARIADB_ROOT_PASSWORD="r", MYSQL_USER="app", MYSQL_PASSWORD="p"))
    assert found.account == ("app", "p")
    assert read_mysql_settings(spec("mysql", MYSQL_ROOT_PASSWORD="r")).account == ("root", "r")
    assert len(read_mysql_settings(spec("mysql", MYSQL_RANDOM_ROOT_PASSWORD="yes")).root_password) > 20
    with refused("service-config-invalid") as told:
        read_mysql_settings(spec("mysql", MYSQL_USER="app"))
    golden(str(told.value))
    with refused("service-config-invalid"):
        read_mysql_settings(spec("mysql", MYSQL_USER="root", MYSQL_PASSWORD="p"))


def test_redis_takes_its_password_from_either_place_and_passes_options_on() -> None:
    assert read_redis_settings(spec("redis", REDIS_PASSWORD="p")).password == "p"
    found = read_redis_settings(spec("redis", REDIS_ARGS="--requirepass 's p' --maxmemory 1mb"))
    assert (found.password, found.args) == ("s p", ("--maxmemory", "1mb"))
    written = write_configuration(found).splitlines()
    assert written[0] == "port 0"
    assert 'requirepass "s p"' in written
    assert written[-1] == 'maxmemory "1mb"'


def test_a_url_keeps_every_sign_of_a_password() -> None:
    pattern = build_url("postgresql", "a b", "p/{x}@:%", "my db")
    assert pattern.format(host="db", port=5432) == "postgresql://a%20b:p%2F%7Bx%7D%40%3A%25@db:5432/my%20db"
    assert build_url("redis", "", "", "0").format(host="c", port=6379) == "redis://c:6379/0"


def test_passwords_are_stored_as_servers_store_them() -> None:
    assert hash_native("password") == "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19"
    assert hash_native("") == ""
    # the keys of RFC 7677's example exchange
    stored = hash_scram("pencil", bytes.fromhex("5b6d99689d12358eeca04b141236fa81"), 4096)
    assert stored.startswith("SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$")
    assert stored.endswith("$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=")


@pytest.mark.parametrize(("written", "stored"), [("I\u00adX", "IX"), ("\u2168", "IX"), ("pencil", "pencil")])
def test_a_password_is_stored_as_its_client_sends_it(written: str, stored: str) -> None:
    session = SimpleNamespace(pgconn=PGconn.connect_start(b"host=/nowhere"))
    _, how, keys = hash_password(session, "ada", written).split("$")  # type: ignore[arg-type]
    iterations, salt = how.split(":")
    assert hash_scram(stored, b64decode(salt), int(iterations)).endswith(f"${keys}")  # RFC 4013's examples


def test_a_password_with_a_forbidden_sign_is_stored_as_it_is() -> None:
    session = SimpleNamespace(pgconn=PGconn.connect_start(b"host=/nowhere"))
    _, how, keys = hash_password(session, "ada", "a\u0007").split("$")  # type: ignore[arg-type]
    assert not hash_scram("a", b64decode(how.split(":")[1]), 4096).endswith(f"${keys}")
