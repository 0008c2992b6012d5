"""A worker on a cluster: one Site, opened from the driver's Spec, and trials in batches."""

from __future__ import annotations

import asyncio
import hashlib
import os
import pickle
import platform
import socket
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import AgentUnavailable, HoldfastError, UserError
from holdfast.execute.local import LocalExecutor
from holdfast.execute.open_site import open_site
from holdfast.execute.resolved_spec import LIVE_MODELS, WorldOptions
from holdfast.model.codec import create_decoder, encode, make_storable
from holdfast.model.codes import RunNote
from holdfast.model.observation import Observation
from holdfast.model.spec import Spec
from holdfast.model.trial import Trial
from holdfast.processes.scratch import sweep
from holdfast.spec import read_secret_values
from holdfast.version import __version__

read_trial = create_decoder(Trial).decode
read_observation = create_decoder(Observation).decode


class WorkOrder(Struct, frozen=True):
    """The data from which a worker opens its Site. It is pickled: only the same version of Holdfast reads it."""

    version: str
    python: str
    """`3.11`: code objects and pickles of another minor version may mean something else."""
    spec: bytes
    """Pickled."""
    spec_name: str
    root: str
    """The spec's folder on the driver's machine; empty: the files were sent, and are in the worker's current folder."""
    slots: int
    """Parallel trials per worker."""
    backend: str
    strict_world: bool
    trusted: bool
    """Whether commands may run to provide secrets."""
    variables: tuple[str, ...] | None
    """Names of the driver's variables; None: the worker uses its own."""
    sent: Mapping[str, str] = {}
    """Values that the user asked to send."""
    salt: str = ""
    secrets: tuple[str, ...] = ()
    """Digests of the values that the driver masks."""


class WorkerReport(Struct, frozen=True):
    """The result of opening a worker."""

    machine: str
    node: str = ""
    """The cluster's id of the machine."""
    slots: int = 0
    notes: tuple[RunNote, ...] = ()
    refused: str = ""
    """Why it cannot work; empty if it can."""
    code: str = "worker-unusable"
    hint: str = ""
    body: str = ""
    config: bool = False
    """The spec or its agent is the cause, not this machine: no other worker would do better."""


def get_python_version() -> str:
    """Return this interpreter's minor version."""
    return ".".join(platform.python_version_tuple()[:2])


def hash_secrets(values: Iterable[str], salt: str) -> tuple[str, ...]:
    """Return digests of secret values: two machines can compare them without revealing the secrets."""
    return tuple(sorted({hashlib.blake2b(f"{salt}:{value}".encode(), digest_size=16).hexdigest() for value in values}))


def encode_observation(observation: Observation) -> bytes:
    """Return the observation as it is sent: complete, with its trace and audit log."""
    try:
        return encode(observation)
    except UnicodeEncodeError:  # lone surrogates: what is stored will say so
        return encode(make_storable(observation))


def build_environment(order: WorkOrder, own: Mapping[str, str]) -> dict[str, Any]:
    """Return the variables of a worker's trials: its own, as the driver has them, without the cluster's additions."""
    inherited = own.items() if order.variables is None else ((n, own[n]) for n in order.variables if n in own)
    return {name: value for name, value in inherited if not name.startswith("RAY_")} | dict(order.sent)


class TrialWorker:
    """The class of a cluster actor. Its loop runs in the actor's main thread, as elsewhere in Holdfast.

    No method may be a coroutine: Ray would run all of them in its own loop.
    """

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._executor: LocalExecutor | None = None

    def open(self, version: str, python: str, order: bytes) -> WorkerReport:
        """Open the site; obstacles are returned, not raised, because Holdfast's exceptions may not unpickle there.

        The order is pickled separately, because another version of Holdfast could not read it.
        """
        ray = sys.modules.get("ray")  # absent in tests
        node = ray.get_runtime_context().get_node_id() if ray is not None and ray.is_initialized() else ""
        report = WorkerReport(socket.gethostname(), node)
        try:
            _check_versions(version, python)
            sweep()  # files that a killed worker left on this machine
            self._executor = self._runner.run(_open_executor(pickle.loads(order)))  # noqa: S301  # the driver's own
        except HoldfastError as broken:
            return _make_refusal(report, broken)
        return replace(report, slots=self._executor.concurrency, notes=self._executor.notes)

    def run(self, batch: list[bytes]) -> list[bytes] | WorkerReport:
        """Return the observations of a batch, as they ended; a report if the agent cannot be used at all.

        A harness error is in the observation of its trial.
        """
        assert self._executor is not None, "opened before it runs"
        try:
            return self._runner.run(_run_batch(self._executor, map(read_trial, batch)))
        except AgentUnavailable as gone:
            return _make_refusal(WorkerReport(socket.gethostname()), gone)

    def close(self) -> None:
        if self._executor is not None:
            self._runner.run(self._executor.close())
        self._runner.close()


async def _run_batch(executor: LocalExecutor, trials: Iterable[Trial]) -> list[bytes]:
    return [encode_observation(observation) async for _, observation in executor.execute(trials)]


def _make_refusal(report: WorkerReport, broken: HoldfastError) -> WorkerReport:
    hint = broken.hint if isinstance(broken, UserError) else ""
    if isinstance(broken, AgentUnavailable):
        report = replace(report, body=broken.body, config=broken.config)
    return replace(report, refused=str(broken), code=broken.code, hint=hint)


def _check_versions(version: str, python: str) -> None:
    if version != __version__ or python != get_python_version():
        raise UserError(
            f"it has Holdfast {__version__} on Python {get_python_version()}; "
            f"the run was started by Holdfast {version} on Python {python}",
            code="worker-differs",
            hint="install the same on every machine of the cluster",
        )


async def _open_executor(order: WorkOrder) -> LocalExecutor:
    root = Path(order.root or os.getcwd())
    spec: Spec = replace(pickle.loads(order.spec), path=str(root / order.spec_name))  # noqa: S301  # the driver's own
    environ = build_environment(order, os.environ)
    secrets = _resolve_world_secrets(spec, order, environ, root)
    _check_secrets(spec, order, environ, secrets)
    sys.path[:] = [place for place in sys.path if place != os.getcwd()]  # an agent imports only from its own folder
    os.environ.update(order.sent)  # an inline agent reads them there
    os.chdir(root)
    site = await open_site(
        spec,
        environ=environ,
        concurrency=order.slots,
        models=LIVE_MODELS,
        world=WorldOptions(order.backend, secrets, order.strict_world),
    )
    if spec.has_users:
        from holdfast.execute.simulated_users import SimulatedUsers

        site.users = SimulatedUsers(root, None, str)
    return LocalExecutor(site)


def _resolve_world_secrets(spec: Spec, order: WorkOrder, environ: Mapping[str, str], root: Path) -> dict[str, str]:
    if spec.world is None or not spec.world.secrets:
        return {}
    from holdfast.secrets.values import resolve_secrets

    return resolve_secrets(spec.world.secrets, environ, root, spec.seed, commands=order.trusted)


def _check_secrets(spec: Spec, order: WorkOrder, environ: Mapping[str, str], secrets: Mapping[str, str]) -> None:
    """Reject a value that the driver does not know, because it could not mask it."""
    own = hash_secrets((*read_secret_values(spec, environ), *secrets.values()), order.salt)
    if not set(own) <= set(order.secrets):
        raise UserError(
            "a secret has a different value there than on the machine that started the run, so it could not be masked",
            code="worker-differs",
            hint="set the same variables on every machine, or send them: --send-secrets",
        )
