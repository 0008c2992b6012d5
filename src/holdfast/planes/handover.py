"""How a waiting gateway hands its listening socket to a run, and takes it back.

The socket is bound once. An agent that was started with the gateway's variables therefore reaches the current run, and
the one after that. Between runs every request gets 503. The run and the gateway talk over a Unix socket that only its
owner may open. The gateway sends the listening socket itself over it, so no control protocol is needed.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import socket
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from shlex import quote

import msgspec
from msgspec import Struct

from holdfast.errors import AgentUnavailable, UserError
from holdfast.folders import format_path
from holdfast.http1.server import Listener, serve
from holdfast.planes.egress_policy import Policy
from holdfast.planes.http import trust
from holdfast.planes.http.authority import Authority
from holdfast.planes.site_planes import (
    PlaneSettings,
    build_mcp_variables,
    build_model_variables,
    build_placeholder_keys,
)
from holdfast.planes.trial_address import reject_no_trial
from holdfast.streams.sockets import open_socket_path

MESSAGE_LIMIT = 64_000
LOOPBACK = "127.0.0.1"


class GatewayAddress(Struct, frozen=True):
    """The address of a gateway, kept in a file to stay the same after a restart."""

    port: int
    token: str
    host: str = LOOPBACK


class HandedSocket(Struct, frozen=True):
    """The message that the gateway sends to a run together with the socket."""

    token: str
    authority: bytes
    """The gateway's certificate authority, including its key."""


def load_address(folder: Path, port: int | None = None, host: str | None = None) -> GatewayAddress:
    """Return the gateway's address, chosen at its first start. Another port or host makes a new address."""
    path = folder / "gateway.json"
    if path.exists():
        try:
            stored = msgspec.json.decode(path.read_bytes(), type=GatewayAddress)
        except (msgspec.MsgspecError, ValueError) as broken:
            hint = "remove it: the next start creates a new one; then restart the agent"
            raise UserError(f"{path}: not a gateway address: {broken}", code="gateway-missing", hint=hint) from broken
        if port in (None, stored.port) and host in (None, stored.host):
            return stored
    if not port:
        with socket.create_server((LOOPBACK, 0)) as probe:  # a free one
            port = probe.getsockname()[1]
    new = GatewayAddress(port, secrets.token_urlsafe(18), host or LOOPBACK)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(msgspec.json.encode(new))
    return new


def build_variables(
    folder: Path, address: GatewayAddress, environ: Mapping[str, str], settings: PlaneSettings | None = None
) -> dict[str, str]:
    """Return the variables to start an agent with, to route its calls to the gateway in this folder.

    `settings` come from the agent's spec. A loopback URL goes through the proxy only if a fault names it. The MCP
    configuration is written to the path in its variable.
    """
    url = f"http://{address.host}:{address.port}/{address.token}"
    proxy = f"http://holdfast:{address.token}@{address.host}:{address.port}"
    own = folder / "gateway"
    proxy_variables = trust.build_proxy_variables(
        proxy, settings is not None and Policy(settings.urls).has_loopback_target
    )
    if address.host != LOOPBACK:  # calls to the gateway's own address bypass the proxy
        bypassing = ",".join(filter(None, (proxy_variables["NO_PROXY"], address.host)))
        proxy_variables |= {"NO_PROXY": bypassing, "no_proxy": bypassing}
    return {
        **build_model_variables(url),
        **build_placeholder_keys(environ),
        **build_mcp_variables(
            settings.agent if settings else None, settings.root if settings else folder, own / "mcp.json", url, proxy
        ),
        **proxy_variables,
        **trust.build_trust_variables(str(own / "ca-bundle.pem"), str(own / "holdfast-ca.pem"), environ),
    }


class Standby:
    """A gateway between runs. Its certificate authority lives as long as the gateway.

    `log` receives the name of each process that takes the socket. Any process of the same user can take it, and gets
    the authority's key with it.
    """

    def __init__(self, folder: Path, address: GatewayAddress, log: Callable[[str], None] = lambda _: None) -> None:
        self._log = log
        self._socket = _bind_socket(address.host, address.port)
        folder.chmod(0o700)
        self._path = folder / "gateway.sock"
        self._folder = folder / "gateway"
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(mode=0o700)
        self._handed = msgspec.json.encode(HandedSocket(address.token, Authority(self._folder).export_pem()))
        self._listener: Listener | None = None
        self._server: asyncio.AbstractServer | None = None
        self._handing: asyncio.Task[None] | None = None
        self._closed = False

    async def open(self) -> None:
        """Answer 503 until a run takes the socket."""
        self._path.unlink(missing_ok=True)
        bound = socket.socket(socket.AF_UNIX)
        before = os.umask(0o177)
        try:
            # The mode of a Unix socket is set by bind(), so the mask must be right before: a chmod afterwards would
            # leave a moment in which any user could connect.
            with open_socket_path(self._path.parent, self._path.name) as address:
                bound.bind(address)
        finally:
            os.umask(before)
        self._server = await asyncio.start_unix_server(self._hand_over, sock=bound)
        await self._stand_by()

    async def close(self) -> None:
        """Stop the gateway. A run that has the socket keeps it."""
        self._closed = True
        if self._server is not None:
            self._server.close()
        if self._handing is not None:
            self._handing.cancel()
            await asyncio.wait([self._handing])
        if self._listener is not None:
            await self._listener.close()
        self._path.unlink(missing_ok=True)
        self._socket.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _stand_by(self) -> None:
        self._listener = await serve(reject_no_trial, sock=self._socket.dup())

    async def _hand_over(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Lend the socket to one run at a time; it returns when the run's connection closes."""
        connection: socket.socket = writer.get_extra_info("socket")
        pid, uid = _read_peer(connection)
        if self._listener is None or uid != os.getuid():
            why = "it is in use" if self._listener is None else "another user"
            self._log(f"refused to {_describe_process(pid)}: {why}")
            writer.close()
            return
        self._log(f"taken by {_describe_process(pid)}")
        listener, self._listener = self._listener, None
        self._handing = asyncio.current_task()
        try:
            await listener.close()
            # The socket is sent with its descriptor, for which asyncio has no call. Its own reading is paused
            # meanwhile, and a duplicate is used, so that closing it here does not close the connection that the loop
            # watches.
            writer.transport.pause_reading()  # type: ignore[attr-defined]  # a Unix transport has it
            fd = os.dup(connection.fileno())
            with socket.socket(fileno=fd) as own:
                socket.send_fds(own, [self._handed], [self._socket.fileno()])
            writer.transport.resume_reading()  # type: ignore[attr-defined]  # the same
            await reader.read()
        except OSError:
            pass  # the run has ended: the gateway owns the socket again
        except asyncio.CancelledError:
            if not self._closed:
                raise
        finally:
            self._log("given back")
            writer.close()
            self._handing = None
        if not self._closed:
            await self._stand_by()


class TakenSocket(Struct, eq=False):
    """A gateway's socket, for the duration of one run."""

    _connection: socket.socket
    listening: socket.socket
    handed: HandedSocket

    def give_back(self) -> None:
        self.listening.close()
        self._connection.close()


def take_socket(folder: Path) -> TakenSocket:
    """Return the socket of the gateway waiting in this folder; raise AgentUnavailable if there is none."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(5)
    try:
        with open_socket_path(folder, "gateway.sock") as address:
            connection.connect(address)
        data, fds, _, _ = socket.recv_fds(connection, MESSAGE_LIMIT, 1)
    except OSError as broken:
        connection.close()
        raise AgentUnavailable(
            f"agent.gateway is true, but no gateway is running in {format_path(folder)} ({broken.strerror or broken})",
            hint="start `holdfast gateway` with this spec, and the agent with the variables that it prints",
            config=True,
            code="gateway-missing",
        ) from None
    if not data or not fds:
        connection.close()
        message = "the gateway is in use by another run"
        raise AgentUnavailable(message, code="gateway-busy", hint="wait for it to end", config=True)
    return TakenSocket(connection, socket.socket(fileno=fds[0]), msgspec.json.decode(data, type=HandedSocket))


def _bind_socket(host: str, port: int) -> socket.socket:
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as in_use:
        bound.close()
        hint = "stop the program that uses it, or choose another: holdfast gateway --port N"
        raise UserError(
            f"port {port} of {host} is not available: {in_use.strerror}", code="port-taken", hint=hint
        ) from None
    bound.listen(512)
    bound.setblocking(False)
    return bound


def _read_peer(connection: socket.socket) -> tuple[int, int]:
    """Return the process and the user at the other end of a Unix socket.

    If the system cannot tell, they are 0 and this process's own user: then the file mode is the only guard.
    """
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return 0, os.getuid()
    pid, uid, _ = struct.unpack("=iII", connection.getsockopt(socket.SOL_SOCKET, option, 12))
    return pid, uid


def _describe_process(pid: int) -> str:
    try:
        # its arguments may contain secrets
        name = Path(f"/proc/{pid}/comm").read_bytes().decode("utf-8", "replace").strip()
    except OSError:
        return f"process {pid}" if pid else "a process"
    return f"process {pid} ({name})"


def format_exports(variables: Mapping[str, str]) -> str:
    """Format variables as shell `export` lines."""
    return "".join(f"export {name}={quote(value)}\n" for name, value in variables.items())
