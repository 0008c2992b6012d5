"""The messages between a driver and its workers on a cluster: plain bytes and values."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from holdfast.model.codec import create_decoder, encode, make_storable
from holdfast.model.codes import RunNote
from holdfast.model.observation import Observation
from holdfast.model.trial import Trial

_trials = create_decoder(Trial)
_observations = create_decoder(Observation)


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
    """Digests of secret values, with which two machines can compare secrets without revealing them."""
    return tuple(sorted({hashlib.blake2b(f"{salt}:{value}".encode(), digest_size=16).hexdigest() for value in values}))


def encode_trials(trials: Iterable[Trial]) -> list[bytes]:
    return [encode(trial) for trial in trials]


def read_trials(lines: Iterable[bytes]) -> list[Trial]:
    return [_trials.decode(line) for line in lines]


def encode_observation(observation: Observation) -> bytes:
    """Return the observation as it is sent: complete, with its trace and audit log."""
    try:
        return encode(observation)
    except UnicodeEncodeError:  # lone surrogates: what is stored will say so
        return encode(make_storable(observation))


def read_observation(line: bytes) -> Observation:
    return _observations.decode(line)


def build_environment(order: WorkOrder, own: Mapping[str, str]) -> dict[str, Any]:
    """Return the variables of a worker's trials: its own, as the driver has them, without the cluster's additions."""
    inherited = own.items() if order.variables is None else ((n, own[n]) for n in order.variables if n in own)
    return {name: value for name, value in inherited if not name.startswith("RAY_")} | dict(order.sent)
