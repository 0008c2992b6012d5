"""Opens the executor of a run: on this machine, or on the workers of a cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from holdfast.errors import UsageError
from holdfast.execute.resolved_spec import ModelOptions, WorldOptions
from holdfast.model.codes import RunNote
from holdfast.runner.consultations import open_users
from holdfast.runner.intake import Intake
from holdfast.runner.job import Job
from holdfast.runner.run_log import RunLog
from holdfast.store.rundir import RunDir

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from holdfast.protocols.executor import Executor


VARIABLE = "HOLDFAST_UVLOOP"
"""The variable that selects uvloop: an installed package alone selects nothing."""


def choose_loop_factory(environ: Mapping[str, str]) -> Callable[[], AbstractEventLoop] | None:
    """Return the factory for the loop of a run; None for asyncio's own."""
    choice = environ.get(VARIABLE, "")
    if choice in ("", "0"):
        return None
    if choice != "1":
        raise UsageError(
            f"{VARIABLE} is {choice!r}",
            code="variable-invalid",
            hint="set it to 1 for uvloop, or to 0 for asyncio's own loop",
        )
    try:
        import uvloop
    except ImportError:
        raise UsageError(
            f"{VARIABLE} is set, but uvloop is not installed", code="extra-missing", hint="pip install uvloop"
        ) from None
    return uvloop.new_event_loop


@asynccontextmanager
async def open_executor(
    job: Job, intake: Intake, run: RunDir, log: RunLog, models: ModelOptions
) -> AsyncIterator[Executor]:
    """Open the executor that the job asks for, and close it with everything it opened."""
    if job.options.on:
        from holdfast.runner.on_cluster import open_cluster

        async with open_cluster(job, log.report_workers, intake.masker.mask_text) as executor:
            try:
                yield executor
            finally:
                log.note("cluster", *executor.ending)
        return
    # These load asyncio and the planes, which `--help`, completion and commands on stored runs do not need.
    from holdfast.execute.local import LocalExecutor
    from holdfast.execute.open_site import open_site

    keep = intake.kept.open_keeper(intake.masker.mask_text, intake.has_failed)
    world = WorldOptions(job.options.backend, job.secrets, job.options.strict_world, keep, log.warn_trial)
    async with AsyncExitStack() as opened:
        # Closed in reverse order: the site, whose trials ask the users, ends before the users do.
        users = None
        if job.spec.has_users:
            users = await opened.enter_async_context(open_users(job.spec, job.environ, run, intake.masker.mask_text))
        site = await open_site(
            job.spec, environ=job.environ, concurrency=job.options.concurrency, models=models, world=world
        )
        opened.push_async_callback(site.close)
        site.users = users
        site.notes = (*site.notes, *_note_labels(job))
        yield LocalExecutor(site)
        for program in site.list_changed_programs():
            log.warn("program-changed", f"{program} changed during the run: later trials may have used another version")


def _note_labels(job: Job) -> Iterator[RunNote]:
    world = job.spec.world
    if world is not None and world.resources.labels:
        has = ", ".join(world.resources.labels)
        yield RunNote("cluster", f"resources.labels choose machines of a cluster; this one is assumed to have {has}")
