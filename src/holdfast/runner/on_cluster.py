"""Runs a job on a cluster: what is sent to the workers, and what they need of their machines."""

from __future__ import annotations

import os
import pickle
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from msgspec import UNSET

from holdfast.errors import UsageError, UserError
from holdfast.execute.open_site import count_slots
from holdfast.execute.ray_cluster import LOCAL, Cluster, RayThread, connect
from holdfast.execute.ray_executor import OnWorkers, RayExecutor
from holdfast.execute.ray_pool import WorkerNeeds
from holdfast.execute.ray_worker import WorkOrder, get_python_version, hash_secrets
from holdfast.folders import get_runs_folder
from holdfast.model.spec import Spec
from holdfast.plan import RunOptions
from holdfast.runner.agent_files import digest_agent_files
from holdfast.runner.job import Job, is_trusted
from holdfast.spec import read_secret_values
from holdfast.spec.references import PROVIDER_KEYS, find_variables
from holdfast.store.run_folders import list_stored_files
from holdfast.version import __version__

_LEFT = "the connection to the cluster was not closed"
EXCLUDED = (".holdfast", ".venv", ".git", "node_modules", "__pycache__", "reports")
"""Folders next to a spec that no worker needs."""


@asynccontextmanager
async def open_cluster(
    job: Job, listen: OnWorkers | None = None, mask: Callable[[str], str] = str
) -> AsyncIterator[RayExecutor]:
    """Join or start the cluster and open its workers; UserError says why that failed."""
    address = job.options.on
    assert address
    root = Path(job.spec.path).resolve().parent
    runtime = {"working_dir": str(root), "excludes": _list_excluded(job)}
    cores = os.cpu_count() or 1
    where = f"the cluster at {address} was not joined" if address != LOCAL else "Ray did not start"
    thread = RayThread()
    cluster = await thread.run(lambda: connect(address, cores, runtime), where)
    try:
        if not cluster.started:
            refuse_outside(job.spec, root)
        needs = _read_needs(job.spec)
        room = int(cluster.ray.cluster_resources().get("CPU", 0) / needs.cpus)
        workers, each = choose_workers(job.spec, job.options.concurrency, max(1, room))
        executor = RayExecutor(cluster.ray, _build_order(job, root, each, cluster), needs, listen=listen, mask=mask)
        try:
            await executor.open(workers)
            yield executor
        finally:
            await executor.close()
    except BaseException:
        with suppress(UserError):  # the first error is the one that counts
            await thread.run(cluster.close, _LEFT)
        raise
    await thread.run(cluster.close, _LEFT)


def _list_excluded(job: Job) -> list[str]:
    """List the files that are not sent to workers: those that no worker needs, stored runs, and files with secrets."""
    root, runs = Path(job.spec.path).resolve().parent, get_runs_folder(job.spec.file).resolve()
    stored = [path.relative_to(root) for path in list_stored_files(runs) if path.is_relative_to(root)]
    left_out = (*EXCLUDED, *map(str, stored))
    if job.options.send_secrets:
        return [f"/{name}" for name in left_out]
    sources = (secret.source.partition(":") for secret in (job.spec.world.secrets if job.spec.world else ()))
    files = [os.path.normpath(rest) for kind, _, rest in sources if kind == "file" and rest]
    return [f"/{name}" for name in (*left_out, *files)] + [".env", ".env.*"]


def refuse_outside(spec: Spec, root: Path) -> None:
    """Raise UserError for a relative path that leaves the spec's folder: only that folder is sent."""
    for name in _list_named_files(spec):
        path = os.path.normpath(name)
        if path == os.pardir or path.startswith(os.pardir + os.sep):
            hint = f"move it below {root.name}, or use a path that every machine of the cluster has"
            raise UserError(
                f"{name} is outside the spec's folder, so no worker could read it",
                code="cluster-file-missing",
                hint=hint,
            )


def _list_named_files(spec: Spec) -> Iterator[str]:
    """Yield the paths of files in the spec, as written."""
    yield from digest_agent_files(spec)
    if spec.agent.dir:
        yield spec.agent.dir
    if spec.world is None:
        return
    placed = [*spec.world.setup.files, *spec.world.setup.home_files]
    for fixture in spec.world.fixtures:
        placed += fixture.files
        yield from (name for name in (fixture.file, fixture.source) if name)
    yield from (one.source for one in placed if one.source)


def choose_workers(spec: Spec, requested: int | None, room: int) -> tuple[int, int]:
    """Choose how many workers to start, and how many trials each runs in parallel.

    An agent that is already running is called by few workers with many parallel trials. Otherwise each worker has its
    own agent.
    """
    agent = spec.agent
    if agent.type == "http" and not agent.launched:
        parallel = count_slots(spec, requested)
        workers = min(room, parallel)
        return workers, -(-parallel // workers)  # rounded up
    inline = agent.is_python and agent.isolation == "inline"
    alone = not inline and count_slots(spec, 2) == 1  # a reset affects state that all trials share
    return (1 if alone else min(room, requested or spec.concurrency or room)), 1


def check_cluster(spec: Spec, options: RunOptions) -> None:
    """Raise UsageError for options that need the user's own machine."""
    agent = spec.agent
    here_only = {
        "--record": options.record is not None,
        "--replay": options.replay is not None,
        "--keep": options.keep,
        "agent.gateway": agent.gateway,
        "a user simulated by a model": any(task.user is not UNSET and task.user.model for task in spec.tasks),
    }
    for what in (name for name, there in here_only.items() if there):
        raise UsageError(
            f"{what} works on one machine only and cannot be combined with --on {options.on}",
            code="options-conflict",
            hint="leave one of them out",
        )


def _read_needs(spec: Spec) -> WorkerNeeds:
    """Return a world's declared needs, or one core."""
    if spec.world is None:
        return WorkerNeeds()
    resources = spec.world.resources
    labels = tuple(resources.labels)
    plain = tuple(label for label in labels if label != "gpu")
    return WorkerNeeds(resources.cpu or 1.0, resources.memory, float("gpu" in labels), plain)


def _build_order(job: Job, root: Path, each: int, cluster: Cluster) -> WorkOrder:
    options, environ, salt = job.options, job.environ, secrets.token_hex(8)
    hidden = (*read_secret_values(job.spec, environ), *job.secrets.values())
    return WorkOrder(
        version=__version__,
        python=get_python_version(),
        spec=pickle.dumps(job.spec),
        spec_name=Path(job.spec.path).name,
        root=str(root) if cluster.started else "",
        slots=each,
        backend=options.backend,
        strict_world=options.strict_world,
        trusted=is_trusted(job.spec, options),
        variables=tuple(environ) if cluster.started else None,
        sent=_select_variables(job) if options.send_secrets else {},
        salt=salt,
        secrets=hash_secrets(hidden, salt),
    )


def _select_variables(job: Job) -> dict[str, str]:
    """Return the values of the variables that the spec refers to, and the keys of providers."""
    spec, environ = job.spec, job.environ
    names = [*find_variables(spec.secrets, environ), *find_variables(spec.passed_on, environ), *PROVIDER_KEYS]
    if spec.world is not None:
        sources = (secret.source.partition(":") for secret in spec.world.secrets)
        names += [rest for kind, _, rest in sources if kind == "env" and rest]
        names += [secret.name for secret in spec.world.secrets]
    return {name: environ[name] for name in names if name in environ}
