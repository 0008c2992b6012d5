"""Reads the environment of a service as the official images do; hashes passwords as servers store them. Pure."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import shlex
from base64 import b64encode
from collections.abc import Collection
from urllib.parse import quote

from msgspec import Struct

from holdfast.errors import NoServer, UserError
from holdfast.model.world import ServiceSpec

OWN_ACCOUNT = "holdfast_observer"
"""Holdfast's own account in every database server."""
_METHODS = {"scram-sha-256", "md5", "password", "trust"}


class PostgresSettings(Struct, frozen=True):
    user: str
    password: str
    database: str
    method: str
    initdb: tuple[str, ...]
    server: dict[str, str]
    """Variables for the server's own environment."""
    notes: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        return build_url("postgresql", self.user, self.password, self.database)


class MysqlSettings(Struct, frozen=True):
    root_password: str
    database: str
    user: str
    password: str
    server: dict[str, str]
    notes: tuple[str, ...] = ()

    @property
    def account(self) -> tuple[str, str]:
        """The user whose name and password the agent gets."""
        return (self.user, self.password) if self.user else ("root", self.root_password)

    @property
    def url(self) -> str:
        return build_url("mysql", *self.account, self.database)


class RedisSettings(Struct, frozen=True):
    password: str
    args: tuple[str, ...]
    server: dict[str, str]

    @property
    def url(self) -> str:
        return build_url("redis", "", self.password, "0")


def read_postgres_settings(spec: ServiceSpec) -> PostgresSettings:
    """Read POSTGRES_*: a superuser that owns a database of its name."""
    supported = {"USER", "PASSWORD", "DB", "HOST_AUTH_METHOD", "INITDB_ARGS"}
    env, server = _split(spec, ("POSTGRES_",), supported)
    user = env.get("USER") or "postgres"
    password = env.get("PASSWORD", "")
    method = env.get("HOST_AUTH_METHOD") or ("scram-sha-256" if password else "trust")
    if method not in _METHODS:
        text = f"POSTGRES_HOST_AUTH_METHOD is {method!r}"
        raise make_config_error(spec, text, f"use {', '.join(sorted(_METHODS))}")
    _reject_own_user(spec, user)
    notes = () if password or "HOST_AUTH_METHOD" in env else (_describe_open_login(spec, "POSTGRES_PASSWORD"),)
    initdb = tuple(shlex.split(env.get("INITDB_ARGS", "")))
    return PostgresSettings(user, password, env.get("DB") or user, method, initdb, server, notes)


def read_mysql_settings(spec: ServiceSpec) -> MysqlSettings:
    """Read MYSQL_* or MARIADB_*: root, and a user that owns one database."""
    password_keys = {"ROOT_PASSWORD", "ALLOW_EMPTY_PASSWORD", "ALLOW_EMPTY_ROOT_PASSWORD", "RANDOM_ROOT_PASSWORD"}
    env, server = _split(spec, ("MARIADB_", "MYSQL_"), password_keys | {"DATABASE", "USER", "PASSWORD"})
    user = env.get("USER", "")
    if user == "root":
        text = "MYSQL_USER must not be root, which already exists"
        raise make_config_error(spec, text, "leave it out, or name another user")
    if bool(user) != ("PASSWORD" in env):
        raise make_config_error(spec, "MYSQL_USER and MYSQL_PASSWORD must be set together", "give both")
    _reject_own_user(spec, user)
    password = env.get("ROOT_PASSWORD", "")
    if env.get("RANDOM_ROOT_PASSWORD") and not password:
        password = secrets.token_urlsafe(24)
    notes = () if password_keys & env.keys() else (_describe_open_login(spec, "MYSQL_ROOT_PASSWORD"),)
    return MysqlSettings(password, env.get("DATABASE", ""), user, env.get("PASSWORD", ""), server, notes)


def read_redis_settings(spec: ServiceSpec) -> RedisSettings:
    """Read REDIS_PASSWORD, and REDIS_ARGS as options of the server."""
    env, server = _split(spec, ("REDIS_",), {"PASSWORD", "ARGS"})
    args = tuple(shlex.split(env.get("ARGS", "")))
    password = env.get("PASSWORD", "")
    if "--requirepass" in args[:-1]:
        at = args.index("--requirepass")
        password, args = args[at + 1], args[:at] + args[at + 2 :]
    return RedisSettings(password, args, server)


def _split(
    spec: ServiceSpec, prefixes: tuple[str, ...], supported: Collection[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the image's variables by their short names, the first prefix first, and the rest."""
    short_names: dict[str, str] = {}
    for prefix in prefixes:
        for name, value in spec.env.items():
            if name.startswith(prefix):
                short = name.removeprefix(prefix)
                if short not in supported:
                    names = ", ".join(sorted(prefixes[-1] + key for key in supported))
                    text = f"service {spec.name}: the local server does not support {name}"
                    raise NoServer(text, hint=f"known: {names}; or use --backend docker")
                short_names.setdefault(short, value)
    return short_names, {name: value for name, value in spec.env.items() if not name.startswith(prefixes)}


def _reject_own_user(spec: ServiceSpec, user: str) -> None:
    if user == OWN_ACCOUNT:
        raise make_config_error(spec, f"the user {OWN_ACCOUNT} is Holdfast's own", "name another user")


def make_config_error(spec: ServiceSpec, text: str, hint: str) -> UserError:
    """Return the error for a service with unusable settings."""
    return UserError(f"service {spec.name}: {text}", code="service-config-invalid", hint=hint)


def _describe_open_login(spec: ServiceSpec, variable: str) -> str:
    return f"service {spec.name}: no {variable} is set, so no password is needed (the official image would not start)"


def build_url(scheme: str, user: str, password: str, path: str) -> str:
    """Return the URL for the agent, with placeholders {host} and {port}."""
    login = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
    return f"{scheme}://{login}{'@' if login else ''}{{host}}:{{port}}/{quote(path, safe='')}"


def hash_scram(password: str, salt: bytes, iterations: int) -> str:
    """Return the stored form of an ASCII password in PostgreSQL (RFC 5803)."""
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server_key = hmac.digest(salted, b"Server Key", "sha256")
    keys = f"{b64encode(stored).decode()}:{b64encode(server_key).decode()}"
    return f"SCRAM-SHA-256${iterations}:{b64encode(salt).decode()}${keys}"


def hash_native(password: str) -> str:
    """Return the stored form of a password in MariaDB and MySQL (mysql_native_password)."""
    if not password:
        return ""
    once = hashlib.sha1(password.encode()).digest()  # noqa: S324  # the server's own format
    return "*" + hashlib.sha1(once).hexdigest().upper()  # noqa: S324
