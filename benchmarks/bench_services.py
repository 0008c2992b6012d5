"""Time that the services of a world add to a trial: a fresh server, its fixture, snapshot, audit, a check, its end."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from statistics import median

from measure import limited, row

from holdfast.errors import HoldfastError
from holdfast.model.scenario import Scenario
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.model.world import ServiceSpec
from holdfast.protocols.service import Database, Service
from holdfast.world.services import open_keeper

TRIALS = 20
AGENT_S = 0.1
TRIAL = Trial("0", "contract", Scenario("calm"), Task(("?",)))
SEED = (
    "CREATE TABLE customers (id int PRIMARY KEY, email varchar(99)); INSERT INTO customers VALUES (1, 'a'), (2, 'b');"
)
SPECS: dict[str, dict[str, str]] = {
    "postgres": {"POSTGRES_PASSWORD": "secret"},
    "mysql": {"MYSQL_ROOT_PASSWORD": "secret", "MYSQL_DATABASE": "app"},
    "redis": {},
}
MOST_MS = {"postgres": 70, "mysql": 80, "redis": 20}


async def world(service: Service) -> None:
    """All that a trial does with its service, before and after its agent runs."""
    if isinstance(service, Database):
        await service.execute(SEED)
        await service.mark()


async def evidence(service: Service) -> None:
    if isinstance(service, Database):
        await service.writes()
        await service.query("SELECT count(*) FROM customers", timeout_s=5)


async def times(kind: str, agent_s: float) -> list[float]:
    """Seconds of world time of each trial but the first, whose spare is not ready yet."""
    with tempfile.TemporaryDirectory() as folder:
        keeper = await open_keeper(ServiceSpec("db", kind, env=SPECS[kind]), Path(folder))
        spent = []
        for _ in range(TRIALS + 1):
            began = time.perf_counter()
            service = await keeper.provide(TRIAL, alone=True)
            await world(service)
            ready = time.perf_counter()
            await asyncio.sleep(agent_s)
            asked = time.perf_counter()
            await evidence(service)
            await service.close()
            spent.append(ready - began + time.perf_counter() - asked)
        await keeper.close()
    return spent[1:]


def main() -> None:
    print(f"services: a fresh server a trial, world time, median of {TRIALS}")
    for kind in SPECS:
        try:
            asyncio.run(times(kind, 0.0))  # prepares the data
        except HoldfastError as missing:
            row(kind, "skipped", str(missing))
            continue
        took = median(asyncio.run(times(kind, AGENT_S)))
        name = f"{kind}, the agent takes {AGENT_S * 1000:.0f} ms"
        limited(name, took * 1000, "{:.0f} ms", most=MOST_MS[kind])
        took = median(asyncio.run(times(kind, 0.0)))
        limited(f"{kind}, trials in sequence, no agent", took * 1000, "{:.0f} ms", most=MOST_MS[kind])


if __name__ == "__main__":
    main()
