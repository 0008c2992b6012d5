"""The connection to a Ray cluster: a running one, or one started on this machine for the run."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import warnings
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, NamedTuple, TypeVar

from holdfast.errors import UsageError, UserError

T = TypeVar("T")
ANSWER_S = 180.0
"""How long Ray may take to start, connect and disconnect: minutes on a busy machine."""


class RayThread:
    """Runs calls that may block forever in a thread that blocks nobody else.

    It is one thread from the first call to the last: the processes of a cluster started here end with the thread that
    started them.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        Thread(target=self._work, name="ray", daemon=True).start()

    def _work(self) -> None:
        while True:
            self._calls.get()()

    async def run(self, call: Callable[[], T], what: str) -> T:
        """Return the result of the call; UserError, which names `what`, if that takes too long."""
        done = Future[T]()

        def settle() -> None:
            if not done.set_running_or_notify_cancel():  # from here on nobody can cancel it
                return
            try:
                done.set_result(call())
            except BaseException as failed:
                done.set_exception(failed)

        # The thread may hang in Ray for good. The wait here ends in any case, and so does Holdfast, because the thread
        # is a daemon.
        self._calls.put(settle)
        try:
            async with asyncio.timeout(ANSWER_S):
                return await asyncio.wrap_future(done)
        except TimeoutError:
            raise UserError(
                f"{what} within {ANSWER_S:g} s",
                code="cluster-unavailable",
                hint="run `ray status` on its head node",
            ) from None


LOCAL = "ray"
_CLIENT = "ray://"
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_RUNTIME_ENV_IGNORE_GITIGNORE": "1",  # what an agent reads is often not in git
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
_LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Set to 0, Ray identifies this machine as 127.0.0.1 and not by its own address."""
_ALONE = {_LOOPBACK: "0", "RAY_AUTH_MODE": "token"}
"""For a cluster started here: it listens only on 127.0.0.1 and requires a token that only its own processes know."""

_ANSWERS_S = 10.0
_TOKENS = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")


class Cluster(NamedTuple):
    """A connection; `started`: this process started the cluster, which ends with it."""

    ray: Any
    started: bool

    def close(self) -> None:
        self.ray.shutdown()


def check_target(target: str) -> str:
    """Check the target of a run: `ray`, or `ray://host:port`."""
    host, _, port = target.removeprefix(_CLIENT).rpartition(":")
    if target != LOCAL and not (target.startswith(_CLIENT) and host and port.isdecimal()):
        raise UsageError(
            f"--on {target!r} is not a cluster address", code="usage", hint="write --on ray, or --on ray://host:port"
        )
    return target


def connect(target: str, cores: int, runtime: dict[str, Any]) -> Cluster:
    """Join the cluster, or start one if this machine has none. `runtime` is sent to a joined cluster."""
    plain: dict[str, Any] = {"log_to_driver": False, "logging_level": 50}
    address = target if target != LOCAL else _find_running_cluster()
    if not address:  # Ray reads the listening address at import
        os.environ.update(_ALONE)
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(16))
    else:
        _prepare_environment(address)
    ray = _import_ray()
    if address:
        return Cluster(_join_cluster(ray, address, plain | {"runtime_env": runtime}), started=False)
    try:
        ray.init("local", num_cpus=cores, include_dashboard=False, **plain)
    except Exception as broken:  # Ray raises many kinds of errors
        ray.shutdown()
        raise UserError(
            f"Ray could not be started here: {_get_first_line(broken)}",
            code="cluster-unavailable",
            hint="start one yourself (ray start --head)",
        ) from broken
    return Cluster(ray, started=True)


def _prepare_environment(address: str) -> None:
    """Set what Ray must know before it is imported, for a cluster that is joined."""
    if any(name in os.environ for name in _TOKENS) or (Path.home() / ".ray" / "auth_token").is_file():
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    host, _, port = address.rpartition(":")
    own = _find_own_address() if host in ("127.0.0.1", "localhost") else ""
    if own and not _is_listening(own, int(port), 1.0):  # Ray would look for it at this machine's own address, forever
        os.environ.setdefault(_LOOPBACK, "0")


def _find_own_address() -> str:
    """Return this machine's address as Ray would detect it; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(("192.0.2.1", 9))
        except OSError:  # it has only loopback
            return ""
        return str(asking.getsockname()[0])


def _is_listening(host: str, port: int, seconds: float) -> bool:
    try:
        with socket.create_connection((host, port), timeout=seconds):
            return True
    except OSError:
        return False


def _find_running_cluster() -> str:
    """Return the address of a running cluster on this machine; empty if none answers.

    Ray stores it in a world-writable folder: only entries of this user or root are trusted.
    """
    address = os.environ.get("RAY_ADDRESS", "")
    if address and address != "auto":
        return address
    note = Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray" / "ray_current_cluster"  # noqa: S108  # where Ray has it
    try:
        if note.stat(follow_symlinks=False).st_uid not in (0, os.getuid()):
            return ""
        noted = note.read_text()
        host, _, port = noted.strip().rpartition(":")
        return noted.strip() if _is_listening(host, int(port), 1.0) else ""
    except (OSError, ValueError):  # ended, or never there
        return ""


def _import_ray() -> Any:
    os.environ.update(_QUIET)
    try:
        import ray
        import ray.exceptions
    except ModuleNotFoundError as missing:
        raise UserError(
            "--on ray needs Ray, which is not installed", code="extra-missing", hint="pip install 'ray[client]'"
        ) from missing
    ray._private.worker._worker_logs_enabled = False  # it prints about lost workers on stdout, which may contain JSON
    return ray


def _join_cluster(ray: Any, target: str, plain: dict[str, Any]) -> Any:
    host, _, port = target.removeprefix(_CLIENT).rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=_ANSWERS_S):
            pass  # Ray itself retries for minutes, whether or not somebody listens
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # everything important is also raised as an error
            ray.init(target, **plain)
    except (OSError, RuntimeError, ValueError, ImportError, ray.exceptions.RayError) as refused:
        raise UserError(
            f"there is no cluster to join at {target}: {_get_first_line(refused)}",
            code="cluster-unavailable",
            hint=_suggest_fix(refused),
        ) from refused
    return ray


def _suggest_fix(refused: Exception) -> str:
    """Return what to do about the error."""
    answer = str(refused)
    if "ray[client]" in answer or isinstance(refused, ImportError):
        return "pip install 'ray[client]', here and on the cluster's head"
    if "exceeds the maximum size" in answer:
        return "Holdfast sends the spec's folder to the cluster: move large files out of it"
    return "check that it runs the same version of Ray and Python, and that its token is set here (RAY_AUTH_TOKEN)"


def _get_first_line(broken: BaseException) -> str:
    return (str(broken).strip().splitlines() or [type(broken).__name__])[0][:200]
