"""Runs the executors' conformance kit on the cluster that RAY_ADDRESS names: `python ray_kit_run.py FOLDER`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from holdfast.model.spec import Spec
from holdfast.plan import RunOptions
from holdfast.protocols.executor import Executor
from holdfast.runner.job import Job
from holdfast.runner.on_cluster import open_cluster
from holdfast.testing.executors import check_executor


def opened(spec: Spec) -> AbstractAsyncContextManager[Executor]:
    return open_cluster(Job(spec, RunOptions(on="ray", concurrency=3), os.environ))


if __name__ == "__main__":
    print(json.dumps(asyncio.run(check_executor(opened, Path(sys.argv[1])))))
